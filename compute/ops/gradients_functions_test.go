package ops_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// back2 is the gradient of an operation with one operand, of that or of the result.
type (
	back2     = makes2
	backInto2 = into2
)

// differentiable are the operations on one operand that have a gradient.
type differentiable struct {
	name     string
	forward  func(x float64) float64
	back     back2
	into     backInto2
	ofResult bool
	// x is a number where there is a derivative.
	x func() float64
}

func (r *rig) differentiables() []differentiable {
	o := r.o
	normal, positive := r.random.NormFloat64, func() float64 { return 0.5 + 4*r.random.Float64() }
	off := func() float64 { // neither near 0 nor near the bounds of the clamp
		return math.Copysign([]float64{0.25, 0.75, 3}[r.random.IntN(3)]+r.random.Float64()/8, normal())
	}
	return []differentiable{
		{"neg", func(x float64) float64 { return -x }, o.NegBackward, func(at tensor.Context, dx, grad, _ *tensor.Tensor) error { return o.NegBackwardInto(at, dx, grad) }, false, normal},
		{"abs", math.Abs, o.AbsBackward, o.AbsBackwardInto, false, off},
		{"sqrt", math.Sqrt, o.SqrtBackward, o.SqrtBackwardInto, true, positive},
		{"rsqrt", func(x float64) float64 { return 1 / math.Sqrt(x) }, o.RsqrtBackward, o.RsqrtBackwardInto, true, positive},
		{"exp", math.Exp, o.ExpBackward, o.ExpBackwardInto, true, normal},
		{"log", math.Log, o.LogBackward, o.LogBackwardInto, false, positive},
		{
			"clamp", func(x float64) float64 { return min(max(x, -0.5), 1) },
			func(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
				return o.ClampBackward(at, grad, x, -0.5, 1)
			},
			func(at tensor.Context, dx, grad, x *tensor.Tensor) error {
				return o.ClampBackwardInto(at, dx, grad, x, -0.5, 1)
			}, false, off,
		},
	}
}

// Gradients of functions are the derivatives of these, of any layouts, also where operands repeat elements.
func TestGradientsOfFunctions(t *testing.T) {
	all := newRig(t)
	for _, f := range all.differentiables() {
		t.Run(f.name, func(t *testing.T) {
			r := all.in(t)
			for rank := range 4 {
				shape := r.shape(rank)
				x, a := r.repeated(shape, f.x)
				grad, g := r.repeated(shape, r.random.NormFloat64)
				y := mapped(a.values, f.forward)
				want := zipped(g.values, a.values, func(g, x float64) float64 { return g * narrowSlope(f.forward, x) })
				of := x
				if f.ofResult {
					of = r.tensor(array{shape, y})
				}
				dx, err := f.back(r.s, grad, of)
				require.NoError(t, err)
				require.Equal(t, shape, dx.Shape())
				r.near(want, dx, 2e-6, 1e-6, shape)
				for kind := range views {
					out := r.viewAs(kind, tensor.Float32, shape)
					require.NoError(t, f.into(r.s, out, grad, of))
					require.Equal(t, r.read(dx).values, r.read(out).values)
				}
			}
		})
	}
}

// Gradients of functions may be written over their operands.
func TestGradientsOfFunctionsOverOperands(t *testing.T) {
	r := newRig(t)
	for _, f := range r.differentiables() {
		a, g := newArray([]int{3, 5}, f.x), newArray([]int{3, 5}, r.random.NormFloat64)
		made := func(a array) *tensor.Tensor {
			x, err := tensor.From(r.s, mappedTo(a.values), a.shape...)
			require.NoError(t, err)
			return x
		}
		want, err := f.back(r.s, made(g), made(a))
		require.NoError(t, err)
		over := made(g)
		require.NoError(t, f.into(r.s, over, over, made(a)))
		require.Equal(t, r.read(want).values, r.read(over).values, f.name)
		over = made(a)
		require.NoError(t, f.into(r.s, over, made(g), over))
		require.Equal(t, r.read(want).values, r.read(over).values, f.name)
		square := r.zeros(3, 3)
		turned, err := square.Transpose(0, 1)
		require.NoError(t, err)
		require.ErrorIs(t, f.into(r.s, square, turned, square), kernel.ErrOverlap, f.name)
	}
}

// narrowSlope is the derivative of a function from closer points than slope takes.
func narrowSlope(f func(float64) float64, x float64) float64 {
	const h = 1e-3
	d := func(k float64) float64 { return f(x+k*h) - f(x-k*h) }
	return (45*d(1) - 9*d(2) + d(3)) / (60 * h)
}

// Gradients of functions of 16-bit numbers are computed in float32 and rounded once; float64 gradients have full precision.
func TestGradientsOfFunctionsOfTypes(t *testing.T) {
	all := newRig(t)
	for _, f := range all.differentiables() {
		t.Run(f.name, func(t *testing.T) {
			r := all.in(t)
			for of, bound := range halves {
				a, g := newArray([]int{65}, f.x), newArray([]int{65}, r.random.NormFloat64)
				x, grad := r.halfOf(of, a), r.halfOf(of, g)
				want := zipped(g.values, a.values, func(g, x float64) float64 { return g * narrowSlope(f.forward, x) })
				if f.ofResult {
					y := array{a.shape, mapped(a.values, f.forward)}
					x = r.halfOf(of, y)
					for i, y := range y.values { // the rounded result has another derivative
						switch f.name {
						case "sqrt":
							want[i] = g.values[i] / 2 / y
						case "rsqrt":
							want[i] = -g.values[i] / 2 * y * y * y
						case "exp":
							want[i] = g.values[i] * y
						}
					}
				}
				dx, err := f.back(r.s, grad, x)
				require.NoError(t, err)
				require.Equal(t, of, dx.Type())
				r.near(want, dx, bound+1e-6, 1e-6, of)
				single := r.zeros(65)
				require.NoError(t, f.into(r.s, single, grad, x))
				r.near(want, single, 2e-6, 1e-6, of)
			}
			a, g := newArray([]int{9}, f.x), newArray([]int{9}, r.random.NormFloat64)
			want := zipped(g.values, a.values, func(g, x float64) float64 { return g * narrowSlope(f.forward, x) })
			if f.ofResult {
				a.values = mapped(a.values, f.forward)
			}
			x, err := tensor.From(r.s, a.values)
			require.NoError(t, err)
			grad, err := tensor.From(r.s, g.values)
			require.NoError(t, err)
			dx, err := f.back(r.s, grad, x)
			require.NoError(t, err)
			r.near(want, dx, 1e-9, 1e-9, "float64")

			whole, err := r.o.Cast(r.s, x, tensor.Int32)
			require.NoError(t, err)
			_, err = f.back(r.s, grad, whole)
			var types *tensor.TypeError
			require.ErrorAs(t, err, &types, "an integer has no gradient")
			require.ErrorContains(t, err, "ops: "+f.name+" backward of output 0 int32[9]")
		})
	}
}

// At the ends of the domain of a function gradients are PyTorch's.
func TestSpecialNumbersOfGradients(t *testing.T) {
	r := newRig(t)
	row := func(values ...float64) *tensor.Tensor { return r.tensor(array{[]int{len(values)}, values}) }
	special := []float64{0, zero, inf, -inf, nan, -2}
	clamp := func(low, high float64) back2 {
		return func(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
			return r.o.ClampBackward(at, grad, x, low, high)
		}
	}
	for name, c := range map[string]struct {
		back back2
		ones []float64 // where the gradient is 1, for each special number
		none []float64 // where it is 0
	}{
		"neg":                   {r.o.NegBackward, []float64{-1, -1, -1, -1, -1, -1}, []float64{0, 0, 0, 0, 0, 0}},
		"abs":                   {r.o.AbsBackward, []float64{0, 0, 1, -1, 0, -1}, []float64{0, 0, 0, 0, 0, 0}},
		"sqrt":                  {r.o.SqrtBackward, []float64{inf, -inf, 0, 0, nan, -0.25}, []float64{nan, nan, 0, 0, nan, 0}},
		"rsqrt":                 {r.o.RsqrtBackward, []float64{0, 0, -inf, inf, nan, 4}, []float64{0, 0, nan, nan, nan, 0}},
		"exp":                   {r.o.ExpBackward, []float64{0, 0, inf, -inf, nan, -2}, []float64{0, 0, nan, nan, nan, 0}},
		"log":                   {r.o.LogBackward, []float64{inf, -inf, 0, 0, nan, -0.5}, []float64{nan, nan, 0, 0, nan, 0}},
		"clamp to bounds":       {clamp(-2, 0), []float64{1, 1, 0, 0, 0, 1}, []float64{0, 0, 0, 0, 0, 0}},
		"clamp from below":      {clamp(-1, inf), []float64{1, 1, 1, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0}},
		"clamp from above":      {clamp(-inf, -1), []float64{0, 0, 0, 1, 0, 1}, []float64{0, 0, 0, 0, 0, 0}},
		"clamp to what is none": {clamp(nan, 1), []float64{0, 0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0}},
		"clamp with no bounds":  {clamp(-inf, inf), []float64{1, 1, 1, 1, 0, 1}, []float64{0, 0, 0, 0, 0, 0}},
		"clamp to wrong bounds": {clamp(1, -1), []float64{0, 0, 0, 0, 0, 0}, []float64{0, 0, 0, 0, 0, 0}},
	} {
		of := row(special...)
		dx, err := c.back(r.s, row(1, 1, 1, 1, 1, 1), of)
		require.NoError(t, err)
		r.near(c.ones, dx, 0, 0, name)
		dx, err = c.back(r.s, row(0, 0, 0, 0, 0, 0), of)
		require.NoError(t, err)
		r.near(c.none, dx, 0, 0, name)
	}
	// A gradient that is no number counts where the derivative is 0 by a product, and not where it is a choice.
	dx, err := r.o.AbsBackward(r.s, row(nan, inf, nan), row(0, 0, 1))
	require.NoError(t, err)
	r.near([]float64{nan, nan, nan}, dx, 0, 0)
	dx, err = r.o.ClampBackward(r.s, row(nan, inf, nan), row(2, 2, 1), 0, 1)
	require.NoError(t, err)
	r.near([]float64{0, 0, nan}, dx, 0, 0)
	left, right, err := r.o.WhereBackward(r.s, row(nan, inf, 3, 4), row(1, 0, nan, zero), row(0, 0, 0, 0), row(0, 0, 0, 0))
	require.NoError(t, err)
	r.near([]float64{nan, 0, 3, 0}, left, 0, 0)
	r.near([]float64{0, inf, 0, 4}, right, 0, 0)
	for of := range halves { // the bound is the nearest number of the type, to which elements are clamped
		bound := r.halfOf(of, array{[]int{1}, []float64{0.1}})
		dx, err := r.o.ClampBackward(r.s, row(1), bound, 0.1, 1)
		require.NoError(t, err)
		r.near([]float64{1}, dx, 0, 0, of)
	}
	short, err := r.o.Cast(r.s, row(3), tensor.Int8)
	require.NoError(t, err)
	require.ErrorIs(t, r.o.ClampBackwardInto(r.s, dx, row(1), short, 0, 1000), ops.ErrNumber)
	out := r.zeros(1)
	require.NoError(t, r.o.ClampBackwardInto(r.s, out, row(5), short, 0, inf))
	r.near([]float64{5}, out, 0, 0)
}

// The gradients of a choice go to the operand that was taken, and are summed where one was broadcast.
func TestGradientsOfWhere(t *testing.T) {
	r := newRig(t)
	for i := range 10 {
		shape := r.shape(i % 4)
		c := newArray(r.part(shape), func() float64 { return float64(r.random.IntN(2)) })
		a, b := newArray(shape, r.random.NormFloat64), newArray(r.part(shape), r.random.NormFloat64)
		g := newArray(shape, r.random.NormFloat64)
		condition, err := r.o.Cast(r.s, r.tensor(c), tensor.Bool)
		require.NoError(t, err)
		chosen := func(ofX bool, a array) []float64 {
			all := make([]float64, len(a.values))
			each(shape, func(index []int) {
				if (c.values[c.index(index)] != 0) == ofX {
					all[a.index(index)] += g.values[g.index(index)]
				}
			})
			return all
		}
		for _, turned := range []bool{false, true} {
			x, y := a, b
			if turned {
				x, y = b, a
			}
			dx, dy, err := r.o.WhereBackward(r.s, r.tensor(g), condition, r.tensor(x), r.tensor(y))
			require.NoError(t, err)
			r.near(chosen(true, x), dx, 1e-5, 4, shape)
			r.near(chosen(false, y), dy, 1e-5, 4, shape)
			out := r.view(tensor.Float32, y.shape)
			require.NoError(t, r.o.WhereBackwardInto(r.s, nil, out, r.tensor(g), condition))
			require.Equal(t, r.read(dy).values, r.read(out).values)
		}
		where := func(x, y []float64) (all []float64) {
			each(shape, func(index []int) {
				if c.values[c.index(index)] != 0 {
					all = append(all, x[a.index(index)])
				} else {
					all = append(all, y[b.index(index)])
				}
			})
			return all
		}
		if count(shape) < 200 {
			dx, dy, err := r.o.WhereBackward(r.s, r.tensor(g), condition, r.tensor(a), r.tensor(b))
			require.NoError(t, err)
			r.near(changes(func(x []float64) []float64 { return where(x, b.values) }, a.values, g.values), dx, 1e-5, 1e-3)
			r.near(changes(func(y []float64) []float64 { return where(a.values, y) }, b.values, g.values), dy, 1e-5, 1)
		}
	}
}
