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

// An integer type has the numbers from its least to its greatest one, and no others: a fill, and the first and last of a sequence.
func TestNumbersOfIntegerTypes(t *testing.T) {
	r := newRigOn(t, launching(t))
	for _, of := range tensor.Types() {
		bits := 8 * of.Size()
		least, past := -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
		switch of.Kind() {
		case tensor.Unsigned:
			least, past = 0, math.Ldexp(1, bits)
		case tensor.Boolean, tensor.Floating:
			continue
		case tensor.Signed:
		}
		greatest := past - 1
		if bits == 64 {
			greatest = math.Nextafter(past, 0)
		}
		for x, right := range map[float64]bool{
			least: true, 0: true, 1: true, greatest: true, past: false, math.Nextafter(least, math.Inf(-1)): false, least - 1: bits == 64 && least < 0,
			math.Inf(1): false, math.Inf(-1): false, math.NaN(): false,
		} {
			_, err := r.o.Fill(r.s, of, x, 3)
			require.Equal(t, right, err == nil, "%v of %v: %v", x, of, err)
			if !right {
				require.ErrorIs(t, err, ops.ErrNumber)
			}
			if bits == 64 {
				continue
			}
			out := r.made(of, 2)
			err = r.o.ArangeInto(r.s, out, x, 0)
			require.Equal(t, right, err == nil, "%v of %v: %v", x, of, err)
			if right {
				err = r.o.ArangeInto(r.s, out, 1, x-1)
				require.NoError(t, err, "%v of %v", x, of)
			}
		}
	}
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
