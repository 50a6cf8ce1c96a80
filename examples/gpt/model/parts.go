package model

import (
	"math"

	"github.com/go-vram/vram/compute/tensor"
)

// epsilon is added to variances in GPT-2's layer norms.
const epsilon = 1e-5

// embed returns the sum of the rows of the token table and of the position table for each token of a batch.
func (p *pass) embed(tokens *tensor.Tensor, table, positions *Parameter) *tensor.Tensor {
	batch, length := tokens.Dim(0), tokens.Dim(1)
	x := p.got(p.Embedding(p.scope, table.Value, tokens))
	first := p.got(positions.Value.Narrow(0, 0, length))
	p.did(p.AddInto(p.scope, x, x, first)) // the same positions in each sequence
	return p.shaped(x, batch*length, table.Value.Dim(1))
}

// embedBackward adds the gradients of both tables.
func (p *pass) embedBackward(dx, tokens *tensor.Tensor, table, positions *Parameter) {
	batch, length := tokens.Dim(0), tokens.Dim(1)
	d := p.shaped(dx, batch, length, table.Value.Dim(1))
	of := p.got(p.Sum(p.scope, d, false, 0))
	first := p.got(positions.Grad.Narrow(0, 0, length))
	p.did(p.AddInto(p.scope, first, first, of))
	exact := d
	if p.err == nil && d.Type() != tensor.Float32 {
		exact = p.got(p.Cast(p.scope, d, tensor.Float32))
	}
	p.did(p.EmbeddingBackwardAdd(p.scope, table.Grad, exact, tokens))
}

// normalize returns the layer norm of each row.
func (p *pass) normalize(x *tensor.Tensor, n norm) *tensor.Tensor {
	return p.got(p.LayerNorm(p.scope, x, n.weight.Value, n.bias.Value, 1, epsilon))
}

// normalizeBackward returns the gradient of x, and adds the gradients of weight and bias.
func (p *pass) normalizeBackward(dy, x *tensor.Tensor, n norm) *tensor.Tensor {
	dx, dweight, dbias, err := p.LayerNormBackward(p.scope, dy, x, n.weight.Value, 1, epsilon)
	p.did(err)
	p.addTo(n.weight, dweight)
	p.addTo(n.bias, dbias)
	return dx
}

// multiply returns x·weight + bias.
func (p *pass) multiply(x *tensor.Tensor, l linear) *tensor.Tensor {
	y := p.product(x, l.weight.Value)
	p.did(p.AddInto(p.scope, y, y, l.bias.Value))
	return y
}

// multiplyBackward returns the gradient of x, and adds the gradients of weight and bias.
func (p *pass) multiplyBackward(dy, x *tensor.Tensor, l linear) *tensor.Tensor {
	p.addTo(l.weight, p.product(p.turned(x), dy))
	p.addTo(l.bias, p.got(p.Sum(p.scope, dy, false, 0)))
	return p.product(dy, p.turned(l.weight.Value))
}

// attention keeps the operands of attendBackward.
type attention struct {
	qkv     *tensor.Tensor // queries, keys and values of each row
	weights *tensor.Tensor // of each query for each key: softmax of their scaled products
	heads   int
	batch   int
}

// views returns queries, keys and values of a tensor in the layout of qkv, as (batch, heads, positions, size of a head).
func (p *pass) views(a attention, of *tensor.Tensor) (q, k, v *tensor.Tensor) {
	if p.err != nil {
		return nil, nil, nil
	}
	width := of.Dim(1) / 3
	parts := p.got(of.Reshape(a.batch, of.Dim(0)/a.batch, 3, a.heads, width/a.heads))
	if p.err != nil {
		return nil, nil, nil
	}
	parts = p.got(parts.Permute(2, 0, 3, 1, 4))
	return p.got(parts.Index(0, 0)), p.got(parts.Index(0, 1)), p.got(parts.Index(0, 2))
}

// attend returns for each position the mean of the values at it and before it, weighted by how its query fits their keys.
// The mask is 0 where a query may see a key, and -Inf where it may not.
func (p *pass) attend(qkv, mask *tensor.Tensor, batch, heads int) (*tensor.Tensor, attention) {
	a := attention{qkv: qkv, heads: heads, batch: batch}
	q, k, v := p.views(a, qkv)
	a.weights = p.product(q, p.turned(k))
	if p.err != nil {
		return nil, a
	}
	scale := p.got(p.Fill(p.scope, a.weights.Type(), 1/math.Sqrt(float64(q.Dim(-1)))))
	p.did(p.MulInto(p.scope, a.weights, a.weights, scale))
	p.did(p.AddInto(p.scope, a.weights, a.weights, mask))
	p.did(p.SoftmaxInto(p.scope, a.weights, a.weights, -1))
	y := p.product(a.weights, v)
	if p.err != nil {
		return nil, a
	}
	rows := p.got(p.Copy(p.scope, p.got(y.Permute(0, 2, 1, 3)))) // heads next to each other
	p.free(y, scale)
	return p.shaped(rows, qkv.Dim(0), qkv.Dim(1)/3), a
}

// attendBackward returns the gradient of qkv.
func (p *pass) attendBackward(dy *tensor.Tensor, a attention) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	dqkv := p.got(tensor.New(p.scope, a.qkv.Type(), a.qkv.Shape()...))
	q, k, v := p.views(a, a.qkv)
	dq, dk, dv := p.views(a, dqkv)
	heads := p.shaped(dy, a.batch, dy.Dim(0)/a.batch, a.heads, dy.Dim(1)/a.heads)
	if p.err != nil {
		return nil
	}
	heads = p.got(heads.Transpose(1, 2))
	p.write(dv, p.product(p.turned(a.weights), heads))
	dweights := p.product(heads, p.turned(v))
	p.did(p.SoftmaxBackwardInto(p.scope, dweights, dweights, a.weights, -1))
	scale := p.got(p.Fill(p.scope, a.qkv.Type(), 1/math.Sqrt(float64(q.Dim(-1)))))
	p.did(p.MulInto(p.scope, dweights, dweights, scale))
	p.write(dq, p.product(dweights, k))
	p.write(dk, p.product(p.turned(dweights), q))
	p.free(dweights, scale)
	return dqkv
}

// write copies a result into a view, and frees it.
func (p *pass) write(view, result *tensor.Tensor) {
	if p.err == nil {
		p.did(p.CopyInto(p.scope, view, result))
	}
	p.free(result)
}
