package model

import (
	"math"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// attention keeps the operands of attendBackward.
type attention struct {
	qkv   *tensor.Tensor // queries, keys and values of each row
	heads int
	batch int

	out, lse *tensor.Tensor // of the kernel: its result, and the log-sum-exp of each query
	weights  *tensor.Tensor // without the kernel: of each query for each key, softmax of their scaled products
}

// hasKernel reports whether operations on a context have one kernel for a model's attention. Others are made of products and a
// softmax, whose weights take memory in the square of the number of positions.
func hasKernel(c *cuda.Context, config Config) bool {
	size := config.Width / config.Heads
	return config.Type != tensor.Float32 && (size == 64 || size == 128) && c.Info().Compute.Major >= 8
}

// causal returns the mask of a context.
func causal(n int) []float32 {
	mask := make([]float32, n*n)
	for query := range n {
		for key := query + 1; key < n; key++ {
			mask[query*n+key] = float32(math.Inf(-1))
		}
	}
	return mask
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
	if p.err != nil {
		return nil, nil, nil
	}
	return p.got(parts.Index(0, 0)), p.got(parts.Index(0, 1)), p.got(parts.Index(0, 2))
}

// headed returns a view of rows of heads next to each other, as (batch, heads, positions, size of a head).
func (p *pass) headed(a attention, of *tensor.Tensor) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	x := p.shaped(of, a.batch, of.Dim(0)/a.batch, a.heads, of.Dim(1)/a.heads)
	if p.err != nil {
		return nil
	}
	return p.got(x.Transpose(1, 2))
}

// attend returns for each position the mean of the values at it and before it, weighted by how its query fits their keys. The
// mask is for attention without a kernel: 0 where a query may see a key, and -Inf where it may not. nil: there is a kernel.
func (p *pass) attend(qkv, mask *tensor.Tensor, batch, heads int) (*tensor.Tensor, attention) {
	a := attention{qkv: qkv, heads: heads, batch: batch}
	if p.err != nil {
		return nil, a
	}
	if mask != nil {
		return p.attendBySoftmax(a, mask)
	}
	q, k, v := p.views(a, qkv)
	a.out = p.made(qkv.Type(), qkv.Dim(0), qkv.Dim(1)/3)
	a.lse = p.made(tensor.Float32, batch, heads, qkv.Dim(0)/batch)
	out := p.headed(a, a.out)
	if p.err == nil {
		p.did(p.AttentionInto(p.scope, out, a.lse, q, k, v, ops.AttentionConfig{Causal: true}))
	}
	return a.out, a
}

// attendBySoftmax is attend without a kernel.
func (p *pass) attendBySoftmax(a attention, mask *tensor.Tensor) (*tensor.Tensor, attention) {
	q, k, v := p.views(a, a.qkv)
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
	return p.shaped(rows, a.qkv.Dim(0), a.qkv.Dim(1)/3), a
}

// attendBackward returns the gradient of qkv.
func (p *pass) attendBackward(dy *tensor.Tensor, a attention) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	dqkv := p.made(a.qkv.Type(), a.qkv.Shape()...)
	q, k, v := p.views(a, a.qkv)
	dq, dk, dv := p.views(a, dqkv)
	heads := p.headed(a, dy)
	if p.err != nil {
		return nil
	}
	if a.weights == nil {
		p.did(p.AttentionBackwardInto(p.scope, dq, dk, dv, heads, p.headed(a, a.out), a.lse, q, k, v, ops.AttentionConfig{Causal: true}))
		return dqkv
	}
	p.write(dv, p.product(p.turned(a.weights), heads))
	dweights := p.product(heads, p.turned(v))
	if p.err != nil {
		return nil
	}
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

// release frees the operands that attendBackward had.
func (p *pass) release(a attention) {
	p.free(a.qkv)
	if a.weights != nil {
		p.free(a.weights)
	} else {
		p.free(a.lse)
	}
}
