package ops

import (
	"maps"
	"slices"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/kernel/expr"
	"github.com/go-vram/vram/kernel/matmul"
	"github.com/go-vram/vram/tensor"
	"github.com/go-vram/vram/tensor/layout"
)

// Products are products of matrices.
type Products struct{ set *set }

// Product says how a product is computed. The zero value is exact fp32, by the library where it is there.
type Product struct {
	Precision gemm.Precision // of float32: other types have gemm.IEEE alone
	Choice    matmul.Choice  // which way it may take
}

// Matmul is the product of the matrices in the last two dimensions of x and y, whose other dimensions are broadcast. The types are one of
// float16, bfloat16, float32 and float64, after promotion. The matmul.Path says how it was computed. Errors: ErrShape, *tensor.TypeError.
func (o Products) Matmul(at tensor.Context, x, y *tensor.Tensor, how Product) (*tensor.Tensor, matmul.Path, error) {
	shape, err := productShape(x.Shape(), y.Shape())
	if err != nil {
		return nil, matmul.Path{}, failed(opMatmul, err, nil, x, y)
	}
	out, err := tensor.New(at, expr.Promote(x.Type(), y.Type()), shape...)
	if err != nil {
		return nil, matmul.Path{}, failed(opMatmul, err, nil, x, y)
	}
	path, err := o.MatmulInto(at, out, x, y, how)
	out, err = finished(out, err)
	return out, path, err
}

// MatmulInto is Matmul into a tensor, which must not overlap the operands. Transposed matrices are multiplied as they are; operands whose
// elements lie apart, or that are of another type than the output, are copied to temporary memory first, and so is an output of
// such a layout: then it allocates on the heap.
func (o Products) MatmulInto(at tensor.Context, out, x, y *tensor.Tensor, how Product) (matmul.Path, error) {
	path, err := o.product(at, out, x, y, how)
	if err != nil {
		err = failed(opMatmul, err, []*tensor.Tensor{out}, x, y)
	}
	return path, err
}

// met is all that says how tensors are multiplied as they are: output and operands.
type met struct {
	layouts [3]layout.Layout
	types   [3]tensor.Type
}

// maxMet is how many products are known; another one begins anew. Without it a product takes some microseconds more and allocates.
const maxMet = 256

// remember keeps the problem of tensors that are multiplied as they are.
func (s *set) remember(k met, p matmul.Problem) {
	old := s.met.Load()
	next := map[met]matmul.Problem{}
	if len(*old) < maxMet {
		next = maps.Clone(*old)
	}
	next[k] = p
	s.met.CompareAndSwap(old, &next) // of two goroutines that remember at once one may be forgotten
}

func productShape(x, y []int) ([]int, error) {
	if len(x) < 2 || len(y) < 2 || x[len(x)-1] != y[len(y)-2] {
		return nil, ErrShape
	}
	batch, err := layout.BroadcastShape(x[:len(x)-2], y[:len(y)-2])
	if err != nil {
		return nil, err
	}
	return append(batch, x[len(x)-2], y[len(y)-1]), nil
}

func (o Products) product(at tensor.Context, out, x, y *tensor.Tensor, how Product) (path matmul.Path, err error) {
	if o.set == nil {
		return path, ErrNotOpen
	}
	c, err := tensor.ContextOf(at)
	if err != nil {
		return path, err
	}
	if !out.Type().Valid() || !x.Type().Valid() || !y.Type().Valid() {
		return path, tensor.ErrNoTensor
	}
	key := met{[3]layout.Layout{out.Layout(), x.Layout(), y.Layout()}, [3]tensor.Type{out.Type(), x.Type(), y.Type()}}
	if problem, found := (*o.set.met.Load())[key]; found {
		problem.Precision = how.Precision
		return o.set.multiply(c, problem, how.Choice, out, x, y)
	}
	shape, err := productShape(x.Shape(), y.Shape())
	if err != nil {
		return path, err
	}
	if !slices.Equal(shape, out.Shape()) {
		return path, ErrShape
	}
	p := product{Products: o, at: at, on: c, batch: shape[:len(shape)-2], of: expr.Promote(x.Type(), y.Type()), how: how}
	if _, ok := gemmType(p.of); !ok || out.Type().Kind() != tensor.Floating {
		return path, &tensor.TypeError{Op: "matmul", Types: []tensor.Type{out.Type(), x.Type(), y.Type()}}
	}
	err = p.operand(x, func(left *tensor.Tensor, a matrix) error {
		return p.operand(y, func(right *tensor.Tensor, b matrix) error {
			return p.result(out, func(to *tensor.Tensor, d matrix) error {
				problem := p.problem(to, left, d, a, b)
				if to == out && left == x && right == y {
					o.set.remember(key, problem)
				}
				path, err = o.set.multiply(c, problem, how.Choice, to, left, right)
				return err
			})
		})
	})
	return path, err
}

// product is a product that is computed.
type product struct {
	Products

	at    tensor.Context
	on    *cuda.Context
	batch []int
	of    tensor.Type // in which operands are
	how   Product
}

// matrix is how the matrices of a tensor lie in memory.
type matrix struct {
	transposed bool
	ld, stride int64
}

// operand gives f a tensor that can be multiplied: x, or a copy of it.
func (p product) operand(x *tensor.Tensor, f func(*tensor.Tensor, matrix) error) error {
	if m, ok := p.matrix(x.Layout()); ok && x.Type() == p.of {
		return f(x, m)
	}
	shape := x.Shape()
	l, err := layout.Of(shape...)
	if err != nil {
		return err
	}
	m, ok := p.matrix(l)
	if !ok { // the batch repeats it in parts
		shape = append(slices.Clone(p.batch), x.Dim(-2), x.Dim(-1))
		if l, err = layout.Of(shape...); err != nil {
			return err
		}
		m, _ = p.matrix(l)
	}
	return p.set.temporary(p.at, p.of, shape, func(packed *tensor.Tensor) error {
		if err := (Makers{p.set}).CopyInto(p.at, packed, x); err != nil {
			return err
		}
		return f(packed, m)
	})
}

// result gives f a tensor that can be written: out, or one that is copied to it.
func (p product) result(out *tensor.Tensor, f func(*tensor.Tensor, matrix) error) error {
	direct := out.Type() == p.of || out.Type() == tensor.Float32 && p.of.Size() == 2
	m, ok := p.matrix(out.Layout())
	if ok && direct && !m.transposed && !out.Layout().MayOverlap() {
		return f(out, m)
	}
	l, err := layout.Of(out.Shape()...)
	if err != nil {
		return err
	}
	m, _ = p.matrix(l)
	return p.set.temporary(p.at, p.of, out.Shape(), func(packed *tensor.Tensor) error {
		if err := f(packed, m); err != nil {
			return err
		}
		return Makers{p.set}.CopyInto(p.at, out, packed)
	})
}

// matrix is how matrices of a layout lie, repeated for the batch, if a product can have them so.
func (p product) matrix(l layout.Layout) (m matrix, ok bool) {
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
	all, err := l.Broadcast(append(slices.Clone(p.batch), rows, columns)...)
	if err != nil {
		return m, false
	}
	next, first := 0, true
	for d := range slices.Backward(p.batch) {
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

// problem is that of tensors which can be multiplied.
func (p product) problem(out, x *tensor.Tensor, d, a, b matrix) matmul.Problem {
	in, _ := gemmType(p.of)
	to, _ := gemmType(out.Type())
	problem := matmul.Problem{
		M: int64(out.Dim(-2)), N: int64(out.Dim(-1)), K: int64(x.Dim(-1)), Batch: 1, TransposeA: a.transposed, TransposeB: b.transposed,
		LDA: a.ld, LDB: b.ld, LDC: d.ld, StrideA: a.stride, StrideB: b.stride, StrideC: d.stride, In: in, Out: to, Precision: p.how.Precision,
	}
	for _, n := range p.batch {
		problem.Batch *= int64(n)
	}
	return problem
}

func (s *set) multiply(c *cuda.Context, problem matmul.Problem, choice matmul.Choice, out, x, y *tensor.Tensor) (matmul.Path, error) {
	if out.Len() == 0 {
		return matmul.Path{Parts: 1}, nil
	}
	a, err := x.Range()
	if err != nil {
		return matmul.Path{}, err
	}
	b, err := y.Range()
	if err != nil {
		return matmul.Path{}, err
	}
	d, err := out.Range()
	if err != nil {
		return matmul.Path{}, err
	}
	return s.products.Multiply(c, problem, matmul.Operands{A: a, B: b, C: d, Alpha: 1}, choice)
}

// gemmType is an element type as products have it.
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
