package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

func TestMakers(t *testing.T) {
	r := newRig(t)
	for _, of := range tensor.Types() {
		t.Run(of.String(), func(t *testing.T) {
			r := r.in(t)
			x, err := r.o.Fill(r.s, of, 1, 2, 3)
			require.NoError(t, err)
			r.near([]float64{1, 1, 1, 1, 1, 1}, x, 0, 0, of)
			if of != tensor.Bool {
				x, err = r.o.Arange(r.s, of, 3, 0.5, -1)
				require.NoError(t, err)
				r.near([]float64{3, 2, 1}, x, 0, 0, of)
			}
			for _, to := range tensor.Types() {
				y, err := r.o.Cast(r.s, x, to)
				require.NoError(t, err)
				assert.Equal(t, to, y.Type())
			}
		})
	}
	x, err := r.o.Arange(r.s, tensor.Float32, 0, 1, 0.1)
	require.NoError(t, err)
	r.near([]float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}, x, 1e-7, 0)
	for _, f := range []func() error{
		func() error { _, err := r.o.Arange(r.s, tensor.Int32, 0, 1, 0.1); return err },
		func() error { _, err := r.o.Arange(r.s, tensor.Int32, 0, 1, 0); return err },
		func() error { _, err := r.o.Arange(r.s, tensor.Int32, 0, 1, -1); return err },
		func() error { _, err := r.o.Fill(r.s, tensor.Uint8, 256); return err },
		func() error { _, err := r.o.Fill(r.s, tensor.Int64, math.NaN(), 1); return err },
		func() error { w, _ := r.o.Cast(r.s, x, tensor.Int8); _, err := r.o.Clamp(r.s, w, -129, 3); return err },
	} {
		require.ErrorIs(t, f(), ops.ErrNumber)
	}
	scalar := r.view(tensor.Int64, nil)
	require.NoError(t, r.o.ArangeInto(r.s, scalar, 7, 1))
	r.near([]float64{7}, scalar, 0, 0)

	a := newArray([]int{5, 7}, r.random.NormFloat64)
	y, err := r.o.TransposeCopy(r.s, r.tensor(a), 0, 1)
	require.NoError(t, err)
	assert.True(t, y.Layout().Contiguous())
	var want []float64
	each([]int{7, 5}, func(index []int) { want = append(want, a.values[index[1]*7+index[0]]) })
	r.near(want, y, 0, 0)
	out := r.view(tensor.Float64, []int{7, 5})
	require.NoError(t, r.o.TransposeCopyInto(r.s, out, r.tensor(a), 0, 1))
	r.near(want, out, 0, 0)
}

// Types are promoted as PyTorch does, and an output has that type or one that holds more.
func TestTypesOfResults(t *testing.T) {
	r := newRig(t)
	of := func(kind tensor.Type) *tensor.Tensor {
		x, err := r.o.Fill(r.s, kind, 1, 3)
		require.NoError(t, err)
		return x
	}
	for _, a := range tensor.Types() {
		t.Run(a.String(), func(t *testing.T) {
			for _, b := range tensor.Types() {
				y, err := r.o.Add(r.s, of(a), of(b))
				require.NoError(t, err, "%v %v", a, b)
				assert.Equal(t, expr.Promote(a, b), y.Type())
				want := 2.0
				if a == tensor.Bool && b == tensor.Bool {
					want = 1
				}
				r.in(t).near([]float64{want, want, want}, y, 0, 0)
			}
		})
	}
	whole := of(tensor.Int32)
	y, err := r.o.Div(r.s, whole, whole)
	require.NoError(t, err)
	assert.Equal(t, tensor.Float32, y.Type())
	y, err = r.o.Sum(r.s, of(tensor.Bool), false)
	require.NoError(t, err)
	assert.Equal(t, tensor.Int64, y.Type())
	y, err = r.o.Max(r.s, of(tensor.Bool), false)
	require.NoError(t, err)
	assert.Equal(t, tensor.Bool, y.Type())

	require.NoError(t, r.o.AddInto(r.s, of(tensor.Float64), whole, whole))
	require.NoError(t, r.o.AddInto(r.s, of(tensor.Int8), whole, whole))
	var types *tensor.TypeError
	require.ErrorAs(t, r.o.AddInto(r.s, whole, whole, of(tensor.Float32)), &types)
	var wrong *expr.TypeError
	_, err = r.o.Exp(r.s, of(tensor.Float64))
	require.ErrorAs(t, err, &wrong)
	_, err = r.o.Sub(r.s, of(tensor.Bool), of(tensor.Bool))
	require.ErrorAs(t, err, &wrong)
}

// Operations of NaN and Inf are PyTorch's.
func TestSpecialNumbers(t *testing.T) {
	r := newRig(t)
	nan, inf := math.NaN(), math.Inf(1)
	x, err := tensor.From(r.s, []float32{float32(nan), float32(inf), float32(-inf), -0.5})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		f    makes1
		want []float64
	}{
		"relu":    {r.o.Relu, []float64{nan, inf, 0, 0}},
		"exp":     {r.o.Exp, []float64{nan, inf, 0, math.Exp(-0.5)}},
		"log":     {r.o.Log, []float64{nan, inf, nan, nan}},
		"sqrt":    {r.o.Sqrt, []float64{nan, inf, nan, nan}},
		"tanh":    {r.o.Tanh, []float64{nan, 1, -1, math.Tanh(-0.5)}},
		"sigmoid": {r.o.Sigmoid, []float64{nan, 1, 0, sigmoid(-0.5)}},
		"clamp": {func(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
			return r.o.Clamp(at, x, -1, 2)
		}, []float64{nan, 2, -1, -0.5}},
		"clamp below alone": {func(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
			return r.o.Clamp(at, x, -1, inf)
		}, []float64{nan, inf, -1, -0.5}},
		"equal": {func(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) { return r.o.Eq(at, x, x) }, []float64{0, 1, 1, 1}},
	} {
		y, err := c.f(r.s, x)
		require.NoError(t, err)
		r.near(c.want, y, 1e-6, 0, name)
	}
}
