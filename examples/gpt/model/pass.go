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
	adds  bool // gradients are added to those that are there, and do not replace them
	err   error
}

// in names the memory of later tensors.
func (p *pass) in(tag string) {
	if p.scope != nil {
		p.scope.SetTag(tag)
	}
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

// made returns a new tensor.
func (p *pass) made(of tensor.Type, shape ...int) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	return p.got(tensor.New(p.scope, of, shape...))
}

// product returns the product of matrices.
func (p *pass) product(x, y *tensor.Tensor) *tensor.Tensor { return p.productOf(x, y, ops.Product{}) }

// productOf returns a product of matrices with an epilogue.
func (p *pass) productOf(x, y *tensor.Tensor, how ops.Product) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	t, _, err := p.Matmul(p.scope, x, y, how)
	return p.got(t, err)
}

// gradient computes a parameter's gradient, the product of two matrices.
func (p *pass) gradient(of *Parameter, x, y *tensor.Tensor) {
	if p.err != nil {
		return
	}
	_, err := p.MatmulInto(p.scope, of.gradient, x, y, ops.Product{Add: p.adds})
	p.did(err)
}

// summed computes a gradient that is the sum of d over its first dimension.
func (p *pass) summed(grad, d *tensor.Tensor) {
	if p.err != nil {
		return
	}
	if !p.adds {
		p.did(p.SumInto(p.scope, grad, d, 0))
		return
	}
	of := p.made(tensor.Float32, grad.Shape()...)
	if p.err == nil {
		p.did(p.SumInto(p.scope, of, d, 0))
	}
	if p.err == nil {
		p.did(p.AddInto(p.scope, grad, grad, of))
	}
	p.free(of)
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

// narrowed returns a view of the first rows.
func (p *pass) narrowed(x *tensor.Tensor, rows int) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	return p.got(x.Narrow(0, 0, rows))
}

// addTo adds a gradient to a parameter's, and frees it.
func (p *pass) addTo(to *Parameter, gradient *tensor.Tensor) {
	if p.err == nil {
		p.did(p.AddInto(p.scope, to.Grad, to.Grad, gradient))
	}
	p.free(gradient)
}
