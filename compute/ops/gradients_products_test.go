package ops_test

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/matmul"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda/gemm"
	"github.com/go-vram/vram/cudadrv/fault"
)

// productGradients are the gradients of the operands of a product.
func productGradients(a, b, g array) (dx, dy []float64) {
	dx, dy = make([]float64, len(a.values)), make([]float64, len(b.values))
	each(g.shape, func(index []int) {
		left, right := slices.Clone(index), slices.Clone(index)
		for k := range a.shape[len(a.shape)-1] {
			left[len(left)-1], right[len(right)-2] = k, k
			i, j, of := a.index(left), b.index(right), g.values[g.index(index)]
			dx[i] += of * b.values[j]
			dy[j] += of * a.values[i]
		}
	})
	return dx, dy
}

// batches has the batch dimensions of the left operand, of the right one, and of their product.
var batches = [][3][]int{
	{{}, {}, {}},
	{{3}, {3}, {3}},
	{{2, 3}, {2, 3}, {2, 3}},
	{{2, 3}, {}, {2, 3}},
	{{}, {2, 3}, {2, 3}},
	{{2, 3}, {1, 1}, {2, 3}},
	{{1}, {2, 3}, {2, 3}},
	{{2, 1}, {1, 3}, {2, 3}},
	{{3}, {2, 1}, {2, 3}},
	{{2, 3}, {3}, {2, 3}},
	{{1}, {}, {1}},
	{{}, {1, 1}, {1, 1}},
	{{0}, {}, {0}},
	{{}, {0, 2}, {0, 2}},
	{{1, 2}, {0, 1}, {0, 2}},
}

// Gradients of products equal the reference for any layouts, also transposed ones, and for broadcast batches.
func TestGradientsOfMatmul(t *testing.T) {
	all := newRig(t)
	for _, batch := range batches {
		t.Run(fmt.Sprint(batch), func(t *testing.T) {
			r := all.in(t)
			for range 2 {
				m, n, k := r.length(), r.length(), r.length()
				a, b := newArray(slices.Concat(batch[0], []int{m, k}), r.random.NormFloat64), newArray(slices.Concat(batch[1], []int{k, n}), r.random.NormFloat64)
				g := newArray(slices.Concat(batch[2], []int{m, n}), r.random.NormFloat64)
				wantX, wantY := productGradients(a, b, g)
				x, y, grad := r.tensor(a), r.tensor(b), r.tensor(g)
				dx, dy, paths, err := r.o.MatmulBackward(r.s, grad, x, y, own)
				require.NoError(t, err, "%v %v", a.shape, b.shape)
				for i, d := range []*tensor.Tensor{dx, dy} {
					require.Empty(t, paths[i].Library)
					require.Equal(t, [][]int{a.shape, b.shape}[i], d.Shape())
				}
				r.near(wantX, dx, 1e-5, 20, a.shape, b.shape)
				r.near(wantY, dy, 1e-5, 20, a.shape, b.shape)
				outX, outY := r.view(tensor.Float32, a.shape), r.view(tensor.Float32, b.shape)
				_, err = r.o.MatmulBackwardInto(r.s, outX, outY, grad, x, y, own)
				require.NoError(t, err)
				r.near(wantX, outX, 1e-5, 20, a.shape, b.shape)
				r.near(wantY, outY, 1e-5, 20, a.shape, b.shape)
			}
			a, b := newArray(slices.Concat(batch[0], []int{2, 3}), r.random.NormFloat64), newArray(slices.Concat(batch[1], []int{3, 4}), r.random.NormFloat64)
			g := newArray(slices.Concat(batch[2], []int{2, 4}), r.random.NormFloat64)
			dx, dy, _, err := r.o.MatmulBackward(r.s, r.tensor(g), r.tensor(a), r.tensor(b), own)
			require.NoError(t, err)
			r.near(changes(func(x []float64) []float64 { return product(array{a.shape, x}, b, g.shape) }, a.values, g.values), dx, 1e-5, 1)
			r.near(changes(func(y []float64) []float64 { return product(a, array{b.shape, y}, g.shape) }, b.values, g.values), dy, 1e-5, 1)
		})
	}
}

// Repeated elements and batches with gaps do not change the gradients of a product.
func TestGradientsOfMatmulOfRepeatedOperands(t *testing.T) {
	r := newRig(t)
	for i := range 6 {
		shapes := [][]int{{2, 3, 5, 4}, {4, 7}, {2, 3, 5, 7}}
		if i%2 == 1 {
			shapes = [][]int{{5, 4}, {2, 3, 4, 7}, {2, 3, 5, 7}}
		}
		x, a := r.repeated(shapes[0], r.random.NormFloat64)
		y, b := r.repeated(shapes[1], r.random.NormFloat64)
		grad, g := r.repeated(shapes[2], r.random.NormFloat64)
		wantX, wantY := productGradients(a, b, g)
		dx, dy, _, err := r.o.MatmulBackward(r.s, grad, x, y, own)
		require.NoError(t, err)
		r.near(wantX, dx, 1e-5, 20)
		r.near(wantY, dy, 1e-5, 20)
	}
}

// Gradients of products of 16-bit numbers are summed in float32 and rounded once, also over batches. Operands may have
// different types.
func TestGradientsOfMatmulOfTypes(t *testing.T) {
	all := newRig(t)
	for _, number := range []int{0, 3, 4, 7, 8} {
		batch := batches[number]
		for of, bound := range halves {
			t.Run(fmt.Sprint(batch, of), func(t *testing.T) {
				r := all.in(t)
				a, b := newArray(slices.Concat(batch[0], []int{5, 4}), r.random.NormFloat64), newArray(slices.Concat(batch[1], []int{4, 7}), r.random.NormFloat64)
				g := newArray(slices.Concat(batch[2], []int{5, 7}), r.random.NormFloat64)
				x, y, grad := r.halfOf(of, a), r.halfOf(of, b), r.halfOf(of, g)
				wantX, wantY := productGradients(a, b, g)
				dx, dy, _, err := r.o.MatmulBackward(r.s, grad, x, y, own)
				require.NoError(t, err)
				require.Equal(t, []tensor.Type{of, of}, []tensor.Type{dx.Type(), dy.Type()})
				r.near(wantX, dx, 1.001*bound, 1e-4)
				r.near(wantY, dy, 1.001*bound, 1e-4)

				single, err := r.o.Cast(r.s, grad, tensor.Float32)
				require.NoError(t, err)
				wide := r.tensor(b)
				dx, dy, _, err = r.o.MatmulBackward(r.s, single, x, wide, own)
				require.NoError(t, err)
				require.Equal(t, []tensor.Type{of, tensor.Float32}, []tensor.Type{dx.Type(), dy.Type()})
				r.near(wantX, dx, 1.001*bound, 1e-4)
				r.near(wantY, dy, 1e-5, 10)
			})
		}
	}
	r := all
	a, b, g := newArray([]int{2, 5, 4}, r.random.NormFloat64), newArray([]int{4, 3}, r.random.NormFloat64), newArray([]int{2, 5, 3}, r.random.NormFloat64)
	wide := func(a array) *tensor.Tensor {
		x, err := r.o.Cast(r.s, r.tensor(a), tensor.Float64)
		require.NoError(t, err)
		return x
	}
	x, y, grad := wide(a), wide(b), wide(g)
	wantX, wantY := productGradients(a, b, g)
	dx, dy, _, err := r.o.MatmulBackward(r.s, grad, x, y, own)
	require.NoError(t, err)
	r.near(wantX, dx, 1e-12, 10)
	r.near(wantY, dy, 1e-12, 10)
}

// The gradients of a product have its precision.
func TestPrecisionOfGradientsOfMatmul(t *testing.T) {
	r := newRig(t)
	a, b, g := newArray([]int{2, 5, 64}, r.random.NormFloat64), newArray([]int{64, 3}, r.random.NormFloat64), newArray([]int{2, 5, 3}, r.random.NormFloat64)
	x, y, grad := r.tensor(a), r.tensor(b), r.tensor(g)
	wantX, wantY := productGradients(a, b, g)
	exactX, exactY, _, err := r.o.MatmulBackward(r.s, grad, x, y, own)
	require.NoError(t, err)
	dx, dy, paths, err := r.o.MatmulBackward(r.s, grad, x, y, ops.Product{Choice: matmul.Own, Precision: gemm.RoundedBF16})
	require.NoError(t, err)
	for _, path := range paths {
		require.True(t, path.Converted, path)
	}
	r.near(wantX, dx, 0x1p-7, 4)
	r.near(wantY, dy, 0x1p-7, 4)
	require.NotEqual(t, r.read(exactX).values, r.read(dx).values)
	require.NotEqual(t, r.read(exactY).values, r.read(dy).values)
	double, err := r.o.Cast(r.s, x, tensor.Float64)
	require.NoError(t, err)
	_, _, _, err = r.o.MatmulBackward(r.s, grad, double, y, ops.Product{Choice: matmul.Own, Precision: gemm.TF32})
	var refused *gemm.ProblemError
	require.ErrorAs(t, err, &refused)
	require.ErrorContains(t, err, "ops: matmul backward of ")
}

// Gradients of vectors equal the gradients of matrices of one row or one column, without that dimension.
func TestGradientsOfMatmulOfVectors(t *testing.T) {
	r := newRig(t)
	for _, s := range vectorShapes {
		a, b, g := newArray(s[0], r.random.NormFloat64), newArray(s[1], r.random.NormFloat64), newArray(s[2], r.random.NormFloat64)
		wantX, wantY := productGradients(asMatrices(a, b, g))
		x, y, grad := r.tensor(a), r.tensor(b), r.tensor(g)
		dx, dy, _, err := r.o.MatmulBackward(r.s, grad, x, y, own)
		require.NoError(t, err, s)
		require.Equal(t, s[0], dx.Shape())
		require.Equal(t, s[1], dy.Shape())
		r.near(wantX, dx, 1e-5, 20, s)
		r.near(wantY, dy, 1e-5, 20, s)
		outX, outY := r.view(tensor.Float32, s[0]), r.view(tensor.Float32, s[1])
		_, err = r.o.MatmulBackwardInto(r.s, outX, nil, grad, x, y, own)
		require.NoError(t, err, s)
		r.near(wantX, outX, 1e-5, 20, s)
		_, err = r.o.MatmulBackwardInto(r.s, x, outY, grad, x, y, own)
		require.NoError(t, err, s)
		r.near(wantX, x, 1e-5, 20, s, "over the operand")
		r.near(wantY, outY, 1e-5, 20, s)
		for _, wrong := range [][]int{append([]int{1}, s[0]...), append(slices.Clone(s[0]), 1)} {
			_, err = r.o.MatmulBackwardInto(r.s, r.zeros(wrong...), nil, grad, x, y, own)
			require.ErrorIs(t, err, ops.ErrShape, s)
		}
		_, err = r.o.MatmulBackwardInto(r.s, outX, outY, r.zeros(append([]int{1}, s[2]...)...), x, y, own)
		require.ErrorIs(t, err, ops.ErrShape, s)
	}
	v := r.zeros(4)
	_, err := r.o.MatmulBackwardInto(r.s, nil, r.zeros(4, 3), r.zeros(), v, r.zeros(4, 3), own)
	require.ErrorIs(t, err, ops.ErrShape)
	_, err = r.o.MatmulBackwardInto(r.s, nil, v, v, r.zeros(4, 4), v, own)
	require.ErrorIs(t, err, kernel.ErrOverlap)
}

// The gradient of a weight that all matrices of a batch share is one product.
func TestGradientOfASharedWeightIsOneProduct(t *testing.T) {
	driver := fault.Wrap(launching(t))
	r := newRigOn(t, driver)
	x, y, grad, dy := r.zeros(2, 3, 16, 8), r.zeros(8, 4), r.zeros(2, 3, 16, 4), r.zeros(8, 4)
	var launches atomic.Int64
	run := func() {
		_, err := r.o.MatmulBackwardInto(r.c, nil, dy, grad, x, y, own)
		require.NoError(t, err)
	}
	run()
	driver.SetBefore(func(function string) {
		if strings.HasPrefix(function, "cuLaunchKernel") {
			launches.Add(1)
		}
	})
	run()
	driver.SetBefore(nil)
	require.EqualValues(t, 1, launches.Load())
}

// Gradients of products over operands equal the gradients in separate memory, or are refused before anything is written.
func TestGradientsOfMatmulOverOperands(t *testing.T) {
	r := newRig(t)
	const dx, dy, grad, x, y = 0, 1, 2, 3, 4
	values := make([]array, 5)
	for i := range values {
		values[i] = newArray([]int{4, 4}, r.random.NormFloat64)
	}
	made := func() (all []*tensor.Tensor) {
		for _, a := range values {
			single, err := tensor.From(r.s, mappedTo(a.values), a.shape...)
			require.NoError(t, err)
			all = append(all, single)
		}
		return all
	}
	run := func(a []*tensor.Tensor) error {
		_, err := r.o.MatmulBackwardInto(r.s, a[dx], a[dy], a[grad], a[x], a[y], own)
		return err
	}
	apart := made()
	require.NoError(t, run(apart))
	for _, pair := range [][2]int{{dx, x}, {dy, y}} {
		all := made()
		all[pair[0]] = all[pair[1]]
		require.NoError(t, run(all), pair)
		for _, i := range []int{dx, dy} {
			require.Equal(t, r.read(apart[i]).values, r.read(all[i]).values, pair)
		}
	}
	for _, pairs := range [][][2]int{{{dx, dy}}, {{dx, grad}}, {{dx, y}}, {{dy, grad}}, {{dy, x}}, {{dx, x}, {dy, y}}} {
		all := made()
		for _, pair := range pairs {
			all[pair[0]] = all[pair[1]]
		}
		before := make([][]float64, len(all))
		for i := range all {
			before[i] = r.read(all[i]).values
		}
		require.ErrorIs(t, run(all), kernel.ErrOverlap, pairs)
		for i := range all {
			require.Equal(t, before[i], r.read(all[i]).values, pairs)
		}
	}
}

func TestMistakesOfGradientsOfMatmul(t *testing.T) {
	r := newRig(t)
	x, y, grad := r.zeros(2, 5, 4), r.zeros(4, 3), r.zeros(2, 5, 3)
	for _, wrong := range [][3]*tensor.Tensor{
		{r.zeros(5, 3), x, y},
		{r.zeros(1, 5, 3), x, y},
		{r.zeros(2, 4, 3), x, y},
		{r.zeros(2, 5, 4), x, y},
		{r.zeros(1, 2, 5, 3), x, y},
		{grad, r.zeros(3, 5, 4), y},
		{grad, x, r.zeros(3, 4, 3)},
		{grad, x, r.zeros(5, 3)},
		{grad, x, r.zeros(4)},
		{grad, r.zeros(4), y},
		{r.zeros(), r.zeros(), r.zeros()},
	} {
		_, _, _, err := r.o.MatmulBackward(r.s, wrong[0], wrong[1], wrong[2], own)
		require.ErrorIs(t, err, ops.ErrShape)
		require.ErrorContains(t, err, "ops: matmul backward of ")
		require.ErrorContains(t, err, wrong[0].String())
	}
	for _, wrong := range [][2]*tensor.Tensor{{r.zeros(5, 4), nil}, {r.zeros(1, 5, 4), nil}, {nil, r.zeros(1, 4, 3)}, {nil, r.zeros(3, 4)}} {
		_, err := r.o.MatmulBackwardInto(r.s, wrong[0], wrong[1], grad, x, y, own)
		require.ErrorIs(t, err, ops.ErrShape)
	}
	_, err := r.o.MatmulBackwardInto(r.s, nil, nil, grad, x, y, own)
	require.NoError(t, err)
	_, err = r.o.MatmulBackwardInto(r.s, nil, nil, nil, x, y, own)
	require.ErrorIs(t, err, tensor.ErrNoTensor)
	repeated, err := r.zeros(4, 1).Broadcast(4, 3)
	require.NoError(t, err)
	_, err = r.o.MatmulBackwardInto(r.s, nil, repeated, grad, x, y, own)
	require.ErrorIs(t, err, kernel.ErrRepeats)
	whole := r.made(tensor.Int32, 4, 3)
	_, _, _, err = r.o.MatmulBackward(r.s, grad, x, whole, own)
	var types *tensor.TypeError
	require.ErrorAs(t, err, &types)
	var none ops.Ops
	_, err = none.MatmulBackwardInto(r.s, nil, y, grad, x, y, own)
	require.ErrorIs(t, err, ops.ErrNotOpen)
}
