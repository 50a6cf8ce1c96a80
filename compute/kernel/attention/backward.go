package attention

import (
	"github.com/go-vram/vram/compute/kernel/attention/internal/variant"
	"github.com/go-vram/vram/cuda"
)

// Backward submits the gradients of queries, keys and values for the gradient of the output, by three launches: numbers of each row, then
// the gradient of queries, then the others. It reads the output and the log-sum-exps of the forward pass. It does not wait.
//
// Gradients must not share memory with operands that are read, nor elements with each other: their rows may alternate in one
// range. Lengths and tables have no backward pass. Errors: *ProblemError, ErrUnsupported, cuda.ErrOverlap, errors of
// cuda.Context.Launch and of loading kernels. A call that fails has written no gradient, unless the driver refused a launch
// after another one.
func (a *Attention) Backward(c *cuda.Context, p Problem, o Operands, g Gradients) error {
	if a == nil {
		return cuda.ErrNotOpen
	}
	p, err := p.Check()
	if err != nil {
		return err
	}
	if p.PageRows > 0 || o.KeyLengths != (cuda.Range{}) {
		return &ProblemError{"PageRows", p.PageRows, "no table and no lengths in a backward pass"}
	}
	b := backward{c: c, p: p, delta: cuda.Null()}
	if err := b.x.fill(p, &o, &g); err != nil || p.Batch == 0 {
		return err
	}
	if a.plan(p).pass == variant.Forward && groupRows(p) < maxGroupRows && a.bulk(&o, &b.x.q, &b.x.k, &b.x.v, &b.x.grad) {
		return b.groups(a)
	}
	if err := b.load(a, variant.Queries, variant.Keys); err != nil {
		return err
	}
	if p.Queries > 0 {
		if err := b.sums(); err != nil {
			return err
		}
		if err := b.pass(b.byQueries, b.queries, p.Queries, p.Heads, &b.x.dq, &b.x.dq); err != nil {
			return err
		}
	}
	if p.Keys == 0 {
		return nil
	}
	return b.pass(b.byKeys, b.keys, p.Keys, p.KeyHeads, &b.x.dk, &b.x.dv)
}

// backward is one backward pass.
type backward struct {
	c                   *cuda.Context
	p                   Problem
	x                   all
	byQueries, byKeys   variant.Variant
	queries, keys, rows *cuda.Function

	delta        cuda.Arg // of rows, in the workspace
	deltaStrides strides
}

// load finds the kernels.
func (b *backward) load(a *Attention, byQueries, byKeys variant.Pass) (err error) {
	if b.byQueries, err = a.variant(byQueries, b.p); err != nil {
		return err
	}
	if b.byKeys, err = a.variant(byKeys, b.p); err != nil {
		return err
	}
	if b.rows, err = a.function(b.byQueries, b.byQueries.Other, false); err != nil {
		return err
	}
	if b.queries, err = a.function(b.byQueries, b.byQueries.Name, false); err != nil {
		return err
	}
	b.keys, err = a.function(b.byKeys, b.byKeys.Name, false)
	return err
}

// sums submits the row sums of the output times its gradient.
func (b *backward) sums() error {
	p, x := &b.p, &b.x
	rows := p.Batch * p.Heads * p.Queries
	b.deltaStrides = strides{p.Heads * p.Queries, p.Queries, 1}
	bytes := rows * numberBytes
	if x.q.batch == 1 { // of all sequences, where there are offsets
		b.deltaStrides = strides{0, x.q.rows, 1}
		bytes = p.Heads * x.q.rows * numberBytes
	}
	work, err := b.c.Workspace(bytes)
	if err != nil {
		return err
	}
	b.delta = cuda.In(work).Of(0, bytes)
	v := b.byQueries
	v.SharedBytes = 0
	perBlock := int64(v.Threads) * 8 / p.Dim // a thread has 8 elements
	return b.c.Launch(b.rows, geometry((rows+perBlock-1)/perBlock, v), x.o.arg(cuda.In), x.grad.arg(cuda.In), cuda.Out(work).Of(0, bytes), x.queryOffsets,
		x.o.strides(), x.grad.strides(), cuda.Value(b.deltaStrides), word(p.Heads), word(p.Queries), word(p.AllQueries), word(rows))
}

// pass submits the gradients of so many rows for each of the heads.
func (b *backward) pass(v variant.Variant, f *cuda.Function, rows, heads int64, first, second *operand) error {
	p, x := &b.p, &b.x
	blocks := (rows + int64(v.Rows) - 1) / int64(v.Rows)
	other := cuda.Null()
	if second != first {
		other = second.arg(cuda.Out)
	}
	return b.c.Launch(f, geometry(blocks*heads*p.Batch, v),
		x.q.arg(cuda.In), x.k.arg(cuda.In), x.v.arg(cuda.In), x.grad.arg(cuda.In), x.lse.arg(cuda.In), b.delta, first.arg(cuda.Out), other,
		x.queryOffsets, x.keyOffsets, x.q.strides(), x.k.strides(), x.v.strides(), x.grad.strides(), x.lse.strides(), cuda.Value(b.deltaStrides),
		first.strides(), second.strides(), word(p.Heads), word(p.group()), word(p.Queries), word(p.Keys), word(p.AllQueries), word(p.AllKeys),
		flag(p.Causal), cuda.Value(float32(p.Scale)), word(blocks))
}
