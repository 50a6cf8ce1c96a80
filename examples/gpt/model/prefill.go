package model

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// where says which positions the rows of a lane have.
type where struct {
	batch bool // row i is the next token of sequence i of the state
	first int  // else the rows follow each other in one sequence, from this position on
	pages []cuda.Buffer
}

var (
	batch   = where{batch: true}          //nolint:gochecknoglobals // constants
	nowhere = where{first: math.MinInt32} //nolint:gochecknoglobals // constants
)

// Prefill computes the keys and values of a prompt, on a stream of its own, waits for them, and returns the first token after it.
// The sequence is new. Errors, with which the sequence may be freed, or prefilled again: *ConfigError, sleep.ErrAsleep, and the
// device's.
func (d *Decoder) Prefill(s *Sequence, prompt []int64) (int64, error) {
	if s.freed || s.decoder != d || s.position != 0 || len(prompt) < 1 || len(prompt) > s.limit {
		return 0, &ConfigError{fmt.Sprintf("a prompt of %d tokens for a sequence of %d: want a new sequence, and room for one token", len(prompt), s.limit+1)}
	}
	for _, token := range prompt {
		if token < 0 || token >= int64(d.config.Vocabulary) {
			return 0, &ConfigError{fmt.Sprintf("token %d: want 0 to %d", token, d.config.Vocabulary-1)}
		}
	}
	l := &d.prompts
	for first := 0; first < len(prompt); first += d.decoding.Chunk {
		rows := min(d.decoding.Chunk, len(prompt)-first)
		now := *s
		now.position = first + rows - 1 // of the row whose logits are drawn from
		if err := l.state.write(l.c, prompt[first:first+rows], []*Sequence{&now}); err != nil {
			return 0, err
		}
		if err := d.forward(l, rows, where{first: first, pages: s.buffers}); err != nil {
			return 0, err
		}
		if first+rows < len(prompt) {
			continue
		}
		if err := d.draw(l, rows, 1); err != nil {
			return 0, err
		}
	}
	token, err := cuda.Load[int64](l.c, l.state.tokens(), 1)
	if err != nil {
		return 0, err
	}
	s.position, s.token = len(prompt), token[0]
	return s.token, nil
}

// forward computes the activations of the first rows of a lane, without the last norm.
func (d *Decoder) forward(l *lane, rows int, at where) error {
	x, normed, qkv := d.first(l.x, rows), d.first(l.normed, rows), d.first(l.qkv, rows)
	attended, expanded := d.first(l.attended, rows), d.first(l.expanded, rows)
	p := pass{Ops: d.ops, scope: l.scope}
	p.did(d.embed(l, x, rows, at))
	for i, b := range d.weights.blocks {
		p.norm(normed, x, b.norm1)
		p.linear(qkv, normed, b.attend, ops.Product{})
		if p.err == nil && !at.batch {
			p.did(d.store(l, qkv, rows, i, at))
		}
		if p.err == nil {
			p.did(d.attend(l, attended, qkv, rows, i, at))
		}
		p.linear(x, attended, b.project, ops.Product{Add: true})
		p.norm(normed, x, b.norm2)
		p.linear(expanded, normed, b.expand, ops.Product{Epilogue: gemm.GELU})
		p.linear(x, expanded, b.contract, ops.Product{Add: true})
	}
	return p.err
}

// first returns the first rows of a tensor, which has as many.
func (d *Decoder) first(t *tensor.Tensor, rows int) *tensor.Tensor {
	view, err := t.Narrow(0, 0, rows)
	if err != nil {
		return nil // cannot be; the next operation refuses it
	}
	return view
}

// norm writes the layer norm of each row.
func (p *pass) norm(out, x *tensor.Tensor, n affine) {
	if p.err == nil {
		p.did(p.LayerNormInto(p.scope, out, x, n.weight, n.bias, 1, epsilon))
	}
}

// linear writes x·weight + bias, or adds it.
func (p *pass) linear(out, x *tensor.Tensor, l affine, how ops.Product) {
	if p.err == nil {
		how.Bias = l.bias
		_, err := p.MatmulInto(p.scope, out, x, l.weight, how)
		p.did(err)
	}
}

// embed writes the sums of both tables' rows.
func (d *Decoder) embed(l *lane, x *tensor.Tensor, rows int, at where) error {
	var k call
	k.reads(d.weights.table)
	k.reads(d.weights.positions)
	k.at(l.state.tokens(), cuda.In)
	l.positions(&k, at)
	k.writes(x)
	k.word(at.first)
	k.word(d.config.Width)
	k.word(d.config.Vocabulary)
	k.word(d.config.Context)
	const threads = 128
	return k.launch(l.c, d.kernels.embed, rows, 1, threads)
}

// positions adds the address of the rows' positions.
func (l *lane) positions(k *call, at where) {
	if at.batch {
		k.at(l.state.positions(), cuda.In)
	} else {
		k.long(0)
	}
}

// store writes keys and values to the pages of one sequence.
func (d *Decoder) store(l *lane, qkv *tensor.Tensor, rows, layer int, at where) error {
	if at.first < 0 {
		return nil
	}
	var k call
	k.reads(qkv)
	k.at(l.state.table(), cuda.In)
	k.long(d.layer(layer))
	k.word(at.first)
	d.paging(&k)
	for _, b := range at.pages {
		k.also(cuda.Out(b))
	}
	const threads = 128
	return k.launch(l.c, d.kernels.store, rows, 1, threads)
}

// layer returns the number of a page's elements before a layer.
func (d *Decoder) layer(i int) uint64 {
	return uint64(i) * 2 * uint64(d.config.Width) * uint64(d.decoding.PageRows) //nolint:gosec // checked
}

// paging adds the sizes of heads and pages.
func (d *Decoder) paging(k *call) {
	k.word(d.config.Heads)
	k.word(d.config.Width / d.config.Heads)
	k.word(bits.Len(uint(d.decoding.PageRows)) - 1) //nolint:gosec // checked
	k.word(d.pageCount())
}

// attend writes the attention of each row to the keys of its sequence. In a step a kernel of the graph finds the pages: they are
// memory of the step's stream, which its order keeps until a free after the step.
func (d *Decoder) attend(l *lane, out, qkv *tensor.Tensor, rows, layer int, at where) error {
	var k call
	k.reads(qkv)
	k.writes(out)
	k.at(l.state.table(), cuda.In)
	l.positions(&k, at)
	k.long(d.layer(layer))
	k.word(at.first)
	d.paging(&k)
	if at.batch { // each row has a table, and is stored by the kernel
		k.word(d.pageCount())
		k.word(1)
	} else {
		k.word(0)
		k.word(0)
	}
	k.number(float32(1 / math.Sqrt(float64(d.config.Width/d.config.Heads))))
	for _, b := range at.pages {
		k.also(cuda.In(b))
	}
	return k.launch(l.c, d.kernels.attend, d.config.Heads, rows, d.attendThreads(d.config.Heads*rows, l.c.Info().Multiprocessors))
}

// attendThreads returns the threads of a block of attention. A block waits for the memory of its keys: where there are few blocks,
// more threads read more keys at once. Not more than half of the threads that the multiprocessors run together, so that all blocks run, and not
// more than read the keys of the context at once.
func (d *Decoder) attendThreads(blocks, multiprocessors int) int {
	const warp, usual, most, half, keysAtOnce = 32, 128, 512, 1024, 4
	lanes := d.config.Width / d.config.Heads * d.config.Type.Size() / vectorBytes
	threads := warp
	for threads < most && threads < lanes*d.config.Context/keysAtOnce && (threads < usual || 2*threads*blocks <= half*multiprocessors) {
		threads *= 2
	}
	return threads
}

// draw draws tokens by the logits of the last rows, one for each of the first sequences of the state.
func (d *Decoder) draw(l *lane, rows, sequences int) error {
	p := pass{Ops: d.ops, scope: l.scope}
	x := p.got(l.x.Narrow(0, rows-sequences, sequences))
	normed, logits := d.first(l.normed, sequences), d.first(l.logits, sequences)
	p.norm(normed, x, d.weights.last)
	if p.err == nil {
		_, err := p.MatmulInto(p.scope, logits, normed, d.weights.head, ops.Product{})
		p.did(err)
	}
	if p.err != nil {
		return p.err
	}
	var k call
	k.reads(logits)
	k.at(l.state.tokens(), cuda.InOut)
	k.at(l.state.positions(), cuda.InOut)
	k.at(l.state.seeds(), cuda.In)
	k.at(l.state.heats(), cuda.In)
	k.at(l.state.tops(), cuda.In)
	k.word(d.config.Vocabulary)
	k.word(d.config.padded())
	const few, threads, most = 4096, 256, 1024
	if d.config.Vocabulary <= few {
		return k.launch(l.c, d.kernels.sample, sequences, 1, threads)
	}
	return k.launch(l.c, d.kernels.sample, sequences, 1, most)
}
