package ops

import (
	"errors"
	"fmt"
	"sync"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/attention"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// Attentions are attention by own kernels, and its gradients. They need compute capability 8.0.
type Attentions struct{ set *set }

// AttentionConfig says which keys a query sees. The zero value is full attention.
type AttentionConfig struct {
	Causal bool    // query i sees the keys up to i + keys - queries
	Scale  float64 // of scores, above 0; 0 for 1 divided by the root of the elements of a head

	// Sequences of different lengths, one after the other: int32, one more than there are sequences. Sequence i has the rows
	// from offset i to offset i+1. MaxQueries and MaxKeys bound its lengths; 0 stands for all rows.
	QueryOffsets, KeyOffsets *tensor.Tensor
	MaxQueries, MaxKeys      int
	// Lengths of caches of keys: int32, one for each sequence.
	KeyLengths *tensor.Tensor
	// The pages of caches: int32, a row for each sequence. Key j is row j % n of page Table[sequence, j / n], of pages of n rows,
	// a power of 2.
	Table *tensor.Tensor
}

// Attention returns softmax(scale · q · kᵀ) · v, and the log-sum-exp of each query in float32, which the gradients need. The
// shapes are [batch, heads, queries, elements] of q, and [batch, key heads, keys, elements] of k and v; key heads divide heads,
// and each serves as many of them (GQA). With offsets q, or k and v, have no batch: [heads, rows, elements]. With a table k and
// v are pages: [pages, key heads, rows, elements]. Heads have 64 or 128 elements of float16 or bfloat16. A query that sees no
// key has the output 0 and the log-sum-exp -Inf. Package compute/kernel/attention has the error bounds, and the rules for NaN.
//
// Views whose elements are contiguous within a row, whose other strides are multiples of 8, and that begin at a multiple of 16
// bytes are read and written as they are; others are copied to temporary memory.
//
// An offset out of order or out of range, a length above the number of keys, and a page out of range end the launch by a trap,
// as indices do. Errors: ErrShape, ErrNumber, *tensor.TypeError, attention.ErrUnsupported.
func (o Attentions) Attention(at tensor.Context, q, k, v *tensor.Tensor, how AttentionConfig) (out, lse *tensor.Tensor, err error) {
	shape := q.Shape()
	statistics := sized(opAttention, tensor.Float32, shape[:max(len(shape)-1, 0)], q, k, v)
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error { return o.AttentionInto(at, all[0], all[1], q, k, v, how) },
		sized(opAttention, q.Type(), shape, q, k, v), statistics)
	return all[0], all[1], err
}

// AttentionInto writes Attention to tensors of the same types, which must not overlap the operands, nor each other: that is
// kernel.ErrOverlap. lse may be nil.
func (o Attentions) AttentionInto(at tensor.Context, out, lse, q, k, v *tensor.Tensor, how AttentionConfig) error {
	err := attend(at, o.set, how, [attended]*tensor.Tensor{attendQ: q, attendK: k, attendV: v, attendOut: out, attendLSE: lse}, attendOut, attendLSE)
	if err != nil {
		return failed(opAttention, err, given(out, lse), q, k, v)
	}
	return nil
}

// AttentionBackward returns the gradients of q, k and v for the gradient of the output: from the output and the log-sum-exps of
// Attention with the same operands. It is deterministic. There is none with lengths or a table. Errors: as Attention.
func (o Attentions) AttentionBackward(at tensor.Context, grad, out, lse, q, k, v *tensor.Tensor, how AttentionConfig) (dq, dk, dv *tensor.Tensor, err error) {
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error {
		return o.AttentionBackwardInto(at, all[0], all[1], all[2], grad, out, lse, q, k, v, how)
	}, like(opAttentionBackward, q), like(opAttentionBackward, k), like(opAttentionBackward, v))
	return all[0], all[1], all[2], err
}

// AttentionBackwardInto writes AttentionBackward to tensors of the same types, which must not overlap the operands, nor each
// other: that is kernel.ErrOverlap. Views of one tensor whose rows alternate, as the parts of a product for queries, keys and
// values, do not overlap if they have one shape. A gradient that is nil is not written: it takes temporary memory, unless all three
// are nil.
func (o Attentions) AttentionBackwardInto(at tensor.Context, dq, dk, dv, grad, out, lse, q, k, v *tensor.Tensor, how AttentionConfig) error {
	err := attend(at, o.set, how, [attended]*tensor.Tensor{q, k, v, out, lse, grad, dq, dk, dv}, attendDQ, attendDK, attendDV)
	if err != nil {
		return failed(opAttentionBackward, err, given(dq, dk, dv), given(grad, out, lse, q, k, v)...)
	}
	return nil
}

// The tensors of attention.
const (
	attendQ = iota
	attendK
	attendV
	attendOut
	attendLSE
	attendGrad
	attendDQ // the gradients have the order of q, k and v
	attendDK
	attendDV
	attended
)

// attending is one call.
type attending struct {
	set     *set
	in      tensor.Context // of temporary memory, which has the tag of a scope
	on      *cuda.Context
	how     AttentionConfig
	all     [attended]*tensor.Tensor // nil where the call has none; copies of those whose layout no kernel takes
	written [attended]bool
	back    bool // the gradients are computed
	problem attention.Problem
	numbers attention.Operands // ranges of int32 alone
}

var attendings sync.Pool //nolint:gochecknoglobals // of *attending, made on first use: memory that one call uses at a time

// attend computes attention, or its gradients, of tensors of which some are written.
func attend(at tensor.Context, s *set, how AttentionConfig, all [attended]*tensor.Tensor, written ...int) error {
	if s == nil {
		return ErrNotOpen
	}
	a, found := attendings.Get().(*attending)
	if !found {
		a = new(attending)
	}
	*a = attending{set: s, how: how, all: all, back: written[0] == attendDQ}
	defer func() {
		*a = attending{}
		attendings.Put(a)
	}()
	return a.run(at, written)
}

// run checks the tensors and submits the launches.
func (a *attending) run(at tensor.Context, written []int) error {
	var err error
	a.in = at
	if a.on, err = tensor.ContextOf(at); err != nil {
		return err
	}
	for _, i := range written {
		a.written[i] = a.all[i] != nil
	}
	if err := a.types(); err != nil {
		return err
	}
	if err := a.shapes(); err != nil {
		return err
	}
	if err := a.apart(); err != nil {
		return err
	}
	switch {
	case !a.back:
		return a.packed(0)
	case a.all[attendDQ] == nil && a.all[attendDK] == nil && a.all[attendDV] == nil:
		return nil
	}
	return a.whole(attendDQ)
}

// types checks the types. Errors: tensor.ErrNoTensor, *tensor.TypeError.
func (a *attending) types() error {
	of := a.all[attendQ].Type()
	for i, t := range a.all {
		if t == nil && (i >= attendDQ || i >= attendLSE && !a.back) {
			continue
		}
		want := of
		if i == attendLSE {
			want = tensor.Float32
		}
		switch have := t.Type(); {
		case !have.Valid():
			return tensor.ErrNoTensor
		case have != want || of != tensor.Float16 && of != tensor.BFloat16:
			return &tensor.TypeError{Op: opAttention.String(), Types: []tensor.Type{of, have}}
		}
	}
	for _, t := range [...]*tensor.Tensor{a.how.QueryOffsets, a.how.KeyOffsets, a.how.KeyLengths, a.how.Table} {
		switch {
		case t == nil:
		case !t.Type().Valid():
			return tensor.ErrNoTensor
		case t.Type() != tensor.Int32:
			return &tensor.TypeError{Op: opAttention.String(), Types: []tensor.Type{t.Type()}}
		}
	}
	return nil
}

// shapes checks the shapes and makes the problem of them. Errors: ErrShape, ErrNumber.
func (a *attending) shapes() error {
	q, k, how := a.all[attendQ], a.all[attendK], &a.how
	ranks := [...]int{attendQ: 4, attendK: 4}
	if how.QueryOffsets != nil {
		ranks[attendQ] = 3
	}
	if how.KeyOffsets != nil {
		ranks[attendK] = 3
	}
	if q.Rank() != ranks[attendQ] || k.Rank() != ranks[attendK] || q.Dim(-1) != k.Dim(-1) || k.Dim(-3) == 0 {
		return ErrShape
	}
	for i, like := range [...]*tensor.Tensor{attendV: k, attendOut: q, attendGrad: q, attendDQ: q, attendDK: k, attendDV: k} {
		if like != nil && a.all[i] != nil && !sameShape(a.all[i], like) {
			return ErrShape
		}
	}
	if lse := a.all[attendLSE]; lse != nil && !isRows(lse, q) {
		return ErrShape
	}
	p := attention.Problem{
		Heads: int64(q.Dim(-3)), KeyHeads: int64(k.Dim(-3)), Queries: int64(q.Dim(-2)), Keys: int64(k.Dim(-2)), Dim: int64(q.Dim(-1)),
		Type: gemm.BFloat16, Causal: how.Causal, Scale: how.Scale,
	}
	if q.Type() == tensor.Float16 {
		p.Type = gemm.Float16
	}
	if err := a.sequences(&p); err != nil {
		return err
	}
	var err error
	if a.problem, err = p.Check(); err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*attention.ProblemError](err); ok && wrong.Field == "Scale" {
		return badNumber("the scale", how.Scale)
	}
	return fmt.Errorf("%w: %w", ErrShape, err)
}

// sequences sets the numbers of sequences and their rows. Errors: ErrShape, errors of tensor.Tensor.Range.
func (a *attending) sequences(p *attention.Problem) error {
	q, k, how := a.all[attendQ], a.all[attendK], &a.how
	batch := q.Dim(0)
	if how.QueryOffsets != nil {
		batch = how.QueryOffsets.Len() - 1
		p.AllQueries, p.Queries = p.Queries, longest(how.MaxQueries, p.Queries)
	}
	p.Batch = int64(batch)
	wantKeys := batch // of the first dimension of k
	switch {
	case how.KeyOffsets != nil:
		p.AllKeys, p.Keys = p.Keys, longest(how.MaxKeys, p.Keys)
		wantKeys = k.Dim(0)
	case how.Table != nil:
		if how.KeyLengths == nil || how.Table.Rank() != 2 {
			return ErrShape
		}
		p.PageRows, p.Pages, p.PagesPerSequence = p.Keys, int64(k.Dim(0)), int64(how.Table.Dim(1))
		if p.PageRows == 0 || p.PagesPerSequence == 0 || p.PagesPerSequence > attention.MaxRows/p.PageRows {
			return ErrShape
		}
		p.Keys = p.PageRows * p.PagesPerSequence
		wantKeys = k.Dim(0)
	}
	if k.Dim(0) != wantKeys {
		return ErrShape
	}
	for _, x := range [...]struct {
		t     *tensor.Tensor
		count int
		to    *cuda.Range
	}{
		{how.QueryOffsets, batch + 1, &a.numbers.QueryOffsets},
		{how.KeyOffsets, batch + 1, &a.numbers.KeyOffsets},
		{how.KeyLengths, batch, &a.numbers.KeyLengths},
		{how.Table, batch * int(p.PagesPerSequence), &a.numbers.Table},
	} {
		if x.t == nil {
			continue
		}
		if !x.t.Layout().Contiguous() || x.t.Len() != x.count || x.t != how.Table && x.t.Rank() != 1 {
			return ErrShape
		}
		var err error
		if *x.to, err = x.t.Range(); err != nil {
			return err
		}
	}
	return nil
}

// longest returns a bound, or where it is 0, all rows.
func longest(bound int, all int64) int64 {
	if bound == 0 {
		return all
	}
	return int64(bound)
}

// isRows reports whether a tensor has the shape of another one without its last dimension.
func isRows(t, of *tensor.Tensor) bool {
	if t.Rank() != of.Rank()-1 {
		return false
	}
	for d := range t.Rank() {
		if t.Dim(d) != of.Dim(d) {
			return false
		}
	}
	return true
}

// apart checks that outputs share no memory with operands, nor with each other. Errors: kernel.ErrOverlap,
// kernel.ErrRepeats.
func (a *attending) apart() error {
	for i, out := range a.all {
		if !a.written[i] {
			continue
		}
		if out.Layout().MayOverlap() {
			return kernel.ErrRepeats
		}
		for j, other := range a.all {
			if j == i || a.written[j] && (j < i || alternate(out, other)) {
				continue
			}
			if err := apart(out, other); err != nil {
				return err
			}
		}
		for _, other := range [...]*tensor.Tensor{a.how.QueryOffsets, a.how.KeyOffsets, a.how.KeyLengths, a.how.Table} {
			if err := apart(out, other); err != nil {
				return err
			}
		}
	}
	return nil
}

// alternate reports whether two tensors are of one shape and type and have alternating elements of one buffer, as views of its
// parts.
func alternate(a, b *tensor.Tensor) bool {
	x, y := a.Layout(), b.Layout()
	bufferA, errA := a.Buffer()
	bufferB, errB := b.Buffer()
	if errA != nil || errB != nil || bufferA != bufferB || a.Type() != b.Type() || !layout.SameShape(x, y) || x.Rank() == layout.MaxRank {
		return false
	}
	for d := range x.Rank() {
		if x.Stride(d) != y.Stride(d) {
			return false
		}
	}
	both, err := layout.New(append(x.Shape(), 2), append(x.Strides(), y.Offset()-x.Offset()), x.Offset())
	return err == nil && !both.MayOverlap()
}

// whole submits the launches, with temporary memory for the gradients from a number on that are skipped.
func (a *attending) whole(from int) error {
	for i := from; i < attended; i++ {
		if a.all[i] != nil {
			continue
		}
		like := a.all[i-attendDQ]
		l, err := layout.Of(like.Shape()...)
		if err != nil {
			return err
		}
		return temporary(a.in, like.Type(), l, func(skipped *tensor.Tensor) error {
			a.all[i] = skipped
			return a.whole(i + 1)
		})
	}
	return a.packed(0)
}

// packed submits the launches, with copies of the tensors from a number on whose layouts the kernels do not take.
func (a *attending) packed(from int) error {
	for i := from; i < attended; i++ {
		t := a.all[i]
		if t == nil || takes(t, i != attendLSE) {
			continue
		}
		var shape [layout.MaxRank]int
		l, err := layout.Of(t.Layout().AppendShape(shape[:0])...)
		if err != nil {
			return err
		}
		return temporary(a.in, t.Type(), l, func(copied *tensor.Tensor) error {
			a.all[i] = copied
			if a.written[i] {
				if a.partly(i) {
					if err := tensor.Copy(a.on, copied, t); err != nil {
						return err
					}
				}
				if err := a.packed(i + 1); err != nil {
					return err
				}
				return Makers{a.set}.CopyInto(a.on, t, copied)
			}
			if err := (Makers{a.set}).CopyInto(a.on, copied, t); err != nil {
				return err
			}
			return a.packed(i + 1)
		})
	}
	return a.launch()
}

// partly reports whether an output may have rows of no sequence, which stay as they are.
func (a *attending) partly(i int) bool {
	if i == attendDK || i == attendDV {
		return a.how.KeyOffsets != nil
	}
	return a.how.QueryOffsets != nil
}

// takes reports whether the kernels take a layout: of rows of heads, or of a number for each of them.
func takes(t *tensor.Tensor, rows bool) bool {
	l := t.Layout()
	r, err := t.Range()
	if err != nil {
		return true // the launch has the error
	}
	if t.Len() == 0 {
		return true
	}
	const step = 8 // elements of 16 bits that are copied at once
	for d := range l.Rank() {
		switch stride := l.Stride(d); {
		case l.Dim(d) == 1:
		case stride < 0, rows && d == l.Rank()-1 && stride != 1, rows && d < l.Rank()-1 && stride%step != 0:
			return false
		}
	}
	p := place{at: r}
	return !rows || p.address()%vectorBytes == 0
}

// launch submits the launches.
func (a *attending) launch() error {
	var m [attended]attention.Matrix
	for i, t := range a.all {
		if t == nil {
			continue
		}
		r, err := t.Range()
		if err != nil {
			return err
		}
		l, rows := t.Layout(), 1
		if i == attendLSE {
			rows = 0
		}
		m[i] = attention.Matrix{At: r, Head: int64(l.Stride(l.Rank() - 2 - rows)), Row: int64(l.Stride(l.Rank() - 1 - rows))}
		if l.Rank() == 3+rows {
			m[i].Batch = int64(l.Stride(0))
		}
	}
	o := a.numbers
	o.Q, o.K, o.V, o.O, o.LSE = m[attendQ], m[attendK], m[attendV], m[attendOut], m[attendLSE]
	if a.back {
		return a.set.attention.Backward(a.on, a.problem, o, attention.Gradients{O: m[attendGrad], Q: m[attendDQ], K: m[attendDK], V: m[attendDV]})
	}
	return a.set.attention.Forward(a.on, a.problem, o)
}
