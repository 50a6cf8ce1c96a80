package model

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/go-vram/vram/compute/kernel/matmul"
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
	final            norm
	all              []*Parameter
	headPath         matmul.Path
	mask             *tensor.Tensor // (positions, positions): 0 for a key at or before the query, else -Inf; nil where attention is a kernel
}

// New makes a model with random parameters: one seed has one model, bit for bit. Close frees it. Errors: *ConfigError, and
// errors of operations and memory.
func New(c *cuda.Context, o ops.Ops, config Config, seed uint64) (*Model, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	return newPart(c, o, config, seed, 0, config.Layers, func(int) bool { return true })
}

// newPart makes a part of a model: the blocks from first up to end, before them the tables with the first one, and the last norm
// with the last one. It has the parameters that the whole model has, with their state of training for the units that the part owns.
// Units are the tables, each block, and the last norm.
func newPart(c *cuda.Context, o ops.Ops, config Config, seed uint64, first, end int, owns func(unit int) bool) (_ *Model, err error) {
	scope, err := tensor.NewScope(c)
	if err != nil {
		return nil, err
	}
	m := &maker{s: scope, config: config, random: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // no secret
	x := &Model{ops: o, scope: scope, config: config}
	m.skips, m.lent = first > 0, !owns(0)
	x.table = m.padded("wte.weight", deviation, 0, config.padded(), config.Vocabulary, config.Width)
	x.positions = m.parameter("wpe.weight", deviation, 0, config.Context, config.Width)
	for i := range config.Layers {
		m.skips, m.lent = i < first || i >= end, !owns(i+1)
		if b := m.block(i); !m.skips {
			x.blocks = append(x.blocks, b)
		}
	}
	m.skips, m.lent = end < config.Layers, !owns(config.Layers+1)
	x.final = m.norm("ln_f")
	if !hasKernel(c, config) {
		x.mask = m.got(tensor.From(scope, causal(config.Context), config.Context, config.Context))
	}
	x.all = m.all
	if m.err == nil {
		m.err = x.refresh()
	}
	if m.err != nil {
		return nil, errors.Join(m.err, scope.Close())
	}
	return x, nil
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
		if x.Param != nil {
			p.did(p.CopyInto(p.scope, x.Copy, x.Param))
		}
	}
	return p.err
}

// stream is the residual stream between layers: a sum, and the last layer's part, which the next norm adds to it. part is nil
// where it was added.
type stream struct {
	sum, part *tensor.Tensor
	lent      bool // the norm does not free part
}

// activations are the operands of a block's gradient.
type activations struct {
	in, normed1       *tensor.Tensor
	attention         attention
	attended, middle  *tensor.Tensor
	normed2, expanded *tensor.Tensor // expanded: the operand of GELU
	active            *tensor.Tensor
}

// forward computes a block.
func (b block) forward(p *pass, x stream, mask *tensor.Tensor, batch, heads int) (stream, activations) {
	var a activations
	p.in(b.attention)
	a.in, a.normed1 = p.settle(x, b.norm1)
	a.attended, a.attention = p.attend(p.multiply(a.normed1, b.attend), mask, batch, heads)
	p.in(b.feedForward)
	a.middle, a.normed2 = p.settle(stream{sum: a.in, part: p.multiply(a.attended, b.project)}, b.norm2)
	if p.err != nil {
		return stream{}, a
	}
	a.active, a.expanded = p.activate(a.normed2, b.expand)
	return stream{sum: a.middle, part: p.multiply(a.active, b.contract)}, a
}

// backward returns the gradient of the block's operand, computes the gradients of its parameters, and frees the activations. It
// writes over dy.
func (b block) backward(p *pass, dy *tensor.Tensor, a activations) *tensor.Tensor {
	p.in(b.feedForward)
	dexpanded := p.activateBackward(dy, a.active, a.expanded, b.contract)
	p.free(a.active, a.expanded)
	dnormed2 := p.multiplyBackward(dexpanded, a.normed2, b.expand)
	p.free(dexpanded, a.normed2)
	dx := p.normalizeBackward(dnormed2, dy, a.middle, b.norm2)
	p.free(dnormed2, a.middle)
	p.in(b.attention)
	dattended := p.multiplyBackward(dx, a.attended, b.project)
	dqkv := p.attendBackward(dattended, a.attention)
	p.free(dattended, a.attended)
	p.release(a.attention)
	dnormed1 := p.multiplyBackward(dqkv, a.normed1, b.attend)
	p.free(dqkv, a.normed1)
	dx = p.normalizeBackward(dnormed1, dx, a.in, b.norm1)
	p.free(dnormed1, a.in)
	return dx
}

// run keeps the operands of a model's gradient.
type run struct {
	tokens, in, normed *tensor.Tensor // in: of the last norm
	blocks             []activations
}

// maskOf returns the mask of sequences of a length; nil where attention is a kernel.
func (m *Model) maskOf(p *pass, length int) *tensor.Tensor {
	mask := m.mask
	for dim := range 2 {
		if p.err == nil && mask != nil {
			mask = p.got(mask.Narrow(dim, 0, length))
		}
	}
	return mask
}

// forward computes the normed activations of each position of tokens, (batch, positions): the head's operand.
func (m *Model) forward(p *pass, tokens *tensor.Tensor) run {
	batch, length := tokens.Dim(0), tokens.Dim(1)
	mask := m.maskOf(p, length)
	r := run{tokens: tokens}
	x := stream{sum: p.embed(tokens, m.table, m.positions)}
	for _, b := range m.blocks {
		if p.err != nil {
			return r
		}
		var a activations
		x, a = b.forward(p, x, mask, batch, m.config.Heads)
		r.blocks = append(r.blocks, a)
	}
	p.in("ln_f" + ofActivations)
	r.in, r.normed = p.settle(x, m.final)
	return r
}

// head returns the logits of normed rows. Those past the vocabulary are 0: see vocabulary.
func (m *Model) head(p *pass, normed *tensor.Tensor) *tensor.Tensor {
	p.in("head" + ofActivations)
	table := p.turned(m.table.Value)
	if p.err != nil {
		return nil
	}
	logits, path, err := p.Matmul(p.scope, normed, table, ops.Product{})
	m.headPath = path
	return p.got(logits, err)
}

// vocabulary returns the view of logits without padding.
func (m *Model) vocabulary(p *pass, logits *tensor.Tensor) *tensor.Tensor {
	if p.err != nil {
		return nil
	}
	return p.got(logits.Narrow(-1, 0, m.config.Vocabulary))
}

// Logits returns the logits of each position of sequences of one length, one after the other. It waits for the device.
func (m *Model) Logits(tokens []int64, batch int) (logits []float32, err error) {
	if batch < 1 || len(tokens) == 0 || len(tokens)%batch != 0 || len(tokens)/batch > m.config.Context {
		return nil, &ConfigError{fmt.Sprintf("%d tokens are no batch of %d sequences of 1 to %d positions", len(tokens), batch, m.config.Context)}
	}
	err = tensor.Scoped(m.scope, func(scope *tensor.Scope) error {
		p := &pass{Ops: m.ops, scope: scope}
		x, err := tensor.From(scope, tokens, batch, len(tokens)/batch)
		if err != nil {
			return err
		}
		logits, err = p.read(m.vocabulary(p, m.head(p, m.forward(p, x).normed)))
		return err
	})
	return logits, err
}

// HeadPath says how the last product of the head was computed: by the library, or by which own kernel.
func (m *Model) HeadPath() matmul.Path { return m.headPath }

// headBackward returns the gradient of the normed rows, and computes the token table's gradient. It frees the gradient of the
// logits and the rows.
func (m *Model) headBackward(p *pass, dlogits, normed *tensor.Tensor) *tensor.Tensor {
	p.gradient(m.table, p.turned(dlogits), normed)
	p.free(normed)
	dnormed := p.product(dlogits, m.table.Value)
	p.free(dlogits)
	return dnormed
}

// backward computes the gradients of all parameters, from the gradient of the logits.
func (m *Model) backward(p *pass, dlogits *tensor.Tensor, r run) {
	dnormed := m.headBackward(p, dlogits, r.normed)
	dx := p.normalizeBackward(dnormed, nil, r.in, m.final)
	p.free(dnormed, r.in)
	for i, b := range slices.Backward(m.blocks) {
		if p.err != nil {
			return
		}
		dx = b.backward(p, dx, r.blocks[i])
	}
	p.embedBackward(dx, r.tokens, m.table, m.positions)
	p.free(dx)
}
