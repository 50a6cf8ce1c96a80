package gemm

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/cuda"
)

// Operands are the operands of a product. Ranges begin at the first element; Bias and Aux are used if the problem has them. C
// must not share memory with Aux, nor with any operand that is read. Only C and a written Aux change.
type Operands struct {
	A, B, C, Bias, Aux cuda.Range
	// Alpha and Beta are the factors. Where Beta is 0, C is not read.
	Alpha, Beta float64
}

// A ProblemError refuses a problem.
type ProblemError struct {
	Field string // of Problem or Operands
	Value int64
	Want  string
}

// Error names the field, its value, and the values allowed.
func (e *ProblemError) Error() string {
	return fmt.Sprintf("gemm: %s is %d: want %s", e.Field, e.Value, e.Want)
}

// OverlapError refuses operands of which one is written and shares memory with another one.
type OverlapError struct{ Written, Other string } // fields of Operands

// Error names both.
func (e *OverlapError) Error() string {
	return fmt.Sprintf("gemm: %s is written and shares memory with %s", e.Written, e.Other)
}

// Unwrap returns cuda.ErrOverlap.
func (e *OverlapError) Unwrap() error { return cuda.ErrOverlap }

// Extent is how many bytes of a range a product touches, from its begin on.
type Extent struct{ A, B, C, Bias, Aux int64 }

// Check returns the problem with its defaults and the memory it touches, or a *ProblemError.
func (p Problem) Check() (Problem, Extent, error) {
	for _, s := range []struct {
		name  string
		value int64
	}{{"M", p.M}, {"N", p.N}, {"K", p.K}, {"Batch", p.Batch}} {
		if s.value < 0 || s.value > MaxSize {
			return p, Extent{}, &ProblemError{s.name, s.value, fmt.Sprintf("0 to %d", MaxSize)}
		}
	}
	if err := p.checkTypes(); err != nil {
		return p, Extent{}, err
	}
	p = p.Filled()
	var err error
	in, out := p.In.Bytes(), p.Out.Bytes()
	var found [4]int64
	for i, x := range [...]struct {
		name                      string
		rows, columns, ld, stride int64
		bytes                     int64
		written, used             bool
	}{
		{"A", p.rowsA(), p.columnsA(), p.LDA, p.StrideA, in, false, !p.Empty() && p.K > 0},
		{"B", p.rowsB(), p.columnsB(), p.LDB, p.StrideB, in, false, !p.Empty() && p.K > 0},
		{"C", p.M, p.N, p.LDC, p.StrideC, out, true, !p.Empty()},
		{"Aux", p.M, p.N, p.LDAux, p.StrideAux, out, p.Epilogue.WritesAux(), !p.Empty() && p.UsesAux()},
	} {
		if x.ld < max(x.columns, 1) {
			return p, Extent{}, &ProblemError{"LD" + x.name, x.ld, fmt.Sprintf("at least %d, the length of a row", max(x.columns, 1))}
		}
		if x.stride < 0 {
			return p, Extent{}, &ProblemError{"Stride" + x.name, x.stride, "0 or more"}
		}
		if !x.used {
			continue
		}
		if found[i], err = extent(x.name, x.rows, x.columns, x.ld, x.stride, p.Batch, x.bytes); err != nil {
			return p, Extent{}, err
		}
		if one := (x.rows-1)*x.ld + x.columns; x.written && p.Batch > 1 && x.stride < one {
			return p, Extent{}, &ProblemError{"Stride" + x.name, x.stride, fmt.Sprintf("at least %d: matrices must not overlap", one)}
		}
	}
	e := Extent{A: found[0], B: found[1], C: found[2], Aux: found[3]}
	if p.Bias && !p.Empty() {
		e.Bias = p.N * out
	}
	return p, e, nil
}

// extent returns the bytes from the first element of the first matrix to the last of the last one.
func extent(name string, rows, columns, ld, stride, batch, bytes int64) (int64, error) {
	elements, ok := product(rows-1, ld)
	more, fits := product(batch-1, stride)
	limit := math.MaxInt64/bytes - columns
	if !ok || !fits || elements > limit || more > limit-elements {
		return 0, &ProblemError{name, rows, "a matrix whose bytes an int64 counts"}
	}
	return (elements + more + columns) * bytes, nil
}

func product(a, b int64) (int64, bool) {
	if a != 0 && b > math.MaxInt64/a {
		return 0, false
	}
	return a * b, true
}

func (p Problem) checkTypes() error {
	switch {
	case p.In > Float64:
		return &ProblemError{"In", int64(p.In), "a type"}
	case p.Out > Float64:
		return &ProblemError{"Out", int64(p.Out), "a type"}
	case p.Precision > RoundedF16:
		return &ProblemError{"Precision", int64(p.Precision), "a precision"}
	case p.Epilogue > GELUGradient:
		return &ProblemError{"Epilogue", int64(p.Epilogue), "an epilogue"}
	case p.Out != p.In && (p.Out != Float32 || p.In == Float64):
		return &ProblemError{"Out", int64(p.Out), "In, or Float32 for operands of 16 bits"}
	case p.In != Float32 && p.Precision != IEEE:
		return &ProblemError{"Precision", int64(p.Precision), "IEEE for operands that are not Float32"}
	case p.In == Float64 && p.Epilogue != None:
		return &ProblemError{"Epilogue", int64(p.Epilogue), "None for Float64"}
	}
	return nil
}

// CheckOperands returns a *ProblemError for a range that is too short or begins between two elements, and an *OverlapError
// where C, or an Aux that is written, shares elements with another operand. It does not look whether buffers are live: two of
// them share no memory.
func (p Problem) CheckOperands(e Extent, o Operands) error {
	p = p.Filled()
	in, out := p.In.Bytes(), p.Out.Bytes()
	all := [...]operand{
		{"C", o.C, e.C, out, p.LDC * out, p.N * out, p.StrideC * out},
		{"Aux", o.Aux, e.Aux, out, p.LDAux * out, p.N * out, p.StrideAux * out},
		{"A", o.A, e.A, in, p.LDA * in, p.columnsA() * in, p.StrideA * in},
		{"B", o.B, e.B, in, p.LDB * in, p.columnsB() * in, p.StrideB * in},
		{"Bias", o.Bias, e.Bias, out, p.N * out, p.N * out, 0},
	}
	for i := range all {
		x := &all[i]
		switch {
		case x.bytes == 0:
		case x.at.Bytes < x.bytes:
			return &ProblemError{x.name, x.at.Bytes, fmt.Sprintf("a range of at least %d bytes", x.bytes)}
		case x.at.Offset%x.align != 0:
			return &ProblemError{x.name, x.at.Offset, fmt.Sprintf("an offset that is a multiple of %d, the size of an element", x.align)}
		}
	}
	for i := range all {
		if i == 0 || i == 1 && p.Epilogue.WritesAux() {
			for j := i + 1; j < len(all); j++ {
				if all[i].overlaps(&all[j], p.Batch) {
					return &OverlapError{all[i].name, all[j].name}
				}
			}
		}
	}
	return nil
}

// operand is where the matrices of one operand are.
type operand struct {
	name                              string
	at                                cuda.Range
	bytes, align                      int64
	pitchBytes, rowBytes, strideBytes int64 // from row to row, of a row, from matrix to matrix
}

// overlaps reports whether two operands share memory. Adjacent columns of one matrix do not.
func (x *operand) overlaps(y *operand, batch int64) bool {
	a, b := x.at, y.at
	if x.bytes == 0 || y.bytes == 0 || a.Buffer != b.Buffer || a.Offset >= b.Offset+y.bytes || b.Offset >= a.Offset+x.bytes {
		return false
	}
	pitch := x.pitchBytes
	if pitch != y.pitchBytes {
		return true
	}
	width, other := x.width(batch), y.width(batch)
	behind := ((b.Offset-a.Offset)%pitch + pitch) % pitch
	return behind < width || other > pitch-behind
}

// width returns the part of a row's distance that the matrices occupy.
func (x *operand) width(batch int64) int64 {
	if batch > 1 && x.strideBytes%x.pitchBytes != 0 {
		if x.strideBytes >= x.pitchBytes { // rows of other matrices begin anywhere
			return x.pitchBytes
		}
		return x.rowBytes + (batch-1)*x.strideBytes
	}
	return x.rowBytes
}
