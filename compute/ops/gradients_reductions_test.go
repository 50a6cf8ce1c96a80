package ops_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// reductionGradient returns the gradient of a row from the gradient of its result.
type reductionGradient func(grad float64, row []float64) []float64

func evenly(choose func([]float64) float64) reductionGradient {
	return func(grad float64, row []float64) []float64 {
		best, count := choose(row), 0.0
		for _, x := range row {
			count += truth(x == best)
		}
		return mapped(row, func(x float64) float64 { return grad / count * truth(x == best) })
	}
}

// reductionGradients are the reductions that have a gradient.
func (r *rig) reductionGradients() map[string]struct {
	back      func(at tensor.Context, grad, x *tensor.Tensor, axes ...int) (*tensor.Tensor, error)
	into      func(at tensor.Context, dx, grad, x *tensor.Tensor, axes ...int) error
	forward   func(row []float64) float64
	reference reductionGradient
	chooses   bool
} {
	o := r.o
	return map[string]struct {
		back      func(at tensor.Context, grad, x *tensor.Tensor, axes ...int) (*tensor.Tensor, error)
		into      func(at tensor.Context, dx, grad, x *tensor.Tensor, axes ...int) error
		forward   func(row []float64) float64
		reference reductionGradient
		chooses   bool
	}{
		"sum": {o.SumBackward, func(at tensor.Context, dx, grad, _ *tensor.Tensor, axes ...int) error {
			return o.SumBackwardInto(at, dx, grad, axes...)
		}, sum, func(g float64, row []float64) []float64 { return mapped(row, func(float64) float64 { return g }) }, false},
		"mean": {
			o.MeanBackward, func(at tensor.Context, dx, grad, _ *tensor.Tensor, axes ...int) error {
				return o.MeanBackwardInto(at, dx, grad, axes...)
			}, func(row []float64) float64 { return sum(row) / float64(len(row)) },
			func(g float64, row []float64) []float64 {
				return mapped(row, func(float64) float64 { return g / float64(len(row)) })
			}, false,
		},
		"max": {o.MaxBackward, o.MaxBackwardInto, slices.Max[[]float64], evenly(slices.Max[[]float64]), true},
		"min": {o.MinBackward, o.MinBackwardInto, slices.Min[[]float64], evenly(slices.Min[[]float64]), true},
	}
}

// unrows are the values of an array of a shape that has these rows along axes.
func unrows(shape, axes []int, rows [][]float64) []float64 {
	numbers := array{shape: shape}
	for i := range count(shape) {
		numbers.values = append(numbers.values, float64(i))
	}
	all := make([]float64, count(shape))
	for i, places := range numbers.rows(axes) {
		for j, at := range places {
			all[int(at)] = rows[i][j]
		}
	}
	return all
}

// Gradients of reductions equal their references along any axes, kept or not, for any layouts; equal elements share one
// evenly.
func TestGradientsOfReductions(t *testing.T) {
	all := newRig(t)
	for name, c := range all.reductionGradients() {
		t.Run(name, func(t *testing.T) {
			r := all.in(t)
			for i := range 12 {
				rank := i % 4
				a := newArray(r.shape(rank), func() float64 { return float64(r.random.IntN(5)) })
				var along, positive []int
				for d := range rank {
					if r.random.IntN(2) == 0 {
						positive, along = append(positive, d), append(along, d-rank*r.random.IntN(2))
					}
				}
				if len(along) == 0 {
					positive = []int{0, 1, 2, 3}[:rank]
				}
				kept, left := slices.Clone(a.shape), []int{}
				for d, n := range a.shape {
					if slices.Contains(positive, d) {
						kept[d] = 1
					} else {
						left = append(left, n)
					}
				}
				g := newArray(kept, r.random.NormFloat64)
				about := fmt.Sprint(a.shape, along)
				x, grad := r.tensor(a), r.tensor(g)
				lacking := r.tensor(array{left, g.values})
				dx, err := c.back(r.s, grad, x, along...)
				if err != nil && c.chooses && len(a.values) == 0 {
					require.ErrorIs(t, err, ops.ErrEmpty, about)
					continue
				}
				require.NoError(t, err, about)
				var rows [][]float64
				for i, row := range a.rows(positive) {
					if len(row) > 0 {
						rows = append(rows, c.reference(g.values[i], row))
					}
				}
				want := unrows(a.shape, positive, rows)
				r.near(want, dx, 1e-6, 0, about)
				again, err := c.back(r.s, lacking, x, along...)
				require.NoError(t, err, about)
				require.Equal(t, r.read(dx).values, r.read(again).values, about)
				out := r.view(tensor.Float32, a.shape)
				require.NoError(t, c.into(r.s, out, lacking, x, along...))
				require.Equal(t, r.read(dx).values, r.read(out).values, about)
			}
			// By differences, where no elements are equal.
			shape := []int{3, 4, 5}
			a, g := newArray(shape, r.random.NormFloat64), newArray([]int{4}, r.random.NormFloat64)
			dx, err := c.back(r.s, r.tensor(g), r.tensor(a), 0, -1)
			require.NoError(t, err)
			r.near(changes(func(x []float64) (all []float64) {
				for _, row := range (array{shape, x}).rows([]int{0, 2}) {
					all = append(all, c.forward(row))
				}
				return all
			}, a.values, g.values), dx, 1e-5, 1e-2)
		})
	}
}

// Rows that several blocks share have the gradients of short ones; 16-bit gradients are rounded once.
func TestGradientsOfLongRows(t *testing.T) {
	all := newRig(t)
	for name, c := range all.reductionGradients() {
		t.Run(name, func(t *testing.T) {
			r := all.in(t)
			for _, shape := range [][]int{{2, 1025}, {1, sweepSizes().columns}, {2049, 3}} {
				for axis := range 2 {
					a := newArray(shape, func() float64 { return float64(r.random.IntN(200)) })
					g := newArray([]int{shape[1-axis]}, r.random.NormFloat64)
					var rows [][]float64
					grad := r.halfOf(tensor.BFloat16, g)
					x := r.halfOf(tensor.BFloat16, a)
					for i, row := range a.rows([]int{axis}) {
						rows = append(rows, c.reference(g.values[i], row))
					}
					want := unrows(shape, []int{axis}, rows)
					dx, err := c.back(r.s, grad, x, axis)
					require.NoError(t, err)
					require.Equal(t, tensor.BFloat16, dx.Type())
					r.near(want, dx, halves[tensor.BFloat16], 0, shape, axis)
					single := r.zeros(shape...)
					require.NoError(t, c.into(r.s, single, grad, x, axis))
					r.near(want, single, 1e-6, 0, shape, axis)
				}
			}
		})
	}
}

// Equal elements share a gradient of 16 bits evenly, also where the type does not have their number.
func TestGradientsOfManyEqualElements(t *testing.T) {
	r := newRig(t)
	for of := range halves {
		for _, n := range longRows() {
			x, err := r.o.Fill(r.s, of, 1, n)
			require.NoError(t, err)
			grad, err := r.o.Fill(r.s, of, 1024)
			require.NoError(t, err)
			for _, back := range []func(at tensor.Context, grad, x *tensor.Tensor, axes ...int) (*tensor.Tensor, error){r.o.MaxBackward, r.o.MinBackward} {
				dx, err := back(r.s, grad, x)
				require.NoError(t, err)
				r.near(slices.Repeat([]float64{1024 / float64(n)}, n), dx, halves[of], 0, of, n)
			}
		}
	}
}

// Gradients of reductions of NaN and infinities equal PyTorch's for amax and amin.
func TestSpecialNumbersOfGradientsOfReductions(t *testing.T) {
	r := newRig(t)
	row := func(values ...float64) *tensor.Tensor { return r.tensor(array{[]int{len(values)}, values}) }
	for _, c := range []struct {
		g        float64
		x        []float64
		max, min []float64
	}{
		{6, []float64{1, nan, 2}, []float64{nan, nan, nan}, []float64{nan, nan, nan}},
		{6, []float64{inf, 1, inf}, []float64{3, 0, 3}, []float64{0, 6, 0}},
		{6, []float64{-inf, -inf, 0}, []float64{0, 0, 6}, []float64{3, 3, 0}},
		{6, []float64{zero, 0, -1}, []float64{3, 3, 0}, []float64{0, 0, 6}},
		{6, []float64{5}, []float64{6}, []float64{6}},
		{inf, []float64{1, 2}, []float64{nan, inf}, []float64{inf, nan}},
		{nan, []float64{1, 2}, []float64{nan, nan}, []float64{nan, nan}},
	} {
		dx, err := r.o.MaxBackward(r.s, row(c.g), row(c.x...), 0)
		require.ErrorIs(t, err, nil)
		r.near(c.max, dx, 0, 0, c.x)
		dx, err = r.o.MinBackward(r.s, row(c.g), row(c.x...))
		require.NoError(t, err)
		r.near(c.min, dx, 0, 0, c.x)
	}
	for _, g := range []float64{inf, -inf, nan, 0} {
		dx, err := r.o.MeanBackward(r.s, row(g), row(1, 2))
		require.NoError(t, err)
		r.near([]float64{g, g}, dx, 0, 0)
	}
	dx, err := r.o.MeanBackward(r.s, row(zero), row(1, 2))
	require.NoError(t, err)
	require.True(t, math.Signbit(r.read(dx).values[0]))
}

// Gradients of reductions may be written over the operand, but not over the gradient of the result, which has another layout.
func TestGradientsOfReductionsOverOperands(t *testing.T) {
	r := newRig(t)
	a, g := newArray([]int{3, 5}, r.random.NormFloat64), newArray([]int{3, 1}, r.random.NormFloat64)
	for name, c := range r.reductionGradients() {
		over, grad := r.zeros(3, 5), r.zeros(3, 1)
		r.write(over, a.values)
		r.write(grad, g.values)
		want, err := c.back(r.s, grad, over, 1)
		require.NoError(t, err)
		require.NoError(t, c.into(r.s, over, grad, over, 1))
		require.Equal(t, r.read(want).values, r.read(over).values, name)
		part, err := over.Narrow(1, 1, 1)
		require.NoError(t, err)
		x := r.tensor(a)
		require.ErrorIs(t, c.into(r.s, over, part, x, 1), kernel.ErrOverlap, name)
		require.Equal(t, r.read(want).values, r.read(over).values, name)
		if c.chooses {
			square := r.zeros(3, 3)
			turned, err := square.Transpose(0, 1)
			require.NoError(t, err)
			require.ErrorIs(t, c.into(r.s, square, grad, turned, 1), kernel.ErrOverlap, name)
		}
		repeated, err := r.zeros(3, 1).Broadcast(3, 5)
		require.NoError(t, err)
		require.ErrorIs(t, c.into(r.s, repeated, grad, x, 1), kernel.ErrRepeats, name)
		one := r.zeros(3, 1) // rows of one element
		r.write(one, g.values)
		require.NoError(t, c.into(r.s, one, one, r.zeros(3, 1), 1))
		r.near(g.values, one, 0, 0, name)
	}
}

// Gradients of reductions whose shape differs from the result are refused.
func TestMistakesOfGradientsOfReductions(t *testing.T) {
	r := newRig(t)
	x := r.zeros(2, 3, 4)
	for name, c := range r.reductionGradients() {
		for _, wrong := range [][]int{{}, {2}, {4}, {3, 4}, {2, 3, 1}, {1, 3, 4}, {1, 1, 1}, {1, 2, 1, 4}, {2, 1, 4, 1}} {
			_, err := c.back(r.s, r.zeros(wrong...), x, 1)
			require.ErrorIs(t, err, ops.ErrShape, "%s %v", name, wrong)
			require.ErrorContains(t, err, "ops: "+name+" backward of output 0 float32[2 3 4] on GPU 0, operand 0 float32"+fmt.Sprint(wrong))
		}
		_, err := c.back(r.s, r.zeros(2, 4), x, 3)
		require.ErrorIs(t, err, ops.ErrAxes, name)
		require.ErrorIs(t, c.into(r.s, nil, r.zeros(2, 4), x, 1), tensor.ErrNoTensor, name)
		_, err = c.back(r.s, nil, x, 1)
		require.ErrorIs(t, err, tensor.ErrNoTensor, name)
		whole, err := r.o.Cast(r.s, x, tensor.Int32)
		require.NoError(t, err)
		_, err = c.back(r.s, r.zeros(2, 4), whole, 1)
		var types *tensor.TypeError
		require.ErrorAs(t, err, &types, name)
		if c.chooses {
			require.ErrorIs(t, c.into(r.s, x, r.zeros(2, 4), r.zeros(2, 4, 3), 1), ops.ErrShape, name)
			_, err = c.back(r.s, r.zeros(2), r.zeros(2, 0), 1)
			require.ErrorIs(t, err, ops.ErrEmpty, name)
		}
	}
}
