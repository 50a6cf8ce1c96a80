package plan_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// drawExpr is a random expression of some inputs, without mistakes.
func drawExpr(t *rapid.T, types []tensor.Type, depth int) expr.Expr {
	leaf := func() expr.Expr {
		switch rapid.IntRange(0, 5).Draw(t, "leaf") {
		case 0:
			return expr.Number(rapid.SampledFrom([]float64{0, 1, -2, 0.5, 100, math.Inf(1)}).Draw(t, "number"))
		case 1:
			return expr.Index(-1)
		}
		i := rapid.IntRange(0, len(types)-1).Draw(t, "input")
		return expr.Input(i, types[i])
	}
	if depth == 0 {
		return leaf()
	}
	sub := func() expr.Expr { return drawExpr(t, types, rapid.IntRange(0, depth-1).Draw(t, "depth")) }
	for {
		a := sub()
		var e expr.Expr
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			e = rapid.SampledFrom([]func() expr.Expr{
				a.Neg, a.Abs, a.Not, a.Floor, a.Ceil, a.Round, a.Trunc, a.Sqrt, a.Rsqrt, a.Exp, a.Exp2, a.Expm1, a.Log, a.Log2,
				a.Log1p, a.Sin, a.Cos, a.Tanh, a.Erf, a.IsNaN, a.Bitcast, a.Gelu, a.GeluTanh, a.Silu, a.Sigmoid, a.Relu,
			}).Draw(t, "unary")()
		case 1, 2:
			e = rapid.SampledFrom([]func(expr.Expr) expr.Expr{
				a.Add, a.Sub, a.Mul, a.Div, a.Minimum, a.Maximum, a.Pow, a.And, a.Or, a.Xor, a.Eq, a.Ne, a.Lt, a.Le, a.Gt, a.Ge,
			}).Draw(t, "binary")(sub())
		case 3:
			e = a.Typed().Cast(rapid.SampledFrom(tensor.Types()).Draw(t, "type"))
		default:
			if rapid.Bool().Draw(t, "fma") {
				e = expr.Fma(a, sub(), sub())
			} else {
				e = expr.Select(a, sub(), sub())
			}
		}
		if e.Err() == nil {
			return e
		}
	}
}

// drawLayout is a view that broadcasts to a shape.
func drawLayout(t *rapid.T, shape []int, out bool) layout.Layout {
	base := slices.Clone(shape)
	if !out {
		base = base[rapid.IntRange(0, len(base)).Draw(t, "from"):]
		for d := range base {
			if rapid.IntRange(0, 4).Draw(t, "one") == 0 {
				base[d] = 1
			}
		}
	}
	steps := make([]int, len(base))
	outer := make([]int, len(base))
	for d, n := range base {
		steps[d] = rapid.SampledFrom([]int{1, 1, 1, 2, -1}).Draw(t, "step")
		outer[d] = n * max(steps[d], -steps[d])
	}
	l := of(t, outer...)
	order := rapid.Permutation(rangeOf(len(base))).Draw(t, "order")
	if rapid.Bool().Draw(t, "permuted") {
		shuffled := make([]int, len(base))
		back := make([]int, len(base))
		for i, d := range order {
			shuffled[i] = outer[d]
			back[d] = i
		}
		var err error
		l, err = of(t, shuffled...).Permute(back...)
		require.NoError(t, err)
	}
	for d, step := range steps {
		var err error
		switch {
		case step == 2:
			l, err = l.Slice(d, 0, outer[d], 2)
		case step == -1 && outer[d] > 0:
			l, err = l.Slice(d, outer[d]-1, -1, -1)
		}
		require.NoError(t, err)
	}
	return l
}

func rangeOf(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// bitsAt are the bits of an element as an expression has them.
func bitsAt(a *array, at int) code.Value {
	x := a.get(at)
	switch a.of {
	case tensor.Bool:
		return code.Bool(x != 0)
	case tensor.Int64:
		return code.U64(uint64(int64(x)))
	case tensor.Float64:
		return code.F64(x)
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
		return code.F32(float32(x))
	}
	return code.S32(int32(x))
}

// valueOf is the number that bits of a type are.
func valueOf(of tensor.Type, v code.Value) float64 {
	switch of {
	case tensor.Float64:
		return v.AsFloat64()
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
		return float64(v.AsFloat32())
	case tensor.Int64:
		return float64(int64(v.Bits))
	case tensor.Bool:
		return float64(v.Bits)
	}
	return float64(int32(v.Bits))
}

func TestRandomExpressionsOnRandomLayouts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { checkRandom(t) })
}

func checkRandom(t *rapid.T) {
	types := rapid.SliceOfN(rapid.SampledFrom(tensor.Types()), 1, 3).Draw(t, "types")
	var e expr.Expr
	for {
		e = drawExpr(t, types, 3).Typed()
		p, err := plan.New(nil, e)
		if err == nil && p.Inputs == len(types) {
			break
		}
		all := e // an expression that has all inputs
		for i, of := range types {
			all = expr.Select(expr.Input(i, of).Cast(tensor.Bool), all, e)
		}
		if e = all; e.Err() == nil {
			break
		}
	}
	p, err := plan.New(nil, e)
	require.NoError(t, err)
	shape := rapid.SampledFrom([][]int{{}, {0}, {1}, {7}, {64}, {257}, {1025}, {3, 4}, {5, 8}, {16, 16}, {3, 1, 5}, {2, 3, 4}, {4, 2, 8}}).Draw(t, "shape")
	numbers := rapid.SampledFrom([]float64{0, 1, -1, 2, 3, -7, 0.5, -0.25, 100, 127, 1e-3, 3e4, math.NaN(), math.Inf(-1)})
	m := newMemory()
	var arrays []*array
	for _, of := range types {
		a := m.array(of, drawLayout(t, shape, false), rapid.IntRange(0, 1).Draw(t, "skip"))
		a.fill(func(int) float64 {
			x := numbers.Draw(t, "value")
			if of.Kind() != tensor.Floating && (x != x || math.IsInf(x, 0)) {
				return 5
			}
			return x
		})
		arrays = append(arrays, a)
	}
	out := m.array(e.Type, drawLayout(t, shape, true), rapid.IntRange(0, 1).Draw(t, "skip"))
	run(t, p, m, append(arrays, out)...)
	checkElements(t, e, shape, arrays, out)
}

// usesBitsOfNaN reports whether an expression converts the bits of a NaN, which are not specified.
func usesBitsOfNaN(e expr.Expr, leaf func(n *expr.Node) code.Value) bool {
	if e.Op == expr.OpBitcast {
		if of := e.Args[0].Type; of.Kind() == tensor.Floating && math.IsNaN(valueOf(of, plan.Evaluate(e.Args[0].Node, leaf))) {
			return true
		}
	}
	return slices.ContainsFunc(e.Args, func(a expr.Expr) bool { return usesBitsOfNaN(a, leaf) })
}

// checkElements holds each element against the evaluator.
func checkElements(t *rapid.T, e expr.Expr, shape []int, arrays []*array, out *array) {
	var wide []layout.Layout
	for _, a := range arrays {
		l, err := a.layout.Broadcast(shape...)
		require.NoError(t, err)
		wide = append(wide, l)
	}
	index := make([]int, len(shape))
	for range out.layout.Len() {
		leaf := func(n *expr.Node) code.Value {
			if n.Op == expr.OpIndex {
				if len(index) == 0 {
					return code.U64(0)
				}
				return code.U64(uint64(index[len(index)+n.At]))
			}
			at, err := wide[n.At].At(index...)
			require.NoError(t, err)
			return bitsAt(arrays[n.At], at)
		}
		want := plan.Evaluate(e.Node, leaf)
		at, err := out.layout.At(index...)
		require.NoError(t, err)
		got, number := out.get(at), valueOf(e.Type, want)
		if got != number && (got == got || number == number) && !usesBitsOfNaN(e, leaf) {
			t.Fatalf("%v at %v: %v, not %v", e, index, got, number)
		}
		for d, n := range slices.Backward(shape) {
			if index[d]++; index[d] < n {
				break
			}
			index[d] = 0
		}
	}
}
