package attention

import (
	"math/bits"

	"github.com/go-vram/vram/compute/kernel/attention/internal/variant"
	"github.com/go-vram/vram/cuda"
)

// plan is how a forward pass is launched.
type plan struct {
	pass  variant.Pass
	parts int64 // of the keys, each by other blocks
}

const (
	// maxPacked is how many rows, of all heads that share keys, are few: several blocks read the same keys for more than 16.
	maxPacked = 64
	// minPartKeys is the least number of keys of a part: a shorter one is not worth a second launch.
	minPartKeys = 256
	// maxParts bounds the parts that are added up in the end.
	maxParts = 64
	// blocksPerProcessor is how many blocks a multiprocessor runs at once, about.
	blocksPerProcessor = 4
)

// plan chooses. Few rows leave the matrix units idle: they wait for the memory of keys, which many blocks must read then.
func (a *Attention) plan(p Problem) plan {
	packed := p.Queries * p.group()
	if packed > maxPacked {
		return plan{pass: variant.Forward, parts: 1}
	}
	blocks := (packed + 15) / 16 * p.KeyHeads * p.Batch
	parts := min(blocksPerProcessor*a.multiprocessors/max(blocks, 1), p.Keys/minPartKeys, maxParts)
	return plan{pass: variant.Decoding, parts: max(parts, 1)}
}

// Forward submits O = softmax(scale · Q · Kᵀ) · V, and the log-sum-exps if there is a range for them. It does not wait. O and
// LSE must not share memory with other operands. Buffers are checked, ordered and announced as in cuda.Context.Launch, and
// captured in graphs. Errors: *ProblemError, ErrUnsupported, cuda.ErrOverlap, errors of Launch and of loading kernels.
func (a *Attention) Forward(c *cuda.Context, p Problem, o Operands) error {
	if a == nil {
		return cuda.ErrNotOpen
	}
	p, err := p.Check()
	if err != nil {
		return err
	}
	var x all
	if err := x.fill(p, &o, nil); err != nil || p.Empty() {
		return err
	}
	l := a.plan(p)
	if l.pass == variant.Forward && a.bulk(&o, &x.q, &x.k, &x.v) {
		return a.groupForward(c, p, &x)
	}
	v, err := a.variant(l.pass, p)
	if err != nil {
		return err
	}
	f, err := a.function(v, v.Name, false)
	if err != nil {
		return err
	}
	rows, heads := p.Queries, p.Heads
	if l.pass == variant.Decoding {
		rows, heads = rows*p.group(), p.KeyHeads
	}
	work := partial{o: cuda.Null(), logs: cuda.Null()}
	var combine *cuda.Function
	if l.parts > 1 {
		if combine, err = a.function(v, v.Other, false); err != nil {
			return err
		}
		if work, err = p.partial(c, l.parts); err != nil {
			return err
		}
	}
	blocks := (rows + int64(v.Rows) - 1) / int64(v.Rows)
	args := append(make([]cuda.Arg, 0, 32),
		x.q.arg(cuda.In), x.k.arg(cuda.In), x.v.arg(cuda.In), x.o.arg(cuda.Out), x.lse.arg(cuda.Out),
		x.queryOffsets, x.keyOffsets, x.keyLengths, x.table,
		x.q.strides(), x.k.strides(), x.v.strides(), x.o.strides(), x.lse.strides(), cuda.Value(p.paging()),
		word(p.Heads), word(p.group()), word(p.Queries), word(p.Keys), word(p.AllQueries), word(p.AllKeys), flag(p.Causal), cuda.Value(float32(p.Scale*log2E)),
	)
	if l.parts > 1 {
		args[3], args[4] = cuda.Null(), cuda.Null()
	}
	args = append(args, work.o, work.logs, word(blocks), word(l.parts))
	if err := c.Launch(f, geometry(blocks*l.parts*heads*p.Batch, v), args...); err != nil || l.parts == 1 {
		return err
	}
	return work.combine(c, combine, p, v, &x, l.parts)
}

// log2E is the logarithm of e of base 2: exponentials are powers of 2.
const log2E = 1.4426950408889634

// paging is as attend.h has it.
type paging struct{ Shift, Pages, Width uint32 }

func (p Problem) paging() paging {
	return paging{uint32(bits.Len64(uint64(max(p.PageRows, 1))) - 1), uint32(p.Pages), uint32(p.PagesPerSequence)} //nolint:gosec // checked
}

// geometry returns the geometry of a variant.
func geometry(blocks int64, v variant.Variant) cuda.Geometry {
	return cuda.Geometry{
		Grid: cuda.Dim3{X: uint32(blocks), Y: 1, Z: 1}, Block: cuda.Dim3{X: uint32(v.Threads), Y: 1, Z: 1}, SharedBytes: int64(v.SharedBytes), //nolint:gosec // checked
	}
}

// partial is the memory of parts: their outputs, and the logarithms of their sums.
type partial struct {
	buffer           cuda.Buffer
	oBytes, logBytes int64
	rows             int64
	o, logs          cuda.Arg
}

func (p Problem) partial(c *cuda.Context, parts int64) (partial, error) {
	w := partial{rows: p.Batch * p.Heads * p.Queries}
	w.oBytes, w.logBytes = parts*w.rows*p.Dim*4, parts*w.rows*4
	var err error
	if w.buffer, err = c.Workspace(w.oBytes + w.logBytes); err != nil {
		return w, err
	}
	w.o, w.logs = cuda.Out(w.buffer).Of(0, w.oBytes), cuda.Out(w.buffer).Of(w.oBytes, w.logBytes)
	return w, nil
}

// combine adds up the parts.
func (w partial) combine(c *cuda.Context, f *cuda.Function, p Problem, v variant.Variant, x *all, parts int64) error {
	v.SharedBytes = 0
	threads := int64(v.Threads)
	blocks := (w.rows*p.Dim/4 + threads - 1) / threads // a thread has four elements
	return c.Launch(f, geometry(blocks, v), x.o.arg(cuda.Out), x.lse.arg(cuda.Out), x.queryOffsets, x.o.strides(), x.lse.strides(),
		word(p.Heads), word(p.Queries), word(p.AllQueries), word(w.rows),
		cuda.In(w.buffer).Of(0, w.oBytes), cuda.In(w.buffer).Of(w.oBytes, w.logBytes), word(parts))
}
