package model

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cuda/sleep"
)

// Decoding has the sizes of a Decoder.
type Decoding struct {
	Batch    int // most sequences in a step; 0: 64
	Chunk    int // most tokens of a prompt that are computed at once; 0: 512
	PageRows int // positions of a page, a power of 2; 0: 16
}

// The defaults of Decoding. Pages of 16 positions leave 8 unused on average, and each head's keys in them are 2 KiB of bfloat16.
const (
	defaultBatch    = 64
	defaultChunk    = 512
	defaultPageRows = 16
)

// Decoder continues texts with a model's parameters alone. Steps and prefills run on streams of their own, so that both run
// side by side. A step is a captured graph for each of some numbers of sequences; the numbers that change from step to step lie in device
// memory.
//
// NewSequence may be called by any number of goroutines, Prefill by one at a time, Step by one at a time, and Sleep and Wake while
// no sequence is prefilled or makes a step.
type Decoder struct {
	config   Config
	decoding Decoding
	ops      ops.Ops
	weights  weights
	kernels  pageKernels

	steps, prompts lane
	pool           *cuda.Pool
	graphs         []*cuda.Graph // of the classes
	current        []*Sequence   // in the state of steps, which is as the last step has left it; nil: write it
}

// lane is a stream with memory for the activations of some rows.
type lane struct {
	c     *cuda.Context
	scope *tensor.Scope
	own   bool // the context
	state state

	x, normed, qkv, attended, expanded, logits *tensor.Tensor // (rows, ...); logits for each sequence
}

// NewDecoder makes a decoder. c is the context of the steps; the prefills have another stream of the device. It computes a step of
// each class, so that later steps compile nothing, and waits for the device. Close frees it, before o and c. Errors:
// *ConfigError, errors of the source, of operations and of memory.
func NewDecoder(c *cuda.Context, o ops.Ops, config Config, from Source, d Decoding) (_ *Decoder, err error) {
	if d, err = d.check(config); err != nil {
		return nil, err
	}
	x := &Decoder{config: config, decoding: d, ops: o}
	if err := x.open(c, from); err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// vectorBytes is the number of bytes that a lane of a kernel loads at once.
const vectorBytes = 16

// check returns the sizes with their defaults.
func (d Decoding) check(c Config) (Decoding, error) {
	if err := c.check(); err != nil {
		return d, err
	}
	for _, x := range []struct {
		of    *int
		value int
	}{{&d.Batch, defaultBatch}, {&d.Chunk, min(defaultChunk, c.Context)}, {&d.PageRows, defaultPageRows}} {
		if *x.of == 0 {
			*x.of = x.value
		}
	}
	const mostBatch, mostRows = 1 << 10, 1 << 15
	vector := vectorBytes / c.Type.Size() // elements that a lane of a kernel has
	lanes := c.Width / c.Heads / vector
	switch {
	case d.Batch < 1 || d.Batch > mostBatch || d.Chunk < 1 || d.Chunk > mostRows:
		return d, &ConfigError{fmt.Sprintf("Batch %d and Chunk %d: want 1 to %d and 1 to %d", d.Batch, d.Chunk, mostBatch, mostRows)}
	case d.PageRows < 1 || d.PageRows > mostRows || bits.OnesCount(uint(d.PageRows)) != 1:
		return d, &ConfigError{fmt.Sprintf("PageRows is %d: want a power of 2, at most %d", d.PageRows, mostRows)}
	case c.Width/c.Heads%vector != 0 || lanes > 32 || bits.OnesCount(uint(lanes)) != 1 || c.Width/c.Heads > 256: //nolint:gosec // positive
		return d, &ConfigError{fmt.Sprintf("heads of %d elements of %v: want a power of 2 from %d to %d", c.Width/c.Heads, c.Type, vector, min(256, 32*vector))}
	}
	return d, nil
}

// pageCount returns the entries of a sequence's table.
func (d *Decoder) pageCount() int { return d.pagesOf(d.config.Context + 1) }

// open loads, allocates and captures.
func (d *Decoder) open(c *cuda.Context, from Source) (err error) {
	if err := d.weights.load(c, d.config, from); err != nil {
		return err
	}
	if err := d.kernels.load(c, d.config.Type); err != nil {
		return err
	}
	d.steps = lane{c: c, state: state{rows: d.decoding.Batch, sequences: d.decoding.Batch, pages: d.pageCount()}}
	if err := d.steps.open(d.config); err != nil {
		return err
	}
	if d.prompts.c, err = c.NewStream(); err != nil {
		return err
	}
	d.prompts.own, d.prompts.state = true, state{rows: d.decoding.Chunk, sequences: 1, pages: d.pageCount()}
	if err := d.prompts.open(d.config); err != nil {
		return err
	}
	if err := d.warm(); err != nil {
		return err
	}
	return d.capture()
}

// open allocates the memory of a lane.
func (l *lane) open(config Config) (err error) {
	if l.scope, err = tensor.NewScope(l.c); err != nil {
		return err
	}
	for _, x := range []struct {
		to            **tensor.Tensor
		rows, columns int
	}{
		{&l.x, l.state.rows, config.Width},
		{&l.normed, l.state.rows, config.Width},
		{&l.qkv, l.state.rows, 3 * config.Width},
		{&l.attended, l.state.rows, config.Width},
		{&l.expanded, l.state.rows, 4 * config.Width},
		{&l.logits, l.state.sequences, config.padded()},
	} {
		if *x.to, err = tensor.New(l.scope, config.Type, x.rows, x.columns); err != nil {
			return err
		}
		if err := (*x.to).Allocate(); err != nil {
			return err
		}
	}
	l.state.buffer, err = l.c.Alloc(l.state.bytes())
	return err
}

// close frees the memory of a lane.
func (l *lane) close() (err error) {
	if l.state.buffer != (cuda.Buffer{}) {
		err = l.state.buffer.Free()
	}
	if l.scope != nil {
		err = errors.Join(err, l.scope.Close())
	}
	if l.own {
		err = errors.Join(err, l.c.Close())
	}
	return err
}

// classes returns the numbers of sequences of which each has a graph: powers of 2, and the greatest.
func (d *Decoder) classes() (all []int) {
	for n := 1; n < d.decoding.Batch; n *= 2 {
		all = append(all, n)
	}
	return append(all, d.decoding.Batch)
}

// reserve makes the products of prompts of all lengths: some need more temporary memory than longer ones do, which the context keeps. So no
// prompt needs more memory later, when it may be short.
func (d *Decoder) reserve() error {
	l := &d.prompts
	p := pass{Ops: d.ops, scope: l.scope}
	b := d.weights.blocks[0]
	for rows := 1; rows <= d.decoding.Chunk && p.err == nil; rows++ {
		x, expanded := d.first(l.x, rows), d.first(l.expanded, rows)
		p.linear(d.first(l.qkv, rows), d.first(l.normed, rows), b.attend, ops.Product{})
		p.linear(x, d.first(l.attended, rows), b.project, ops.Product{Add: true})
		p.linear(expanded, d.first(l.normed, rows), b.expand, ops.Product{Epilogue: gemm.GELU})
		p.linear(x, expanded, b.contract, ops.Product{Add: true})
	}
	return p.err
}

// warm computes a chunk of a prompt and a step of each class, without a sequence.
func (d *Decoder) warm() error {
	if err := d.prompts.state.write(d.prompts.c, nil, nil); err != nil {
		return err
	}
	for rows := 1; ; rows = min(2*rows, d.decoding.Chunk) { // products of other sizes compile nothing else
		if err := d.forward(&d.prompts, rows, nowhere); err != nil {
			return err
		}
		if err := d.draw(&d.prompts, rows, 1); err != nil {
			return err
		}
		if rows == d.decoding.Chunk {
			break
		}
	}
	if err := d.reserve(); err != nil {
		return err
	}
	if err := d.steps.state.write(d.steps.c, nil, nil); err != nil {
		return err
	}
	for _, n := range d.classes() {
		if err := d.step(n); err != nil {
			return err
		}
	}
	ctx := context.Background()
	return errors.Join(d.prompts.c.Synchronize(ctx), d.steps.c.Synchronize(ctx))
}

// capture captures a step of each class. The graphs run one after the other, and share their memory.
func (d *Decoder) capture() (err error) {
	if d.pool, err = d.steps.c.NewPool(); err != nil {
		return err
	}
	for _, n := range d.classes() {
		g, err := d.steps.c.Capture(func() error { return d.step(n) }, cuda.Shared(d.pool))
		if err != nil {
			return err
		}
		d.graphs = append(d.graphs, g)
	}
	return nil
}

// leastRows is the least number of rows of a step's products: libraries have no fast ones of one row. The second row of a step of one
// sequence is not used.
const leastRows = 2

// step submits a step of n rows of the state.
func (d *Decoder) step(n int) error {
	n = max(n, min(leastRows, d.decoding.Batch))
	if err := d.forward(&d.steps, n, batch); err != nil {
		return err
	}
	return d.draw(&d.steps, n, n)
}

// Step makes the next token of each sequence, one row of which the device has each, and waits for it. They have been prefilled,
// none is twice in the slice, and each has a token left. Errors, with which no sequence has changed and each may be freed:
// *ConfigError, sleep.ErrAsleep, and the device's.
func (d *Decoder) Step(all []*Sequence) ([]int64, error) {
	if len(all) < 1 || len(all) > d.decoding.Batch {
		return nil, &ConfigError{fmt.Sprintf("a step of %d sequences: want 1 to %d", len(all), d.decoding.Batch)}
	}
	for _, s := range all {
		if s.freed || s.decoder != d || s.position < 1 || s.Left() < 1 {
			return nil, &ConfigError{"a sequence of a step is freed, not prefilled, or complete"}
		}
	}
	if !slices.Equal(all, d.current) {
		tokens := make([]int64, len(all))
		for i, s := range all {
			tokens[i] = s.token
		}
		d.current = nil
		if err := d.steps.state.write(d.steps.c, tokens, all); err != nil {
			return nil, err
		}
	}
	class := slices.IndexFunc(d.classes(), func(n int) bool { return n >= len(all) })
	d.current = nil
	if err := d.graphs[class].Launch(d.steps.c); err != nil {
		return nil, err
	}
	tokens, err := cuda.Load[int64](d.steps.c, d.steps.state.tokens(), len(all))
	if err != nil {
		return nil, err
	}
	for i, s := range all {
		s.token = tokens[i]
		s.position++
	}
	d.current = slices.Clone(all)
	return tokens, nil
}

// Sleep gives the parameters' memory back, and saves them in memory of the host. Steps and prefills are refused until Wake. Errors:
// as sleep.Arena.Sleep.
func (d *Decoder) Sleep(ctx context.Context) error { return d.weights.arena.Sleep(ctx, sleep.Save) }

// Wake brings the parameters back. It does nothing if they are there. Errors: as sleep.Arena.Wake.
func (d *Decoder) Wake(ctx context.Context) error { return d.weights.arena.Wake(ctx) }

// Config returns the sizes of the model.
func (d *Decoder) Config() Config { return d.config }

// Batch returns the most sequences of a step.
func (d *Decoder) Batch() int { return d.decoding.Batch }

// Close waits for the work, and frees all memory except the sequences, which the caller frees before.
func (d *Decoder) Close() error {
	var all []error
	for _, g := range d.graphs {
		all = append(all, g.Close())
	}
	if d.pool != nil {
		all = append(all, d.pool.Close())
	}
	all = append(all, d.steps.close(), d.prompts.close(), d.kernels.close(), d.weights.close())
	return errors.Join(all...)
}
