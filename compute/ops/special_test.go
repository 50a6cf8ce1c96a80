package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/tensor"
)

var (
	inf, nan = math.Inf(1), math.NaN()
	zero     = math.Copysign(0, -1)
)

// Rows with infinities and NaN have the results of PyTorch, and so have their gradients.
func TestSpecialNumbersOfRows(t *testing.T) {
	r := newRig(t)
	made := func(values ...float64) *tensor.Tensor { return r.tensor(array{[]int{1, len(values)}, values}) }
	class := func(of int64) *tensor.Tensor {
		x, err := tensor.From(r.s, []int64{of}, 1)
		require.NoError(t, err)
		return x
	}
	none := []float64{nan, nan, nan}
	for _, c := range []struct {
		x, softmax, logs, losses []float64 // losses: for each class
	}{
		{[]float64{1, inf, 2}, none, none, none},
		{[]float64{inf, inf, inf}, none, none, none},
		{[]float64{-inf, -inf, -inf}, none, none, none},
		{[]float64{1, nan, 2}, none, none, none},
		{[]float64{nan, -inf, inf}, none, none, none},
		{[]float64{-inf, 3, -inf}, []float64{0, 1, 0}, []float64{-inf, 0, -inf}, []float64{inf, 0, inf}},
		{[]float64{1e38, -1e38, 1e38}, []float64{0.5, 0, 0.5}, []float64{-math.Ln2, -2e38, -math.Ln2}, []float64{math.Ln2, 2e38, math.Ln2}},
		{[]float64{zero, 0, zero}, []float64{1. / 3, 1. / 3, 1. / 3}, []float64{-math.Log(3), -math.Log(3), -math.Log(3)}, []float64{math.Log(3), math.Log(3), math.Log(3)}},
	} {
		x := made(c.x...)
		y, err := r.o.Softmax(r.s, x, -1)
		require.NoError(t, err)
		r.near(c.softmax, y, 1e-6, 0, c.x)
		y, err = r.o.LogSoftmax(r.s, x, -1)
		require.NoError(t, err)
		r.near(c.logs, y, 1e-6, 0, c.x)
		for i, want := range c.losses {
			loss, err := r.o.CrossEntropy(r.s, x, class(int64(i)))
			require.NoError(t, err)
			r.near([]float64{want}, loss, 1e-6, 0, c.x, i)
			one := r.tensor(array{[]int{1}, []float64{1}})
			back, err := r.o.CrossEntropyBackward(r.s, one, x, class(int64(i)))
			require.NoError(t, err)
			gradient := append([]float64(nil), c.softmax...)
			gradient[i]--
			r.near(gradient, back, 1e-6, 1e-1, c.x, i)
		}
	}
	// Of the results, and of gradients that are no numbers.
	back, err := r.o.SoftmaxBackward(r.s, made(inf, 0, 0), made(0.5, 0.5, 0), -1)
	require.NoError(t, err)
	r.near([]float64{nan, -inf, nan}, back, 0, 0)
	back, err = r.o.LogSoftmaxBackward(r.s, made(nan, 0), made(-1, -1), -1)
	require.NoError(t, err)
	r.near([]float64{nan, nan}, back, 0, 0)
}

// Functions of special numbers, and their gradients, have the results of PyTorch: the formulas are the same.
func TestSpecialNumbersOfActivations(t *testing.T) {
	r := newRig(t)
	x := []float64{inf, -inf, nan, 0, zero, -200, 200}
	in := r.tensor(array{[]int{len(x)}, x})
	ones := r.tensor(newArray([]int{len(x)}, func() float64 { return 1 }))
	for name, c := range map[string]struct {
		run  makes1
		back func(tensor.Context, *tensor.Tensor, *tensor.Tensor) (*tensor.Tensor, error)
		want []float64
		dx   []float64
	}{
		"gelu": {
			r.o.Gelu, r.o.GeluBackward,
			[]float64{inf, nan, nan, 0, zero, zero, 200},
			[]float64{nan, nan, nan, 0.5, 0.5, 0, 1},
		},
		"gelu by tanh": {
			r.o.GeluTanh, r.o.GeluTanhBackward,
			[]float64{inf, nan, nan, 0, zero, zero, 200},
			[]float64{nan, nan, nan, 0.5, 0.5, 0, 1},
		},
		"silu": {
			r.o.Silu, r.o.SiluBackward,
			[]float64{inf, nan, nan, 0, zero, zero, 200},
			[]float64{nan, nan, nan, 0.5, 0.5, 0, 1},
		},
		"relu": {
			r.o.Relu, r.o.ReluBackward,
			[]float64{inf, 0, nan, 0, 0, 0, 200},
			[]float64{1, 0, 1, 0, 0, 0, 1},
		},
	} {
		y, err := c.run(r.s, in)
		require.NoError(t, err)
		r.near(c.want, y, 0, 0, name)
		for i, got := range r.read(y).values {
			if c.want[i] == 0 {
				require.Equal(t, math.Signbit(c.want[i]), math.Signbit(got), "%s of %v is %v", name, x[i], got)
			}
		}
		dx, err := c.back(r.s, ones, in)
		require.NoError(t, err)
		r.near(c.dx, dx, 1e-6, 0, name+" backward")
	}
	// Where x is not positive the gradient of relu is 0, also of NaN.
	dx, err := r.o.ReluBackward(r.s, r.tensor(array{[]int{3}, []float64{nan, inf, nan}}), r.tensor(array{[]int{3}, []float64{-1, zero, 1}}))
	require.NoError(t, err)
	r.near([]float64{0, 0, nan}, dx, 0, 0)
}

// The choice by a condition takes nothing of the other operand, NaN is true, and a clamp whose bounds are in the wrong order
// has the upper one.
func TestSpecialNumbersOfChoices(t *testing.T) {
	r := newRig(t)
	row := func(values ...float64) *tensor.Tensor { return r.tensor(array{[]int{len(values)}, values}) }
	y, err := r.o.Where(r.s, row(1, 0, nan, zero, inf), row(1, nan, inf, nan, -inf), row(nan, 2, nan, -inf, nan))
	require.NoError(t, err)
	r.near([]float64{1, 2, inf, -inf, -inf}, y, 0, 0)
	x := row(-inf, -1, 0, 5, inf, nan)
	for _, c := range []struct {
		low, high float64
		want      []float64
	}{
		{2, 1, []float64{1, 1, 1, 1, 1, nan}},
		{-inf, inf, []float64{-inf, -1, 0, 5, inf, nan}},
		{inf, inf, []float64{inf, inf, inf, inf, inf, nan}},
		{0, inf, []float64{0, 0, 0, 5, inf, nan}},
		{nan, 1, []float64{nan, nan, nan, nan, nan, nan}},
		{0, nan, []float64{nan, nan, nan, nan, nan, nan}},
	} {
		y, err := r.o.Clamp(r.s, x, c.low, c.high)
		require.NoError(t, err)
		r.near(c.want, y, 0, 0, c.low, c.high)
	}
}
