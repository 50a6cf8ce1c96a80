package ops_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// A floating-point number that an integer type does not have becomes the nearest one, and NaN 0.
func TestCastsTakeTheNearestNumber(t *testing.T) {
	r := newRig(t)
	given := []float64{300, -300, 40000, -40000, 3e9, -3e9, 1e30, -1e30, math.Inf(1), math.Inf(-1), math.NaN(), 127.9, -128.9, 255.5, -0.9, 1}
	bounds := map[tensor.Type][2]float64{
		tensor.Uint8: {0, 255}, tensor.Int8: {-128, 127}, tensor.Int16: {-32768, 32767}, tensor.Int32: {math.MinInt32, math.MaxInt32},
		tensor.Int64: {math.MinInt64, math.MaxInt64},
	}
	for _, from := range []tensor.Type{tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64} {
		x, err := tensor.From(r.s, given)
		require.NoError(t, err)
		x, err = r.o.Cast(r.s, x, from)
		require.NoError(t, err)
		values := r.read(x).values
		for to, bound := range bounds {
			y, err := r.o.Cast(r.s, x, to)
			require.NoError(t, err)
			r.near(mapped(values, func(x float64) float64 {
				if math.IsNaN(x) {
					return 0
				}
				return min(max(math.Trunc(x), bound[0]), bound[1])
			}), y, 0, 0, from, to)
			into := r.view(to, []int{len(given)})
			require.NoError(t, r.o.CopyInto(r.s, into, x))
			require.Equal(t, r.read(y).values, r.read(into).values)
		}
		truths, err := r.o.Cast(r.s, x, tensor.Bool)
		require.NoError(t, err)
		r.near(mapped(values, func(x float64) float64 { return truth(x != 0) }), truths, 0, 0, from, "NaN is true")
	}
	long, err := tensor.From(r.s, []int64{300, -1, 1 << 40})
	require.NoError(t, err)
	y, err := r.o.Cast(r.s, long, tensor.Uint8)
	require.NoError(t, err)
	r.near([]float64{44, 255, 0}, y, 0, 0, "integers wrap around")
}

// Numbers that an operation, or the element type, cannot have are refused.
func TestNumbersThatAreNone(t *testing.T) {
	r := newRig(t)
	x := r.zeros(3)
	small, wide := r.made(tensor.Int8, 3), r.made(tensor.Float64, 3)
	arange := func(of tensor.Type, start, end, step float64) func() error {
		return func() error { _, err := r.o.Arange(r.s, of, start, end, step); return err }
	}
	logits, classes := r.zeros(3, 2), r.indicesOf(tensor.Int64, []int64{0, 1, 0}, 3)
	scaled := func(scale float64) func() error {
		return func() error {
			return r.o.CrossEntropyGradientInto(r.s, nil, nil, logits, classes, ops.LossGradient{Scale: scale})
		}
	}
	for i, c := range []struct {
		want string
		f    func() error
	}{
		{"scale is NaN", scaled(math.NaN())},
		{"scale is -Inf", scaled(math.Inf(-1))},
		{"scale is 1e+39", scaled(1e39)},
		{"the last number is 200", arange(tensor.Int8, 0, 300, 100)},
		{"the last number is -200", arange(tensor.Int8, 100, -300, -100)},
		{"the last number is 259", arange(tensor.Uint8, 250, 260, 1)},
		{"the last number is -2", arange(tensor.Uint8, 3, -3, -1)},
		{"the last number is 32768", arange(tensor.Int16, 32767, 32769, 1)},
		{"start is 2.147483648e+09", arange(tensor.Int32, 1<<31, 1<<31+1, 1)},
		{"the last number is 9.", arange(tensor.Int64, 1<<62, 1<<63+1<<62, 1<<62)},
		{"step is 0", arange(tensor.Int32, 0, 1, 0)},
		{"step is 0.5", arange(tensor.Int32, 0, 1, 0.5)},
		{"the last number is 128", func() error { return r.o.ArangeInto(r.s, small, 126, 1) }},
		{"the number is 128", func() error { return r.o.FillInto(r.s, small, 128) }},
		{"low is -129", func() error { return r.o.ClampInto(r.s, small, small, -129, 1) }},
		{"high is 1000", func() error { return r.o.ClampInto(r.s, small, small, 0, 1000) }},
		{"high-low is -1", func() error { _, err := r.o.Uniform(r.s, tensor.Float32, ops.Random{}, 1, 0, 3); return err }},
		{"high-low is NaN", func() error { return r.o.UniformInto(r.s, x, ops.Random{}, 0, math.NaN()) }},
		{"high-low is +Inf", func() error { return r.o.UniformInto(r.s, x, ops.Random{}, math.Inf(-1), 0) }},
		{"high-low is 6e+38", func() error { return r.o.UniformInto(r.s, x, ops.Random{}, -3e38, 3e38) }},
		{"deviation is -1", func() error { _, err := r.o.Normal(r.s, tensor.Float32, ops.Random{}, 0, -1, 3); return err }},
		{"deviation is NaN", func() error { return r.o.NormalInto(r.s, x, ops.Random{}, 0, math.NaN()) }},
	} {
		err := c.f()
		require.ErrorIs(t, err, ops.ErrNumber, fmt.Sprint(i))
		require.ErrorContains(t, err, c.want)
	}
	for _, f := range []func() error{
		arange(tensor.Int8, -128, 128, 255), arange(tensor.Uint8, 250, 256, 1), arange(tensor.Int8, 300, 300, 1),
		func() error { return r.o.ArangeInto(r.s, small, 125, 1) },
		func() error { return r.o.UniformInto(r.s, x, ops.Random{}, 1, 1) },
		func() error { return r.o.UniformInto(r.s, wide, ops.Random{}, -3e38, 3e38) },
		func() error { return r.o.NormalInto(r.s, x, ops.Random{}, 1, 0) },
	} {
		require.NoError(t, f())
	}
	for _, to := range []tensor.Type{0, 99} {
		_, err := r.o.Cast(r.s, x, to)
		var types *tensor.TypeError
		require.ErrorAs(t, err, &types)
		require.ErrorContains(t, err, "cast")
	}
}

// Bools have no sign, and their sum is no bool: these operations refuse them, as their comments say.
func TestOperationsThatRefuseBools(t *testing.T) {
	r := newRig(t)
	x := r.made(tensor.Bool, 2, 3)
	for name, f := range map[string]func() error{
		"abs": func() error { _, err := r.o.Abs(r.s, x); return err },
		"neg": func() error { _, err := r.o.Neg(r.s, x); return err },
		"sub": func() error { _, err := r.o.Sub(r.s, x, x); return err },
	} {
		var refused *expr.TypeError
		require.ErrorAs(t, f(), &refused, name)
	}
	_, err := r.o.SumTo(r.s, x, 3)
	var refused *tensor.TypeError
	require.ErrorAs(t, err, &refused)
	sum, err := r.o.Sum(r.s, x, false)
	require.NoError(t, err)
	require.Equal(t, tensor.Int64, sum.Type())
}
