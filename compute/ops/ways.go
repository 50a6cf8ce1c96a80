package ops

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
	"github.com/go-vram/vram/cuda/gemm"
)

// met is all that says how tensors are multiplied: the output, and the operands.
type met struct {
	layouts [3]layout.Layout
	types   [3]tensor.Type
}

// way is how tensors are multiplied. It does not change.
type way struct {
	problem matmul.Problem
	of      tensor.Type      // of the operands, and of all copies
	copied  [3]bool          // the output, and the operands, of which copies are multiplied
	copies  [3]layout.Layout // of these
}

func productShape(x, y []int) ([]int, error) {
	if len(x) < 2 || len(y) < 2 {
		return nil, fmt.Errorf("a matrix has two dimensions: %w", ErrShape)
	}
	if columns, rows := x[len(x)-1], y[len(y)-2]; columns != rows {
		return nil, fmt.Errorf("%d columns times %d rows: %w", columns, rows, ErrShape)
	}
	batch, err := layout.BroadcastShape(x[:len(x)-2], y[:len(y)-2])
	if err != nil {
		return nil, err
	}
	return append(batch, x[len(x)-2], y[len(y)-1]), nil
}

// planned returns the way to multiply tensors.
func planned(k *met) (*way, error) {
	out, x, y := k.layouts[0], k.layouts[1], k.layouts[2]
	shape, err := productShape(x.Shape(), y.Shape())
	if err != nil {
		return nil, err
	}
	if !slices.Equal(shape, out.Shape()) {
		return nil, ErrShape
	}
	w := &way{of: expr.Promote(k.types[1], k.types[2])}
	in, ok := gemmType(w.of)
	if !ok || k.types[0].Kind() != tensor.Floating {
		return nil, &tensor.TypeError{Op: "matmul", Types: slices.Clone(k.types[:])}
	}
	b := batch(shape[:len(shape)-2])
	var m [3]matrix
	for i := range m {
		if m[i], err = w.matrix(k, i, b); err != nil {
			return nil, err
		}
	}
	to := in
	if !w.copied[0] {
		to, _ = gemmType(k.types[0])
	}
	w.problem = matmul.Problem{
		M: int64(out.Dim(-2)), N: int64(out.Dim(-1)), K: int64(x.Dim(-1)), Batch: 1, TransposeA: m[1].transposed, TransposeB: m[2].transposed,
		LDA: m[1].ld, LDB: m[2].ld, LDC: m[0].ld, StrideA: m[1].stride, StrideB: m[2].stride, StrideC: m[0].stride, In: in, Out: to,
	}
	for _, n := range b {
		w.problem.Batch *= int64(n)
	}
	return w, nil
}

// matrix returns how the matrices of the output, or of an operand, lie: of a copy, where they cannot be multiplied as they are. Errors:
// kernel.ErrRepeats.
func (w *way) matrix(k *met, i int, b batch) (matrix, error) {
	l, of := k.layouts[i], k.types[i]
	if i == 0 && l.MayOverlap() {
		return matrix{}, kernel.ErrRepeats // before the product, not with the copy after it
	}
	m, ok := b.matrix(l)
	if i == 0 {
		ok = ok && (of == w.of || of == tensor.Float32 && w.of.Size() == 2) && !m.transposed && m.apart(l)
	} else {
		ok = ok && of == w.of
	}
	if ok {
		return m, nil
	}
	w.copied[i] = true
	var err error
	if w.copies[i], err = layout.Of(l.Shape()...); err != nil {
		return m, err
	}
	if m, ok = b.matrix(w.copies[i]); ok {
		return m, nil
	}
	if w.copies[i], err = layout.Of(append(slices.Clone(b), l.Dim(-2), l.Dim(-1))...); err != nil { // the batch repeats it in parts
		return m, err
	}
	m, _ = b.matrix(w.copies[i])
	return m, nil
}

// batch is the shape of the dimensions before the last two.
type batch []int

// matrix is how the matrices of a tensor lie in memory.
type matrix struct {
	transposed bool
	ld, stride int64
}

// matrix returns how matrices of a layout lie, repeated for the batch, if a product can have them so.
func (b batch) matrix(l layout.Layout) (m matrix, ok bool) {
	rows, columns, down, right := l.Dim(-2), l.Dim(-1), l.Stride(-2), l.Stride(-1)
	switch {
	case (right == 1 || columns <= 1) && (rows <= 1 || down >= columns):
		m.ld = int64(down)
		if rows <= 1 || down < 1 {
			m.ld = int64(max(columns, 1))
		}
	case (down == 1 || rows <= 1) && (columns <= 1 || right >= rows):
		m.transposed, m.ld = true, int64(right)
		if columns <= 1 {
			m.ld = int64(max(rows, 1))
		}
	default:
		return m, false
	}
	all, err := l.Broadcast(append(slices.Clone(b), rows, columns)...)
	if err != nil {
		return m, false
	}
	next, first := 0, true
	for d := range slices.Backward(b) {
		n, stride := all.Dim(d), all.Stride(d)
		switch {
		case n == 1:
			continue
		case stride < 0 || !first && stride != next:
			return m, false
		case first:
			m.stride, first = int64(stride), false
		}
		next = stride * n
	}
	return m, true
}

// apart reports whether each matrix of the batch starts after the end of the one before.
func (m matrix) apart(l layout.Layout) bool {
	return l.Len() == l.Dim(-2)*l.Dim(-1) || m.stride >= int64(l.Dim(-2)-1)*m.ld+int64(l.Dim(-1))
}

// gemmType returns an element type as products have it.
func gemmType(of tensor.Type) (gemm.Type, bool) {
	switch of { //nolint:exhaustive // the others have no products
	case tensor.Float16:
		return gemm.Float16, true
	case tensor.BFloat16:
		return gemm.BFloat16, true
	case tensor.Float32:
		return gemm.Float32, true
	case tensor.Float64:
		return gemm.Float64, true
	}
	return 0, false
}
