package model

import (
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// pass submits the operations of one forward and backward computation, and keeps the first error: the operations after
// it get no operands, and do nothing.
type pass struct {
	ops.Ops

	scope *tensor.Scope
	err   error
}

func (p *pass) got(t *tensor.Tensor, err error) *tensor.Tensor {
	p.did(err)
	return t
}

func (p *pass) did(err error) {
	if p.err == nil {
		p.err = err
	}
}

// free frees tensors, or the tensors that they are views of, after their last use: the stream's later work has their
// memory.
func (p *pass) free(all ...*tensor.Tensor) {
	for _, t := range all {
		if p.err == nil {
			p.did(t.Owner().Free())
		}
	}
}

// product returns the product of matrices.
func (p *pass) product(x, y *tensor.Tensor) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	t, _, err := p.Matmul(p.scope, x, y, ops.Product{})
	return p.got(t, err)
}

// turned returns a view of matrices with rows and columns exchanged.
func (p *pass) turned(x *tensor.Tensor) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	return p.got(x.Transpose(-2, -1))
}

// shaped returns a view of another shape.
func (p *pass) shaped(x *tensor.Tensor, shape ...int) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	return p.got(x.Reshape(shape...))
}

// sum returns x + y.
func (p *pass) sum(x, y *tensor.Tensor) *tensor.Tensor { return p.got(p.Add(p.scope, x, y)) }

// addTo adds a gradient to a parameter's, and frees it.
func (p *pass) addTo(to *Parameter, gradient *tensor.Tensor) {
	if p.err == nil {
		p.did(p.AddInto(p.scope, to.Grad, to.Grad, gradient))
	}
	p.free(gradient)
}
