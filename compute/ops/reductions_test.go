package ops_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// rows are the elements of an array along axes, in row-major order, for each index of the others.
func (a array) rows(axes []int) (all [][]float64) {
	var kept []int
	for d, n := range a.shape {
		if !slices.Contains(axes, d) {
			kept = append(kept, n)
		}
	}
	all = make([][]float64, count(kept))
	each(a.shape, func(index []int) {
		row := 0
		for d, n := range a.shape {
			if !slices.Contains(axes, d) {
				row = row*n + index[d]
			}
		}
		all[row] = append(all[row], a.values[a.index(index)])
	})
	return all
}

func sum(row []float64) (total float64) {
	for _, x := range row {
		total += x
	}
	return total
}

func argMax(row []float64) float64 { return float64(slices.Index(row, slices.Max(row))) }

// Each reduction computes its reference, of any axes of any layouts.
func TestReductions(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		name      string
		makes     func(tensor.Context, *tensor.Tensor, bool, ...int) (*tensor.Tensor, error)
		into      func(tensor.Context, *tensor.Tensor, *tensor.Tensor, ...int) error
		chooses   bool
		reference func([]float64) float64
	}{
		{"sum", r.o.Sum, r.o.SumInto, false, sum},
		{"mean", r.o.Mean, r.o.MeanInto, false, func(row []float64) float64 { return sum(row) / float64(len(row)) }},
		{"max", r.o.Max, r.o.MaxInto, true, slices.Max[[]float64]},
		{"min", r.o.Min, r.o.MinInto, true, slices.Min[[]float64]},
		{"argmax", r.o.ArgMax, r.o.ArgMaxInto, true, argMax},
	} {
		for i := range 8 {
			rank := i % 4
			a := newArray(r.shape(rank), r.random.NormFloat64)
			x := r.tensor(a)
			var along, positive []int
			for d := range rank {
				if r.random.IntN(2) == 0 {
					positive = append(positive, d)
					along = append(along, d-rank*r.random.IntN(2))
				}
			}
			if len(along) == 0 {
				positive = []int{0, 1, 2, 3}[:rank]
			}
			reduced := 1
			for _, d := range positive {
				reduced *= a.shape[d]
			}
			keep := r.random.IntN(2) == 0
			y, err := c.makes(r.s, x, keep, along...)
			if c.chooses && reduced == 0 {
				require.ErrorIs(t, err, ops.ErrEmpty)
				continue
			}
			require.NoError(t, err)
			var want []float64
			for _, row := range a.rows(positive) {
				want = append(want, c.reference(row))
			}
			r.near(want, y, 1e-5, 1, c.name, a.shape, along)
			out := r.view(y.Type(), y.Shape())
			require.NoError(t, c.into(r.s, out, x, along...))
			r.near(want, out, 1e-5, 1, c.name, a.shape, along)
			if keep {
				require.Equal(t, rank, y.Rank())
			}
		}
	}
	x := r.tensor(newArray([]int{2, 3}, r.random.NormFloat64))
	_, err := r.o.Sum(r.s, x, false, 0, -2)
	require.ErrorIs(t, err, ops.ErrAxes)
	_, err = r.o.Softmax(r.s, x, 2)
	require.ErrorIs(t, err, ops.ErrAxes)
	require.ErrorContains(t, err, "[2 3]")
}

// NaN is the greatest and the least element, and ArgMax returns the index of the first one.
func TestReductionsOfNaN(t *testing.T) {
	r := newRig(t)
	x, err := tensor.From(r.s, []float32{1, float32(math.NaN()), 5, float32(math.NaN())})
	require.NoError(t, err)
	for _, f := range []func(tensor.Context, *tensor.Tensor, bool, ...int) (*tensor.Tensor, error){r.o.Max, r.o.Min, r.o.Sum} {
		y, err := f(r.s, x, false)
		require.NoError(t, err)
		r.near([]float64{math.NaN()}, y, 0, 0)
	}
	y, err := r.o.ArgMax(r.s, x, false)
	require.NoError(t, err)
	r.near([]float64{1}, y, 0, 0)
}

// Rows that blocks share, and columns, equal the references too.
func TestLongRows(t *testing.T) {
	r := newRig(t)
	for _, shape := range [][]int{{3, 1023}, {2, 1025}, {1, 40001}, {4097, 3}} {
		a := newArray(shape, r.random.NormFloat64)
		x := r.tensor(a)
		for axis := range 2 {
			var sums, means []float64
			for _, row := range a.rows([]int{axis}) {
				sums, means = append(sums, sum(row)), append(means, sum(row)/float64(len(row)))
			}
			y, err := r.o.Sum(r.s, x, true, axis)
			require.NoError(t, err)
			r.near(sums, y, 1e-5, 10, shape, axis)
			y, err = r.o.Mean(r.s, x, false, axis)
			require.NoError(t, err)
			r.near(means, y, 1e-5, 0.1, shape, axis)
		}
		y, err := r.o.Softmax(r.s, x, 1)
		require.NoError(t, err)
		r.near(a.over(1, softmax), y, 1e-5, 0, shape)
	}
}

// Numbers of 16 bits are computed in float32 and rounded once.
func TestShortNumbers(t *testing.T) {
	r := newRig(t)
	for of, bound := range map[tensor.Type]float64{tensor.Float16: 1.0 / (1 << 11), tensor.BFloat16: 1.0 / (1 << 8)} {
		x, err := r.o.Cast(r.s, r.tensor(newArray([]int{5, 33}, r.random.NormFloat64)), of)
		require.NoError(t, err)
		a := r.read(x)
		for name, c := range map[string]struct {
			f    func() (*tensor.Tensor, error)
			want []float64
		}{
			"softmax":    {func() (*tensor.Tensor, error) { return r.o.Softmax(r.s, x, 1) }, a.over(1, softmax)},
			"layer norm": {func() (*tensor.Tensor, error) { return r.o.LayerNorm(r.s, x, nil, nil, 1, epsilon) }, a.over(1, layerNorm)},
			"silu":       {func() (*tensor.Tensor, error) { return r.o.Silu(r.s, x) }, mapped(a.values, func(x float64) float64 { return x * sigmoid(x) })},
		} {
			y, err := c.f()
			require.NoError(t, err)
			require.Equal(t, of, y.Type())
			r.near(c.want, y, 1.01*bound, 1e-4, name, of)
		}
	}
}
