package plan_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// ruled is an expression with the type and value that the rules of package expr give it. A Number has type 0.
type ruled struct {
	e  expr.Expr
	of tensor.Type
	f  float64 // of floating-point types and of a Number
	i  int64   // of others
}

func floats(of tensor.Type) bool { return of.Kind() == tensor.Floating }

// ruledType returns the type of two operands: a Number takes the type of the other one.
func ruledType(a, b ruled) tensor.Type {
	if a.of == 0 {
		a, b = b, a
	}
	switch {
	case a.of == 0:
		return tensor.Float32
	case b.of != 0 && floats(a.of) != floats(b.of):
		if floats(a.of) {
			return a.of
		}
		return b.of
	case b.of == 0 && floats(a.of):
		return a.of
	case b.of == 0 && (b.f != math.Trunc(b.f) || math.Abs(b.f) > 1e18):
		return tensor.Float32
	case b.of == 0 && a.of == tensor.Bool:
		return tensor.Int64
	case b.of == 0, a.of == b.of:
		return a.of
	case a.of == tensor.Bool:
		return b.of
	case b.of == tensor.Bool:
		return a.of
	case a.of.Size() > b.of.Size():
		return a.of
	case a.of.Size() < b.of.Size():
		return b.of
	case floats(a.of):
		return tensor.Float32
	}
	return tensor.Int16 // of uint8 and int8
}

// wrapped is an integer in a type.
func wrapped(of tensor.Type, x int64) int64 {
	switch of {
	case tensor.Uint8:
		return int64(uint8(x))
	case tensor.Int8:
		return int64(int8(x))
	case tensor.Int16:
		return int64(int16(x))
	case tensor.Int32:
		return int64(int32(x))
	case tensor.Bool:
		return min(x&math.MaxInt64|-(x>>63), 1)
	}
	return x
}

// rounded is a number as a type of floating-point numbers has it.
func rounded(of tensor.Type, x float64) float64 {
	switch of {
	case tensor.Float64:
		return x
	case tensor.Float16:
		return float64(half.NewFloat16(float32(x)).Float32())
	case tensor.BFloat16:
		return float64(half.NewBFloat16(float32(x)).Float32())
	}
	return float64(float32(x))
}

// computed is a number in the type in which a type is computed.
func computed(of tensor.Type, x float64) float64 {
	if of == tensor.Float64 {
		return x
	}
	return float64(float32(x))
}

// as converts.
func (v ruled) as(to tensor.Type) ruled {
	w := v
	w.of = to
	switch {
	case v.of == to:
	case v.of == 0 && floats(to):
		w.f = computed(to, v.f)
	case v.of == 0:
		w.i = wrapped(to, int64(v.f))
	case floats(v.of) && floats(to):
		w.f = rounded(to, v.f)
	case floats(to):
		if w.f = rounded(to, float64(float32(v.i))); to == tensor.Float64 {
			w.f = float64(v.i)
		}
	case floats(v.of) && to == tensor.Bool:
		if w.i = 1; v.f == 0 {
			w.i = 0
		}
	case floats(v.of):
		low, high := int64(math.MinInt64), int64(math.MaxInt64)
		if bits := 8 * to.Size(); to.Kind() == tensor.Unsigned {
			low, high = 0, 1<<bits-1
		} else {
			low, high = low>>(64-bits), high>>(64-bits)
		}
		switch x := math.Trunc(v.f); {
		case math.IsNaN(x):
			w.i = 0
		case x >= float64(high):
			w.i = high
		case x <= float64(low):
			w.i = low
		default:
			w.i = int64(x)
		}
	default:
		w.i = wrapped(to, v.i)
	}
	return w
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// compared compares two operands without a common type: a Number stays exact next to integers.
func compared(a, b ruled, f func(a, b float64) bool, i func(a, b int64) bool) int64 {
	of := ruledType(a, b)
	if floats(of) {
		x, y := a.as(of), b.as(of)
		if a.of == 0 && b.of != 0 && floats(b.of) {
			x.f = rounded(of, x.f)
		}
		if b.of == 0 && a.of != 0 && floats(a.of) {
			y.f = rounded(of, y.f)
		}
		return truth(f(x.f, y.f))
	}
	return truth(i(a.as(tensor.Int64).i, b.as(tensor.Int64).i))
}

// nearestWhole converts a Number that is compared with an integer for a minimum or maximum.
func nearestWhole(v ruled, of tensor.Type) ruled {
	if v.of != 0 || floats(of) {
		return v.as(of)
	}
	return ruled{of: tensor.Float64, f: v.f}.as(of)
}

var ruledNumbers = []float64{
	0, 1, -1, 2, 7, -3, 100, 127, 128, 200, 255, 256, 300, -129, 32768, 65504, 1 << 20, 3e9, -3e9, 1 << 40, 1e30, -1e30,
	0.5, -0.25, 1e-3, 0.1, math.Inf(1), math.Inf(-1),
}

// drawRuled is a random expression of constants and Numbers.
func drawRuled(t *rapid.T, depth int) ruled {
	if depth == 0 {
		v := ruled{f: rapid.SampledFrom(ruledNumbers).Draw(t, "number")}
		v.e = expr.Number(v.f)
		if rapid.IntRange(0, 2).Draw(t, "leaf") > 0 {
			of := rapid.SampledFrom(tensor.Types()).Draw(t, "type")
			v = ruled{of: tensor.Float64, f: v.f}.as(of)
			v.e = expr.Input(0, of)
			switch { // a constant of its bits
			case of == tensor.Float64:
				v.e = expr.Const(v.f)
			case floats(of):
				v.e = expr.Const(float32(v.f)).Cast(of)
			case of == tensor.Int64:
				v.e = expr.Const(v.i)
			default:
				v.e = expr.Const(int32(v.i)).Cast(of)
			}
		}
		return v
	}
	sub := func() ruled { return drawRuled(t, rapid.IntRange(0, depth-1).Draw(t, "depth")) }
	a, b := sub(), sub()
	of := ruledType(a, b)
	x, y := a.as(of), b.as(of)
	out := ruled{of: of}
	number := func(f float64, i int64) ruled {
		if out.f, out.i = computed(of, f), 0; !floats(of) {
			out.f, out.i = 0, wrapped(of, i)
		}
		return out
	}
	kind := rapid.IntRange(0, 9).Draw(t, "operation")
	if of == tensor.Bool && kind < 3 {
		kind = 5
	}
	switch kind {
	case 0:
		out = number(x.f+y.f, x.i+y.i)
		out.e = a.e.Add(b.e)
	case 1:
		out = number(x.f*y.f, x.i*y.i)
		out.e = a.e.Mul(b.e)
	case 2:
		x, y = nearestWhole(a, of), nearestWhole(b, of)
		if rapid.Bool().Draw(t, "greater") {
			out = number(max(x.f, y.f), max(x.i, y.i))
			out.e = a.e.Maximum(b.e)
		} else {
			out = number(min(x.f, y.f), min(x.i, y.i))
			out.e = a.e.Minimum(b.e)
		}
	case 3, 4: // each operand becomes a floating-point number by itself
		if !floats(of) {
			of = tensor.Float32
		}
		if out.of = of; kind == 3 {
			out.f, out.e = computed(of, a.as(of).f/b.as(of).f), a.e.Div(b.e)
			break
		}
		c := sub()
		of = tensor.Float32
		for _, v := range []ruled{a, b, c} {
			if floats(v.of) {
				of = v.of
			}
		}
		for _, v := range []ruled{a, b, c} {
			if floats(v.of) {
				of = ruledType(ruled{of: of}, v)
			}
		}
		out.of, out.e = of, expr.Fma(a.e, b.e, c.e)
		exact := math.FMA(a.as(of).f, b.as(of).f, c.as(of).f)
		if out.f = exact; of != tensor.Float64 {
			out.f = float64(float32(exact))
		}
	case 5:
		out.of, out.i = tensor.Bool, compared(a, b, func(a, b float64) bool { return a < b }, func(a, b int64) bool { return a < b })
		out.e = a.e.Lt(b.e)
	case 6:
		out.of, out.i = tensor.Bool, compared(a, b, func(a, b float64) bool { return a == b }, func(a, b int64) bool { return a == b })
		out.e = a.e.Eq(b.e)
	case 7:
		c := sub()
		if c.of == 0 {
			c = c.as(tensor.Float32)
		}
		out = y
		if c.as(tensor.Bool).i != 0 {
			out = x
		}
		out.of, out.e = of, expr.Select(c.e, a.e, b.e)
	default:
		to := rapid.SampledFrom(tensor.Types()).Draw(t, "to")
		if out = a.as(to); a.of == 0 {
			if out = (ruled{of: tensor.Float64, f: a.f}).as(to); floats(to) {
				out.f = rounded(to, a.f)
			}
		}
		out.e = a.e.Cast(to)
	}
	return out
}

// Expressions have the types and values that the rules say, also where Numbers meet types that do not have them.
func TestRulesOfTypes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := drawRuled(t, 4)
		require.NoError(t, v.e.Err())
		require.Equal(t, v.of, v.e.Type, v.e)
		if v.of == 0 {
			return
		}
		got := valueOf(v.of, plan.Evaluate(v.e.Node, func(*expr.Node) code.Value { panic("no input") }))
		want := float64(v.i)
		if floats(v.of) {
			want = rounded(v.of, v.f)
		}
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Fatalf("%v: %v, not %v", v.e, got, want)
		}
	})
}
