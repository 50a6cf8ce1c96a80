package model

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// Model is a decoder with its parameters in device memory. Its methods submit work to the stream of its context, and are
// for one goroutine at a time.
type Model struct {
	ops    ops.Ops
	scope  *tensor.Scope
	config Config

	table, positions *Parameter // of tokens and positions; the head shares the first
	blocks           []block
	last             norm
	all              []*Parameter
	mask             *tensor.Tensor // (positions, positions): 0 for a key at or before the query, else -Inf
}

// New makes a model with random parameters: one seed has one model, bit for bit. Close frees it. Errors: *ConfigError, and
// errors of operations and memory.
func New(c *cuda.Context, o ops.Ops, config Config, seed uint64) (_ *Model, err error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	scope, err := tensor.NewScope(c)
	if err != nil {
		return nil, err
	}
	m := &maker{s: scope, config: config, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // no secret
	x := &Model{ops: o, scope: scope, config: config}
	x.table = m.parameter("wte.weight", deviation, 0, config.Vocabulary, config.Width)
	x.positions = m.parameter("wpe.weight", deviation, 0, config.Context, config.Width)
	for i := range config.Layers {
		x.blocks = append(x.blocks, m.block(i))
	}
	x.last = m.norm("ln_f")
	x.mask = m.got(tensor.From(scope, causal(config.Context), config.Context, config.Context))
	x.all = m.all
	if m.err == nil {
		m.err = x.refresh()
	}
	if m.err != nil {
		return nil, errors.Join(m.err, scope.Close())
	}
	return x, nil
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

// Close frees the parameters.
func (m *Model) Close() error { return m.scope.Close() }

// Context returns the context on whose stream the model computes.
func (m *Model) Context() *cuda.Context { return m.scope.Context() }

// Ops returns the operations that it computes with.
func (m *Model) Ops() ops.Ops { return m.ops }

// Parameters returns the parameters, in the order of the checkpoint.
func (m *Model) Parameters() []*Parameter { return m.all }

// Size returns the number of the parameters' elements.
func (m *Model) Size() (n int) {
	for _, p := range m.all {
		n += p.Param.Len()
	}
	return n
}

// refresh copies the masters to values of 16 bits.
func (m *Model) refresh() error {
	if m.config.Type == tensor.Float32 {
		return nil
	}
	p := pass{Ops: m.ops, scope: m.scope}
	for _, x := range m.all {
		p.did(p.CopyInto(p.scope, x.Value, x.Param))
	}
	return p.err
}

// activations are the operands of a block's gradient.
type activations struct {
	in, normed1       *tensor.Tensor
	attention         attention
	attended, middle  *tensor.Tensor
	normed2, expanded *tensor.Tensor
	active            *tensor.Tensor
}

// forward computes a block.
func (b block) forward(p *pass, x, mask *tensor.Tensor, batch, heads int) (*tensor.Tensor, activations) {
	a := activations{in: x}
	a.normed1 = p.normalize(x, b.norm1)
	a.attended, a.attention = p.attend(p.multiply(a.normed1, b.attend), mask, batch, heads)
	projected := p.multiply(a.attended, b.project)
	a.middle = p.sum(x, projected)
	a.normed2 = p.normalize(a.middle, b.norm2)
	a.expanded = p.multiply(a.normed2, b.expand)
	a.active = p.got(p.GeluTanh(p.scope, a.expanded))
	contracted := p.multiply(a.active, b.contract)
	out := p.sum(a.middle, contracted)
	p.free(projected, contracted)
	return out, a
}

// backward returns the gradient of the block's operand, adds the gradients of its parameters, and frees the activations and dy.
func (b block) backward(p *pass, dy *tensor.Tensor, a activations) *tensor.Tensor {
	dactive := p.multiplyBackward(dy, a.active, b.contract)
	p.did(p.GeluTanhBackwardInto(p.scope, dactive, dactive, a.expanded))
	dnormed2 := p.multiplyBackward(dactive, a.normed2, b.expand)
	dmiddle := p.normalizeBackward(dnormed2, a.middle, b.norm2)
	p.did(p.AddInto(p.scope, dmiddle, dmiddle, dy)) // the residual
	p.free(dy, dactive, dnormed2, a.active, a.expanded, a.normed2, a.middle)
	dattended := p.multiplyBackward(dmiddle, a.attended, b.project)
	dqkv := p.attendBackward(dattended, a.attention)
	dnormed1 := p.multiplyBackward(dqkv, a.normed1, b.attend)
	dx := p.normalizeBackward(dnormed1, a.in, b.norm1)
	p.did(p.AddInto(p.scope, dx, dx, dmiddle)) // the residual
	p.free(dmiddle, dattended, dqkv, dnormed1, a.normed1, a.attended, a.attention.qkv, a.attention.weights, a.in)
	return dx
}

// run keeps the operands of a model's gradient.
type run struct {
	tokens, in, normed, logits *tensor.Tensor // in: of the last norm
	blocks                     []activations
}

// forward computes the logits of each position of tokens, (batch, positions).
func (m *Model) forward(p *pass, tokens *tensor.Tensor) run {
	batch, length := tokens.Dim(0), tokens.Dim(1)
	mask := m.mask
	for dim := range 2 {
		if p.err == nil {
			mask = p.got(mask.Narrow(dim, 0, length))
		}
	}
	r := run{tokens: tokens}
	x := p.embed(tokens, m.table, m.positions)
	for _, b := range m.blocks {
		var a activations
		x, a = b.forward(p, x, mask, batch, m.config.Heads)
		r.blocks = append(r.blocks, a)
	}
	r.in = x
	r.normed = p.normalize(x, m.last)
	r.logits = p.product(r.normed, p.turned(m.table.Value))
	return r
}

// backward adds the gradients of all parameters, from the gradient of the logits.
func (m *Model) backward(p *pass, dlogits *tensor.Tensor, r run) {
	p.addTo(m.table, p.product(p.turned(dlogits), r.normed))
	dnormed := p.product(dlogits, m.table.Value)
	p.free(dlogits)
	dx := p.normalizeBackward(dnormed, r.in, m.last)
	p.free(dnormed, r.normed)
	for i, b := range slices.Backward(m.blocks) {
		dx = b.backward(p, dx, r.blocks[i])
	}
	p.embedBackward(dx, r.tokens, m.table, m.positions)
}
