package attention

import (
	"fmt"

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
	if g == nil {
		return checkAll([]*operand{&x.q, &x.k, &x.v}, []*operand{&x.o, &x.lse})
	}
	x.grad, x.dq = p.queries("gradient of O", g.O, o), p.queries("gradient of Q", g.Q, o)
	x.dk, x.dv = p.keys("gradient of K", g.K, o), p.keys("gradient of V", g.V, o)
	return checkAll([]*operand{&x.q, &x.k, &x.v, &x.o, &x.lse, &x.grad}, []*operand{&x.dq, &x.dk, &x.dv})
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
	for _, w := range written {
		for _, r := range read {
			if w.first < r.end && r.first < w.end {
				return fmt.Errorf("attention: %s is written and shares memory with %s: %w", w.name, r.name, cuda.ErrOverlap)
			}
		}
	}
	return nil
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
		case r.at.Bytes < r.count*numberBytes:
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
