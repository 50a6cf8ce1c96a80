package attention

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
)

// Problem is the shape of an attention.
type Problem struct {
	Batch         int64 // sequences
	Heads         int64 // of queries
	KeyHeads      int64 // of keys and values: a divisor of Heads; 0 for Heads
	Queries, Keys int64 // rows of each sequence; with offsets or lengths, of the longest
	Dim           int64 // elements of a row: 64 or 128
	Type          gemm.Type
	Causal        bool
	Scale         float64 // of scores, above 0; 0 for 1/√Dim

	// AllQueries and AllKeys are the rows of all sequences together, where there are offsets. Otherwise they are not used.
	AllQueries, AllKeys int64
	// PageRows and Pages are the rows of a page, a power of 2, and the number of pages, where there is a table; PagesPerSequence
	// the number of its entries for a sequence. Otherwise they are 0.
	PageRows, Pages, PagesPerSequence int64
}

// Matrix is where the rows of an operand are: row r of head h of sequence b begins b·Batch + h·Head + r·Row elements after the
// begin of the range. With offsets Batch is not used; in pages it is the stride of pages.
type Matrix struct {
	At               cuda.Range
	Batch, Head, Row int64
}

// Operands are the operands of a pass. O and LSE are written by Forward, and read by Backward.
type Operands struct {
	Q, K, V, O Matrix
	LSE        Matrix // of float32, the log-sum-exps; the zero Matrix for none, in Forward
	// The zero Range means none. All are int32: offsets Batch + 1 of them, lengths Batch, the table Batch rows of
	// PagesPerSequence. An offset that is less than the one before or more than AllQueries or AllKeys, a sequence longer than
	// Queries or Keys, and a page that is not below Pages end the launch by a trap.
	QueryOffsets, KeyOffsets, KeyLengths, Table cuda.Range
}

// Gradients are the operands of a backward pass: of the output, which is read, and of queries, keys and values, which are
// written.
type Gradients struct{ O, Q, K, V Matrix }

// A ProblemError refuses a problem or an operand.
type ProblemError struct {
	Field string // of Problem, Operands or Gradients
	Value int64
	Want  string
}

// Error names the field, its value, and the values allowed.
func (e *ProblemError) Error() string {
	return fmt.Sprintf("attention: %s is %d: want %s", e.Field, e.Value, e.Want)
}

// MaxRows bounds the rows of a sequence, and of all sequences with offsets.
const MaxRows = 1 << 28

// maxBlocks bounds the blocks of a grid.
const maxBlocks = math.MaxInt32

// Check returns the problem with its defaults. Errors: *ProblemError.
func (p Problem) Check() (Problem, error) {
	if p.KeyHeads == 0 {
		p.KeyHeads = p.Heads
	}
	for _, s := range []struct {
		name                string
		value, least, limit int64
	}{
		{"Batch", p.Batch, 0, MaxRows},
		{"Heads", p.Heads, 1, 1 << 16},
		{"KeyHeads", p.KeyHeads, 1, p.Heads},
		{"Queries", p.Queries, 0, MaxRows},
		{"Keys", p.Keys, 0, MaxRows},
		{"AllQueries", p.AllQueries, 0, MaxRows},
		{"AllKeys", p.AllKeys, 0, MaxRows},
		{"PageRows", p.PageRows, 0, MaxRows},
		{"Pages", p.Pages, 0, math.MaxInt32},
		{"PagesPerSequence", p.PagesPerSequence, 0, math.MaxInt32},
	} {
		if s.value < s.least || s.value > s.limit {
			return p, &ProblemError{s.name, s.value, fmt.Sprintf("%d to %d", s.least, s.limit)}
		}
	}
	switch {
	case p.Heads%p.KeyHeads != 0:
		return p, &ProblemError{"KeyHeads", p.KeyHeads, fmt.Sprintf("a divisor of Heads, %d", p.Heads)}
	case p.Dim != 64 && p.Dim != 128:
		return p, &ProblemError{"Dim", p.Dim, "64 or 128"}
	case p.Type != gemm.Float16 && p.Type != gemm.BFloat16:
		return p, &ProblemError{"Type", int64(p.Type), "Float16 or BFloat16"}
	case p.PageRows&(p.PageRows-1) != 0:
		return p, &ProblemError{"PageRows", p.PageRows, "a power of 2"}
	case p.PageRows > 0 && p.PagesPerSequence*p.PageRows < p.Keys:
		return p, &ProblemError{"PagesPerSequence", p.PagesPerSequence, fmt.Sprintf("pages for %d keys", p.Keys)}
	case p.Batch*p.Heads > maxBlocks || p.Batch*p.Heads*(max(p.Queries, p.Keys)/16+1) > maxBlocks:
		return p, &ProblemError{"Batch", p.Batch, "less work than a grid has blocks"}
	}
	if p.Scale == 0 {
		p.Scale = 1 / math.Sqrt(float64(p.Dim))
	}
	const smallest = 0x1p-126                                 // of normal numbers of float32
	if !(p.Scale >= smallest && p.Scale <= math.MaxFloat32) { // NaN is neither
		return p, &ProblemError{"Scale", int64(max(min(p.Scale, math.MaxInt32), math.MinInt32)), "a positive number of float32"}
	}
	return p, nil
}

// Empty reports whether the problem has no output.
func (p Problem) Empty() bool { return p.Batch == 0 || p.Queries == 0 }

// group is the number of heads that share keys.
func (p Problem) group() int64 { return p.Heads / p.KeyHeads }

// operand is a matrix with its shape.
type operand struct {
	name               string
	matrix             Matrix
	batch, heads, rows int64
	dim, bytes         int64  // of a row in elements; of an element
	alignment          int64  // of strides and of the begin, in elements
	first, end         uint64 // the addresses that are touched
}

// queries returns an operand with the rows of queries.
func (p Problem) queries(name string, m Matrix, o *Operands) operand {
	x := operand{name: name, matrix: m, batch: p.Batch, heads: p.Heads, rows: p.Queries, dim: p.Dim, bytes: 2, alignment: 8}
	if o.QueryOffsets != (cuda.Range{}) {
		x.batch, x.rows = 1, p.AllQueries
	}
	return x
}

// keys returns an operand with the rows of keys.
func (p Problem) keys(name string, m Matrix, o *Operands) operand {
	x := operand{name: name, matrix: m, batch: p.Batch, heads: p.KeyHeads, rows: p.Keys, dim: p.Dim, bytes: 2, alignment: 8}
	switch {
	case o.Table != (cuda.Range{}):
		x.batch, x.rows = p.Pages, p.PageRows
	case o.KeyOffsets != (cuda.Range{}):
		x.batch, x.rows = 1, p.AllKeys
	}
	return x
}

// statistics returns an operand of a number of float32 for each query.
func (p Problem) statistics(name string, m Matrix, o *Operands) operand {
	x := p.queries(name, m, o)
	x.dim, x.bytes, x.alignment = 1, 4, 1
	return x
}

// check computes the addresses. Errors: *ProblemError.
func (x *operand) check() error {
	m := &x.matrix
	if x.batch == 0 || x.heads == 0 || x.rows == 0 {
		return nil
	}
	reach := x.dim
	for _, s := range [...]struct {
		name          string
		stride, count int64
	}{{"Batch", m.Batch, x.batch}, {"Head", m.Head, x.heads}, {"Row", m.Row, x.rows}} {
		switch limit := (math.MaxInt64/x.bytes - reach) / max(s.count, 1); {
		case s.count == 1:
		case s.stride < 0 || s.stride > limit || s.stride%x.alignment != 0:
			return &ProblemError{x.name + "." + s.name, s.stride, fmt.Sprintf("a multiple of %d from 0 to %d", x.alignment, limit)}
		default:
			reach += (s.count - 1) * s.stride
		}
	}
	if m.At.Offset < 0 || m.At.Bytes < reach*x.bytes {
		return &ProblemError{x.name, m.At.Bytes, fmt.Sprintf("a range of at least %d bytes", reach*x.bytes)}
	}
	x.first = uint64(m.At.Buffer.Ptr()) + uint64(m.At.Offset) //nolint:gosec // an address
	x.end = x.first + uint64(reach*x.bytes)                   //nolint:gosec // checked
	if align := x.bytes * x.alignment; x.first%uint64(align) != 0 {
		return &ProblemError{x.name, m.At.Offset, fmt.Sprintf("an address that is a multiple of %d", align)}
	}
	return nil
}

// arg is the argument of the range, or a null pointer.
func (x *operand) arg(mark func(cuda.Buffer) cuda.Arg) cuda.Arg {
	if x.first == x.end {
		return cuda.Null()
	}
	return mark(x.matrix.At.Buffer).Of(x.matrix.At.Offset, int64(x.end-x.first)) //nolint:gosec // checked
}
