package attention

import (
	"fmt"

	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda"
)

// all are the checked operands of a call.
type all struct {
	q, k, v, o, lse                             operand
	dq, dk, dv, grad                            operand
	queryOffsets, keyOffsets, keyLengths, table cuda.Arg
}

// fill sets the operands, of a backward pass where there are gradients. Errors: *ProblemError, cuda.ErrOverlap.
func (x *all) fill(p Problem, o *Operands, g *Gradients) error {
	if err := p.checkSequences(o); err != nil {
		return err
	}
	x.q, x.o = p.queries("Q", o.Q, o), p.queries("O", o.O, o)
	x.k, x.v = p.keys("K", o.K, o), p.keys("V", o.V, o)
	x.queryOffsets, x.keyOffsets = numbers(o.QueryOffsets, p.Batch+1), numbers(o.KeyOffsets, p.Batch+1)
	x.keyLengths, x.table = numbers(o.KeyLengths, p.Batch), numbers(o.Table, p.Batch*p.PagesPerSequence)
	if o.LSE != (Matrix{}) || g != nil {
		x.lse = p.statistics("LSE", o.LSE, o)
	}
	offsets, keyOffsets := sequence("QueryOffsets", o.QueryOffsets), sequence("KeyOffsets", o.KeyOffsets)
	lengths, table := sequence("KeyLengths", o.KeyLengths), sequence("Table", o.Table)
	if g == nil {
		return checkAll([]*operand{&x.q, &x.k, &x.v, &offsets, &keyOffsets, &lengths, &table}, []*operand{&x.o, &x.lse})
	}
	x.grad, x.dq = p.queries("gradient of O", g.O, o), p.queries("gradient of Q", g.Q, o)
	x.dk, x.dv = p.keys("gradient of K", g.K, o), p.keys("gradient of V", g.V, o)
	return checkAll([]*operand{&x.q, &x.k, &x.v, &x.o, &x.lse, &x.grad, &offsets, &keyOffsets}, []*operand{&x.dq, &x.dk, &x.dv})
}

// sequence returns an operand of offsets, lengths or a table.
func sequence(name string, r cuda.Range) operand {
	first := uint64(r.Buffer.Ptr()) + uint64(r.Offset)                             //nolint:gosec // an address
	return operand{name: name, first: first, end: first + uint64(max(r.Bytes, 0))} //nolint:gosec // not negative
}

// checkAll returns an error of operands that are read or written. Errors: *ProblemError, cuda.ErrOverlap.
func checkAll(read, written []*operand) error {
	for _, list := range [...][]*operand{read, written} {
		for _, x := range list {
			if err := x.check(); err != nil {
				return err
			}
		}
	}
	for i, w := range written {
		for _, r := range read {
			if w.meets(r) {
				return overlap(w, r)
			}
		}
		for _, other := range written[:i] {
			if w.meets(other) && !w.alternates(other) {
				return overlap(w, other)
			}
		}
	}
	return nil
}

func overlap(w, other *operand) error {
	return fmt.Errorf("attention: %s is written and shares memory with %s: %w", w.name, other.name, cuda.ErrOverlap)
}

// meets reports whether the bounds of two operands have an address in common.
func (x *operand) meets(y *operand) bool { return x.first < y.end && y.first < x.end }

// alternates reports whether two operands of one shape have no element in common, as matrices whose rows alternate.
func (x *operand) alternates(y *operand) bool {
	shape, strides := x.layout()
	otherShape, otherStrides := y.layout()
	if shape != otherShape || strides != otherStrides || x.bytes != y.bytes {
		return false
	}
	apart := int64(max(x.first, y.first) - min(x.first, y.first))                           //nolint:gosec // within both
	both, err := layout.New(append(shape[:], 2), append(strides[:], int(apart/x.bytes)), 0) //nolint:mnd // operands
	return err == nil && !both.MayOverlap()
}

// layout returns the lengths and strides of an operand: 0 for one that is not used.
func (x *operand) layout() (shape, strides [4]int) {
	shape = [...]int{int(x.batch), int(x.heads), int(x.rows), int(x.dim)}
	for n, stride := range [...]int64{x.matrix.Batch, x.matrix.Head, x.matrix.Row, 1} {
		if shape[n] > 1 {
			strides[n] = int(stride)
		}
	}
	return shape, strides
}

// checkSequences looks at offsets, lengths and the table. Errors: *ProblemError.
func (p Problem) checkSequences(o *Operands) error {
	for _, r := range [...]struct {
		name  string
		at    cuda.Range
		count int64
	}{
		{"QueryOffsets", o.QueryOffsets, p.Batch + 1},
		{"KeyOffsets", o.KeyOffsets, p.Batch + 1},
		{"KeyLengths", o.KeyLengths, p.Batch},
		{"Table", o.Table, p.Batch * p.PagesPerSequence},
	} {
		switch {
		case r.at == cuda.Range{}:
		case r.at.Offset < 0 || r.at.Bytes < r.count*numberBytes:
			return &ProblemError{r.name, r.at.Bytes, fmt.Sprintf("a range of at least %d bytes", r.count*numberBytes)}
		case (int64(r.at.Buffer.Ptr())+r.at.Offset)%numberBytes != 0: //nolint:gosec // the low bits
			return &ProblemError{r.name, r.at.Offset, "an address that is a multiple of 4"}
		}
	}
	none := cuda.Range{}
	switch {
	case o.Table != none && p.PageRows == 0:
		return &ProblemError{"PageRows", 0, "the rows of a page, for there is a table"}
	case o.Table == none && p.PageRows > 0:
		return &ProblemError{"PageRows", p.PageRows, "0, for there is no table"}
	case o.KeyOffsets != none && (o.Table != none || o.KeyLengths != none):
		return &ProblemError{"KeyOffsets", o.KeyOffsets.Bytes, "no offsets of keys where there are lengths or a table"}
	}
	return nil
}

const numberBytes = 4

// numbers is the argument of a range of int32, or a null pointer.
func numbers(r cuda.Range, count int64) cuda.Arg {
	if r == (cuda.Range{}) {
		return cuda.Null()
	}
	return cuda.In(r.Buffer).Of(r.Offset, count*numberBytes)
}

// strides has the layout of attend.h's. With offsets the stride of batches is 0.
type strides struct{ Batch, Head, Row int64 }

func (x *operand) strides() cuda.Arg {
	s := strides{x.matrix.Batch, x.matrix.Head, x.matrix.Row}
	if x.batch == 1 {
		s.Batch = 0
	}
	return cuda.Value(s)
}

// word is an argument of 32 bits.
func word(n int64) cuda.Arg { return cuda.Value(uint32(n)) } //nolint:gosec // checked

// flag is an argument of 32 bits.
func flag(b bool) cuda.Arg {
	if b {
		return word(1)
	}
	return word(0)
}
