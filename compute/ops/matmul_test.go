package ops_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda/gemm"
)

var own = ops.Product{Choice: matmul.Own}

// product is the reference.
func product(a, b array, shape []int) (values []float64) {
	inner := a.shape[len(a.shape)-1]
	each(shape, func(index []int) {
		total := 0.0
		left, right := append([]int{}, index...), append([]int{}, index...)
		for k := range inner {
			left[len(left)-1], right[len(right)-2] = k, k
			total += a.values[a.index(left)] * b.values[b.index(right)]
		}
		values = append(values, total)
	})
	return values
}

// Products of any layouts and broadcast batches equal the reference.
func TestMatmul(t *testing.T) {
	r := newRig(t)
	for i, batch := range [][]int{{}, {}, {}, {}, {3}, {2, 3}, {2, 3}, {2, 3}, {0}} {
		m, n, k := r.length(), r.length(), r.length()
		partX, partY := r.part(batch), r.part(batch)
		if i == 5 {
			partX, partY = []int{2, 1}, []int{1, 3}
		}
		a := newArray(append(partX, m, k), r.random.NormFloat64)
		b := newArray(append(partY, k, n), r.random.NormFloat64)
		x, y := r.tensor(a), r.tensor(b)
		got, path, err := r.o.Matmul(r.s, x, y, own)
		require.NoError(t, err, "%v %v", a.shape, b.shape)
		assert.Empty(t, path.Library)
		shape := got.Shape()
		want := product(a, b, shape)
		r.near(want, got, 1e-5, 10, a.shape, b.shape)
		out := r.view(tensor.Float32, shape)
		_, err = r.o.MatmulInto(r.s, out, x, y, own)
		require.NoError(t, err)
		r.near(want, out, 1e-5, 10, a.shape, b.shape)
	}
}

// Matrices of a batch may have gaps between rows, between matrices, and between batches of them.
func TestMatmulOfBatchesWithGaps(t *testing.T) {
	r := newRig(t)
	for _, kind := range []int{viewPadded, viewInner} {
		a, b := newArray([]int{2, 3, 5, 4}, r.random.NormFloat64), newArray([]int{2, 3, 4, 6}, r.random.NormFloat64)
		x, y := r.viewAs(kind, tensor.Float32, a.shape), r.viewAs(kind, tensor.Float32, b.shape)
		r.write(x, a.values)
		r.write(y, b.values)
		shape := []int{2, 3, 5, 6}
		out := r.viewAs(kind, tensor.Float32, shape)
		_, err := r.o.MatmulInto(r.s, out, x, y, own)
		require.NoError(t, err)
		r.near(product(a, b, shape), out, 1e-5, 10, kind)
	}
}

// vectorShapes are shapes of operands of which some have one dimension, with the shape of their product.
var vectorShapes = [][3][]int{
	{{4}, {4}, {}},
	{{1}, {1}, {}},
	{{0}, {0}, {}},
	{{4}, {4, 3}, {3}},
	{{5, 4}, {4}, {5}},
	{{4}, {2, 4, 3}, {2, 3}},
	{{2, 5, 4}, {4}, {2, 5}},
	{{2, 3, 5, 4}, {4}, {2, 3, 5}},
	{{4}, {2, 1, 4, 3}, {2, 1, 3}},
	{{4}, {0, 4, 3}, {0, 3}},
}

// asMatrices are the arrays with the dimensions that vectors lack, of the operands and of their product.
func asMatrices(a, b, c array) (x, y, out array) {
	x, y, out = a, b, array{slices.Clone(c.shape), c.values}
	if len(b.shape) == 1 {
		y.shape, out.shape = []int{b.shape[0], 1}, append(out.shape, 1)
	}
	if len(a.shape) == 1 {
		x.shape, out.shape = []int{1, a.shape[0]}, slices.Insert(out.shape, len(out.shape)-1, 1)
	}
	return x, y, out
}

// A product without elements is of one part, and one without products is zeros.
func TestMatmulOfNothing(t *testing.T) {
	r := newRig(t)
	for _, n := range [][3]int{{0, 3, 4}, {3, 0, 4}, {3, 4, 0}, {0, 0, 0}} {
		rows, inner, columns := n[0], n[1], n[2]
		out, path, err := r.o.Matmul(r.s, r.zeros(rows, inner), r.zeros(inner, columns), own)
		require.NoError(t, err)
		r.near(make([]float64, rows*columns), out, 0, 0)
		require.EqualValues(t, 1, path.Parts, n)
	}
}

// A vector is a matrix of one row, or of one column, and the product lacks that dimension.
func TestMatmulOfVectors(t *testing.T) {
	r := newRig(t)
	for _, s := range vectorShapes {
		a, b, c := newArray(s[0], r.random.NormFloat64), newArray(s[1], r.random.NormFloat64), array{shape: s[2]}
		left, right, whole := asMatrices(a, b, c)
		want := product(left, right, whole.shape)
		x, y := r.tensor(a), r.tensor(b)
		got, _, err := r.o.Matmul(r.s, x, y, own)
		require.NoError(t, err, s)
		assert.Equal(t, s[2], got.Shape())
		r.near(want, got, 1e-5, 10, s)
		out := r.view(tensor.Float32, s[2])
		_, err = r.o.MatmulInto(r.s, out, x, y, own)
		require.NoError(t, err, s)
		r.near(want, out, 1e-5, 10, s)
		for _, wrong := range [][]int{append([]int{1}, s[2]...), append(slices.Clone(s[2]), 1), {7}} {
			_, err = r.o.MatmulInto(r.s, r.view(tensor.Float32, wrong), x, y, own)
			require.ErrorIs(t, err, ops.ErrShape, "%v into %v", s, wrong)
		}
	}
	v, one := r.zeros(4), r.zeros()
	for _, wrong := range [][2]*tensor.Tensor{{v, r.zeros(3)}, {v, r.zeros(3, 4)}, {r.zeros(4, 3), v}, {one, v}, {v, one}, {one, one}, {one, r.zeros(1, 1)}} {
		_, _, err := r.o.Matmul(r.s, wrong[0], wrong[1], own)
		require.ErrorIs(t, err, ops.ErrShape)
		_, err = r.o.MatmulInto(r.s, one, wrong[0], wrong[1], own)
		require.ErrorIs(t, err, ops.ErrShape)
	}
	_, err := r.o.MatmulInto(r.s, one, v, r.zeros(4, 3), own)
	require.ErrorIs(t, err, ops.ErrShape)
	_, err = r.o.MatmulInto(r.s, nil, v, v, own)
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	_, err = r.o.MatmulInto(r.s, v, v, r.zeros(4, 4), own)
	require.ErrorIs(t, err, kernel.ErrOverlap)
}

// The elements of the matrices of a batch may interleave, also in the output.
func TestMatmulOfInterleavedBatches(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ batch, m, k, n int }{{3, 7, 8, 1}, {2, 1, 3, 4}, {4, 3, 1, 5}, {3, 1, 2, 1}, {2, 5, 0, 3}} {
		a, b := newArray([]int{c.batch, c.m, c.k}, r.random.NormFloat64), newArray([]int{c.k, c.n}, r.random.NormFloat64)
		x, y := r.tensor(a), r.tensor(b)
		for _, order := range [][]int{{1, 2, 0}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}} { // of the dimensions in memory
			stored, back := make([]int, 3), make([]int, 3)
			for at, d := range order {
				stored[at], back[d] = []int{c.batch, c.m, c.n}[d], at
			}
			out, err := r.made(tensor.Float32, stored...).Permute(back...)
			require.NoError(t, err)
			_, err = r.o.MatmulInto(r.s, out, x, y, own)
			require.NoError(t, err, "%v %v", c, order)
			r.near(product(a, b, []int{c.batch, c.m, c.n}), out, 1e-5, 1, c, order)

			grad := r.tensor(newArray([]int{c.batch, c.m, c.k}, r.random.NormFloat64))
			weight := r.tensor(newArray([]int{c.batch, c.n, c.k}, r.random.NormFloat64))
			want, _, _, err := r.o.MatmulBackward(r.s, grad, out, weight, own)
			require.NoError(t, err, "%v %v", c, order)
			dx, err := r.made(tensor.Float32, stored...).Permute(back...)
			require.NoError(t, err)
			_, err = r.o.MatmulBackwardInto(r.s, dx, nil, grad, out, weight, own)
			require.NoError(t, err, "%v %v", c, order)
			r.near(r.read(want).values, dx, 1e-5, 1, c, order)
		}
	}
}

// A product of two types is one of the promoted type, and the output may have another one.
func TestMatmulOfTypes(t *testing.T) {
	r := newRig(t)
	a, b := newArray([]int{5, 9}, r.random.NormFloat64), newArray([]int{9, 4}, r.random.NormFloat64)
	x, y := r.tensor(a), r.tensor(b)
	wide, err := r.o.Cast(r.s, y, tensor.Float64)
	require.NoError(t, err)
	got, _, err := r.o.Matmul(r.s, x, wide, own)
	require.NoError(t, err)
	assert.Equal(t, tensor.Float64, got.Type())
	r.near(product(a, b, []int{5, 4}), got, 1e-12, 1)
	out := r.view(tensor.Float32, []int{5, 4})
	_, err = r.o.MatmulInto(r.s, out, x, wide, own)
	require.NoError(t, err)
	r.near(product(a, b, []int{5, 4}), out, 1e-6, 1)

	whole, err := r.o.Cast(r.s, x, tensor.Int32)
	require.NoError(t, err)
	var types *tensor.TypeError
	_, _, err = r.o.Matmul(r.s, whole, whole, own)
	require.ErrorIs(t, err, ops.ErrShape)
	turned, err := whole.Transpose(0, 1)
	require.NoError(t, err)
	_, _, err = r.o.Matmul(r.s, whole, turned, own)
	require.ErrorAs(t, err, &types)
	_, err = r.o.MatmulInto(r.s, r.view(tensor.Float32, []int{4, 4}), x, y, own)
	require.ErrorIs(t, err, ops.ErrShape)
	require.ErrorContains(t, err, "float32[5 9]")
	_, _, err = r.o.Matmul(r.s, x, wide, ops.Product{Precision: gemm.TF32, Choice: matmul.Own})
	var refused *gemm.ProblemError
	require.ErrorAs(t, err, &refused)
}

// A product into an operand is refused.
func TestMatmulIntoAnOperand(t *testing.T) {
	r := newRig(t)
	q, x := r.zeros(8, 8), r.zeros(8, 8)
	turned, err := q.Transpose(0, 1)
	require.NoError(t, err)
	for _, choice := range []matmul.Choice{matmul.Own, matmul.Any} {
		for _, operands := range [][2]*tensor.Tensor{{q, q}, {q, x}, {x, q}, {turned, x}} {
			_, err := r.o.MatmulInto(r.s, q, operands[0], operands[1], ops.Product{Choice: choice})
			require.ErrorIs(t, err, kernel.ErrOverlap)
		}
	}
}

// An epilogue in a product's kernel has the result of operations after the product: of matrices and batches, of
// outputs that are copied, and of sums without elements.
func TestEpiloguesOfProducts(t *testing.T) {
	r := newRig(t)
	number := r.random.NormFloat64
	for i, c := range []struct{ batch, sizes []int }{
		{nil, []int{1, 1, 1}},
		{nil, []int{7, 33, 5}},
		{nil, []int{64, 31, 17}},
		{[]int{3}, []int{5, 9, 8}},
		{nil, []int{4, 6, 0}},
		{[]int{2, 2}, []int{3, 4, 2}},
		{nil, []int{0, 3, 2}},
	} {
		m, n, k := c.sizes[0], c.sizes[1], c.sizes[2]
		a, b := newArray(append(slices.Clone(c.batch), m, k), number), newArray([]int{k, n}, number)
		shape := append(slices.Clone(c.batch), m, n)
		start, bias, before := newArray(shape, number), newArray([]int{n}, number), newArray(shape, number)
		of := []tensor.Type{tensor.Float32, tensor.BFloat16}[i%2]
		x, y := r.of(of, a), r.of(of, b)
		sums := product(a, b, shape)
		full := r.contiguousOf(of, bias)
		for j := range sums {
			sums[j] += bias.values[j%max(n, 1)]
		}
		how := own
		how.Bias, how.Epilogue, how.Aux = full, gemm.GELUAux, r.made(of, shape...)
		got, _, err := r.o.Matmul(r.s, x, y, how)
		require.NoError(t, err)
		bound := max(tolerance(of), 1e-5)
		r.near(mapped(sums, geluTanh), got, bound, 1, "GELU", shape)
		r.near(sums, how.Aux, bound, 1, "its operand", shape)

		for name, part := range map[string]struct {
			bias     bool
			epilogue gemm.Epilogue
		}{"a bias alone": {true, gemm.None}, "GELU alone": {false, gemm.GELU}, "GELU and its operand alone": {false, gemm.GELUAux}} {
			want, how := product(a, b, shape), own
			if how.Epilogue = part.epilogue; part.bias {
				want, how.Bias = sums, full
			}
			if how.Epilogue == gemm.GELUAux {
				how.Aux = r.made(of, shape...)
			}
			if how.Epilogue != gemm.None {
				want = mapped(want, geluTanh)
			}
			got, _, err := r.o.Matmul(r.s, x, y, how)
			require.NoError(t, err)
			r.near(want, got, bound, 1, name, shape)
		}

		into := own
		into.Add, into.Bias, into.Epilogue, into.Aux = true, full, gemm.GELUGradient, r.contiguousOf(of, before)
		out := r.of(of, start)
		_, err = r.o.MatmulInto(r.s, out, x, y, into)
		require.NoError(t, err)
		var want []float64
		for j, v := range sums {
			const h = 1e-5
			at := before.values[j]
			want = append(want, (start.values[j]+v)*(geluTanh(at+h)-geluTanh(at-h))/(2*h))
		}
		r.near(want, out, bound, 1, "the gradient of GELU", of, shape)
	}
}

func TestMistakesOfEpilogues(t *testing.T) {
	r := newRig(t)
	x, y, out := r.zeros(4, 3), r.zeros(3, 5), r.zeros(4, 5)
	run := func(change func(*ops.Product)) error {
		how := own
		change(&how)
		_, err := r.o.MatmulInto(r.s, out, x, y, how)
		return err
	}
	var types *tensor.TypeError
	row, err := out.Narrow(0, 0, 1)
	require.NoError(t, err)
	row, err = row.Reshape(5)
	require.NoError(t, err)
	require.ErrorIs(t, run(func(p *ops.Product) { p.Bias = r.zeros(4) }), ops.ErrShape)
	require.ErrorIs(t, run(func(p *ops.Product) { p.Bias = r.zeros(1, 5) }), ops.ErrShape, "of one dimension")
	require.ErrorAs(t, run(func(p *ops.Product) { p.Bias = r.made(tensor.Float16, 5) }), &types)
	require.ErrorIs(t, run(func(p *ops.Product) { p.Bias = row }), kernel.ErrOverlap)
	require.ErrorIs(t, run(func(p *ops.Product) { p.Epilogue = gemm.GELUAux }), ops.ErrShape, "no operand to write")
	require.ErrorIs(t, run(func(p *ops.Product) { p.Aux = r.zeros(4, 5) }), ops.ErrShape, "an operand without a use")
	require.ErrorIs(t, run(func(p *ops.Product) { p.Epilogue, p.Aux = gemm.GELUGradient, r.zeros(5, 4) }), ops.ErrShape)
	require.ErrorIs(t, run(func(p *ops.Product) { p.Epilogue, p.Aux = gemm.GELUGradient, out }), kernel.ErrOverlap)
	how := own
	how.Add = true
	_, _, err = r.o.Matmul(r.s, x, y, how)
	require.ErrorIs(t, err, ops.ErrShape, "nothing to add to")
	_, err = r.o.MatmulInto(r.s, r.zeros(4), x, r.zeros(3), how)
	require.ErrorIs(t, err, ops.ErrShape, "vectors")
	_, _, _, err = r.o.MatmulBackward(r.s, out, x, y, how)
	require.ErrorIs(t, err, ops.ErrShape, "the gradients of a product have none")
}

// A program whose shapes vary makes no list of them that grows for ever: the known ways of products are bounded.
func TestKnownWaysOfProductsAreBounded(t *testing.T) {
	r := newRig(t)
	const bound = 256
	most := 0
	for n := range 2*bound + 10 {
		x, y, out := r.made(tensor.Float32, 1, n+1), r.made(tensor.Float32, n+1, 1), r.made(tensor.Float32, 1, 1)
		known, err := ops.Plan(r.o, out, x, y)
		require.NoError(t, err)
		assert.Equal(t, n%bound+1, known)
		again, err := ops.Plan(r.o, out, x, y)
		require.NoError(t, err)
		assert.Equal(t, known, again, "a product of the same shape")
		most = max(most, known)
	}
	assert.Equal(t, bound, most)
}
