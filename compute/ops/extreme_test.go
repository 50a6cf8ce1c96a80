package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// extremes are numbers whose squares, cubes or quotients are no float32, and some between.
func extremes() []float64 {
	var all []float64
	for _, size := range []float64{math.MaxFloat32, 1e30, 8e20, 1e15, 1e10, 3, 1, 1e-10, 1e-15, 8e-22, 1e-30, 0x1p-126, 0x1p-140} {
		all = append(all, float64(float32(size)), -float64(float32(size)))
	}
	return all
}

// pairs are all pairs of numbers, as two rows.
func pairs(a, b []float64) (first, second []float64) {
	for _, x := range a {
		for _, y := range b {
			first, second = append(first, x), append(second, y)
		}
	}
	return first, second
}

// exact requires the numbers that float64 computes, as float32 has them: within an error, and of denormal numbers within some
// of their units.
func (r *rig) exact(want []float64, got *tensor.Tensor, about ...any) {
	r.Helper()
	for i, x := range r.read(got).values {
		w := want[i]
		if math.Abs(w) > math.MaxFloat32*(1-1e-5) {
			require.True(r, math.Abs(x) > math.MaxFloat32*(1-1e-5) && math.Signbit(x) == math.Signbit(w), append(about, i, x, w))
			continue
		}
		require.LessOrEqual(r, math.Abs(x-w), 3e-6*math.Abs(w)+0x1p-146, append(about, i, x, w))
	}
}

// Where a gradient is a number, no step on the way to it is infinite or 0.
func TestGradientsDoNotOverflowBetween(t *testing.T) {
	r := newRig(t)
	row := func(values []float64) *tensor.Tensor { return r.tensor(array{[]int{len(values)}, values}) }

	// As PyTorch's: x/y/y is a number in all of these, and the product of the gradient with x is none, or 0.
	divided := func(g, x, y float64) {
		_, dy, err := r.o.DivBackward(r.s, row([]float64{g}), row([]float64{x}), row([]float64{y}))
		require.NoError(t, err)
		g, x, y = float64(float32(g)), float64(float32(x)), float64(float32(y))
		r.exact([]float64{-g * x / y / y}, dy, g, x, y)
	}
	for _, of := range [][3]float64{
		{1e30, 1e20, 1e19}, {1e30, 8e20, 1e28}, {-1e20, 1e30, 1e30}, {1e-30, 1e-20, 1e-25}, {1e-20, 1e-30, 1e-25}, {1e10, 3e38, 1e35}, {3, 2, 7},
	} {
		divided(of[0], of[1], of[2])
	}

	var roots []float64
	for _, x := range extremes() {
		if x > 0 {
			roots = append(roots, float64(float32(1/math.Sqrt(x))))
		}
	}
	g, y := pairs(extremes(), roots)
	dx, err := r.o.RsqrtBackward(r.s, row(g), row(y))
	require.NoError(t, err)
	r.exact(zipped(g, y, func(g, y float64) float64 { return -0.5 * g * y * y * y }), dx, "rsqrt")

	g, x := pairs([]float64{1, -3, 1e20}, append(extremes(), 20, -20, 1e13, -1e13))
	dx, err = r.o.GeluTanhBackward(r.s, row(g), row(x))
	require.NoError(t, err)
	r.exact(zipped(g, x, func(g, x float64) float64 {
		if math.Abs(x) > 15 {
			return g * truth(x > 0)
		}
		u := 2 * math.Sqrt(2/math.Pi) * x * (1 + 0.044715*x*x)
		s := 1 / (1 + math.Exp(-u))
		return g * (s + s/(1+math.Exp(u))*2*math.Sqrt(2/math.Pi)*x*(1+3*0.044715*x*x))
	}), dx, "gelu by tanh")
	for name, back := range map[string]makes2{"gelu": r.o.GeluBackward, "silu": r.o.SiluBackward} {
		g, x := pairs([]float64{1, -3, 1e20}, []float64{math.MaxFloat32, -math.MaxFloat32, 1e20, -1e20, 1e13, -1e13})
		dx, err := back(r.s, row(g), row(x))
		require.NoError(t, err)
		r.exact(zipped(g, x, func(g, x float64) float64 { return g * truth(x > 0) }), dx, name)
	}

	grads := []float64{3e38, -3e38, 1e38}
	probabilities := []float64{0.125, 0.75, 0.125}
	sum := 0.0
	for i, p := range probabilities {
		sum += float64(float32(grads[i])) * p
	}
	dx, err = r.o.SoftmaxBackward(r.s, row(grads), row(probabilities), -1)
	require.NoError(t, err)
	r.exact(zipped(grads, probabilities, func(g, y float64) float64 { return y * (g - sum) }), dx, "softmax")
}

// Layer norms of equal elements are 0, and their gradients exact, also where the sum of the elements is infinite and where
// epsilon is small. So are those of PyTorch. Rows with an infinite element are NaN.
func TestLayerNormOfEqualElements(t *testing.T) {
	r := newRig(t)
	const small = 1e-12
	for _, n := range []int{2, 3, 7, 100, 768, 1000} {
		for _, x := range []float64{0.1, -1e-3, 1, 3.3, 1e4, 1e20, 1e30, math.MaxFloat32, -math.MaxFloat32} {
			row := r.tensor(newArray([]int{2, n}, func() float64 { return x }))
			y, err := r.o.LayerNorm(r.s, row, nil, nil, 1, small)
			require.NoError(t, err)
			r.near(make([]float64, 2*n), y, 0, 0, n, x)

			g := newArray([]int{2, n}, r.random.NormFloat64)
			grad := r.tensor(g)
			dx, dweight, dbias, err := r.o.LayerNormBackward(r.s, grad, row, nil, 1, small)
			require.NoError(t, err)
			r.near(g.over(1, func(g []float64) []float64 {
				mean := sum(g) / float64(n)
				return mapped(g, func(g float64) float64 { return (g - mean) / math.Sqrt(small) })
			}), dx, 2e-6, 1e6, n, x)
			r.near(make([]float64, n), dweight, 0, 0, n, x)
			r.near(zipped(g.values[:n], g.values[n:], func(a, b float64) float64 { return a + b }), dbias, 1e-6, 1, n, x)
		}
	}
	for _, row := range [][]float64{{1, inf, 2}, {inf, 1, 2}, {-inf, inf, 1}, {inf, inf, inf}, {nan, 1, 2}, {1, 2, nan}} {
		y, err := r.o.LayerNorm(r.s, r.tensor(array{[]int{1, 3}, row}), nil, nil, 1, epsilon)
		require.NoError(t, err)
		r.near([]float64{nan, nan, nan}, y, 0, 0, row)
	}
	// The variance of these is infinite, as PyTorch's.
	for _, row := range [][]float64{{3e38, 2e38, 1e38}, {3e38, -3e38}, {1e20, -1e20, 0}} {
		y, err := r.o.LayerNorm(r.s, r.tensor(array{[]int{1, len(row)}, row}), nil, nil, 1, epsilon)
		require.NoError(t, err)
		r.near(make([]float64, len(row)), y, 0, 0, row)
	}
}

// An RMS norm of a row with an infinity follows the formula: 0 for numbers, and NaN for infinities. It is 0 where the squares
// are infinite.
func TestRMSNormOfInfinities(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct{ x, want []float64 }{
		{[]float64{1, inf, -2}, []float64{0, nan, zero}},
		{[]float64{-inf, inf, 0}, []float64{nan, nan, 0}},
		{[]float64{1, nan, 2}, []float64{nan, nan, nan}},
		{[]float64{1e30, -1e30, 1}, []float64{0, zero, 0}},
	} {
		y, err := r.o.RMSNorm(r.s, r.tensor(array{[]int{1, 3}, c.x}), nil, 1, epsilon)
		require.NoError(t, err)
		r.near(c.want, y, 0, 0, c.x)
	}
}

// The loss and the gradient of an ignored row are 0, also with NaN and infinities in the row.
func TestIgnoredRowsWithoutNumbers(t *testing.T) {
	r := newRig(t)
	const ignored = -100
	logits := r.tensor(array{[]int{4, 3}, []float64{nan, 1, 2, inf, inf, 0, -inf, -inf, -inf, 0, 0, 0}})
	targets, err := tensor.From(r.s, []int64{ignored, ignored, ignored, 1})
	require.NoError(t, err)
	loss, err := r.o.CrossEntropy(r.s, logits, targets, ops.Ignored(ignored))
	require.NoError(t, err)
	r.near([]float64{0, 0, 0, math.Log(3)}, loss, 1e-6, 0)
	back, err := r.o.CrossEntropyBackward(r.s, r.tensor(array{[]int{4}, []float64{1, nan, inf, 3}}), logits, targets, ops.Ignored(ignored))
	require.NoError(t, err)
	r.near([]float64{0, 0, 0, 0, 0, 0, 0, 0, 0, 1, -2, 1}, back, 1e-6, 0)
}
