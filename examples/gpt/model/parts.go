package model

import (
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda/gemm"
)

// epsilon is added to variances in GPT-2's layer norms.
const epsilon = 1e-5

// embed returns the sum of the rows of the token table and of the position table for each token of a batch.
func (p *pass) embed(tokens *tensor.Tensor, table, positions *Parameter) *tensor.Tensor {
	p.in("wte" + ofActivations)
	batch, length := tokens.Dim(0), tokens.Dim(1)
	x := p.got(p.Embedding(p.scope, table.Value, tokens))
	first := p.narrowed(positions.Value, length)
	if p.err == nil {
		p.did(p.AddInto(p.scope, x, x, first)) // the same positions in each sequence
	}
	return p.shaped(x, batch*length, table.Value.Dim(1))
}

// embedBackward computes the gradient of the position table, and adds to the gradient of the token table, which the head has
// computed before.
func (p *pass) embedBackward(dx, tokens *tensor.Tensor, table, positions *Parameter) {
	p.in("wte" + ofActivations)
	batch, length := tokens.Dim(0), tokens.Dim(1)
	d := p.shaped(dx, batch, length, table.Value.Dim(1))
	if length < positions.Grad.Dim(0) && !p.adds && p.err == nil {
		p.did(p.FillInto(p.scope, positions.Grad, 0))
	}
	p.summed(p.narrowed(positions.Grad, length), d)
	exact := d
	if p.err == nil && d.Type() != tensor.Float32 {
		exact = p.got(p.Cast(p.scope, d, tensor.Float32))
	}
	if p.err == nil {
		p.did(p.EmbeddingBackwardAdd(p.scope, table.Grad, exact, tokens))
	}
	if exact != d {
		p.free(exact)
	}
}

// normalize returns the layer norm of each row.
func (p *pass) normalize(x *tensor.Tensor, n norm) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	return p.got(p.LayerNorm(p.scope, x, n.weight.Value, n.bias.Value, 1, epsilon))
}

// settle returns the sum of a residual stream, and its layer norm. It frees the part that was not added yet.
func (p *pass) settle(s stream, n norm) (sum, normed *tensor.Tensor) {
	if s.part == nil {
		return s.sum, p.normalize(s.sum, n)
	}
	if p.err != nil {
		return nil, nil
	}
	normed, sum, err := p.LayerNormResidual(p.scope, s.part, s.sum, n.weight.Value, n.bias.Value, 1, epsilon)
	p.did(err)
	if !s.lent {
		p.free(s.part)
	}
	return sum, normed
}

// normalizeBackward returns the gradient of x, the operand of a layer norm and of the layers that have the gradient dx for it, if
// there are any: it is written over dx. It computes the gradients of weight and bias.
func (p *pass) normalizeBackward(dy, dx, x *tensor.Tensor, n norm) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	dweight, dbias := n.weight.Grad, n.bias.Grad
	if p.adds {
		dweight, dbias = p.made(tensor.Float32, dweight.Shape()...), p.made(tensor.Float32, dbias.Shape()...)
	}
	if p.err != nil {
		return nil
	}
	if dx != nil {
		p.did(p.LayerNormResidualBackwardInto(p.scope, dx, dweight, dbias, dy, dx, x, n.weight.Value, 1, epsilon))
	} else {
		dx = p.made(x.Type(), x.Shape()...)
		if p.err == nil {
			p.did(p.LayerNormBackwardInto(p.scope, dx, dweight, dbias, dy, x, n.weight.Value, 1, epsilon))
		}
	}
	if p.adds {
		p.addTo(n.weight, dweight)
		p.addTo(n.bias, dbias)
	}
	return dx
}

// multiply returns x·weight + bias.
func (p *pass) multiply(x *tensor.Tensor, l linear) *tensor.Tensor {
	return p.productOf(x, l.weight.Value, ops.Product{Bias: l.bias.Value})
}

// activate returns GELU of x·weight + bias, and its operand.
func (p *pass) activate(x *tensor.Tensor, l linear) (active, operand *tensor.Tensor) {
	operand = p.made(l.bias.Value.Type(), x.Dim(0), l.bias.Value.Len())
	return p.productOf(x, l.weight.Value, ops.Product{Bias: l.bias.Value, Epilogue: gemm.GELUAux, Aux: operand}), operand
}

// multiplyBackward returns the gradient of x, and computes the gradients of weight and bias.
func (p *pass) multiplyBackward(dy, x *tensor.Tensor, l linear) *tensor.Tensor {
	p.linearBackward(dy, x, l)
	return p.product(dy, p.turned(l.weight.Value))
}

// activateBackward is multiplyBackward for an x that activate has returned: it returns the gradient of GELU's operand.
func (p *pass) activateBackward(dy, x, operand *tensor.Tensor, l linear) *tensor.Tensor {
	p.linearBackward(dy, x, l)
	return p.productOf(dy, p.turned(l.weight.Value), ops.Product{Epilogue: gemm.GELUGradient, Aux: operand})
}

// linearBackward computes the gradients of weight and bias.
func (p *pass) linearBackward(dy, x *tensor.Tensor, l linear) {
	p.gradient(l.weight, p.turned(x), dy)
	p.summed(l.bias.Grad, dy)
}
