package plan_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/kernel/internal/code"
	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/compute/tensor"
)

// A Number that the integer type of the other operand cannot represent gives the result of its value.
func TestNumbersBesideIntegers(t *testing.T) {
	b, i, l, h := expr.Input(0, tensor.Uint8), expr.Input(0, tensor.Int32), expr.Input(0, tensor.Int64), expr.Input(1, tensor.Float16)
	n, inf := expr.Number, math.Inf(1)
	for _, c := range []struct {
		e    expr.Expr
		x    float64
		of   tensor.Type
		want float64
	}{
		{b.Div(n(256)), 64, tensor.Float32, 0.25},
		{n(1024).Div(b), 64, tensor.Float32, 16},
		{i.Div(n(1 << 40)), 1 << 20, tensor.Float32, math.Ldexp(1, -20)},
		{l.Div(n(1e30)), 1 << 20, tensor.Float32, float64(float32(1 << 20 / 1e30))},
		{expr.Fma(b, n(256), n(1000)), 2, tensor.Float32, 1512},
		{expr.Fma(b, n(256), h), 2, tensor.Float16, 513},
		{expr.Fma(n(256), b, expr.Const(0.5)), 2, tensor.Float64, 512.5},
		{b.Pow(n(256)), 1, tensor.Float32, 1},
		{n(256).Pow(b), 2, tensor.Float32, 65536},
		{b.Lt(n(256)), 255, tensor.Bool, 1},
		{b.Ge(n(-1)), 0, tensor.Bool, 1},
		{n(3e9).Gt(i), 5, tensor.Bool, 1},
		{i.Eq(n(1 << 32)), 0, tensor.Bool, 0},
		{i.Lt(n(inf)), 5, tensor.Bool, 1},
		{l.Ge(n(-inf)), -5, tensor.Bool, 1},
		{l.Lt(n(1e30)), 5, tensor.Bool, 1},
		{b.Minimum(n(300)), 200, tensor.Uint8, 200},
		{n(-5).Maximum(b), 200, tensor.Uint8, 200},
		{i.Minimum(n(3e9)), 7, tensor.Int32, 7},
		{i.Minimum(n(inf)), 7, tensor.Float32, 7},
		{i.Maximum(n(-inf)), -7, tensor.Float32, -7},
		{l.Maximum(n(1e30)), -7, tensor.Float32, float64(float32(1e30))},
		{b.Add(n(300)), 1, tensor.Uint8, 45},
		{n(inf).Cast(tensor.Int64), 0, tensor.Int64, math.MaxInt64},
		{n(-1e30).Cast(tensor.Int64), 0, tensor.Int64, math.MinInt64},
		{n(math.NaN()).Cast(tensor.Int64), 0, tensor.Int64, 0},
	} {
		require.NoError(t, c.e.Err(), c.e)
		got := plan.Evaluate(c.e.Node, func(leaf *expr.Node) code.Value {
			switch {
			case leaf.At == 1:
				return code.F32(1)
			case leaf.Type == tensor.Int64:
				return code.U64(uint64(int64(c.x)))
			}
			return code.S32(int32(c.x))
		})
		assert.Equal(t, c.of, c.e.Type, c.e)
		assert.InDelta(t, c.want, valueOf(c.of, got), math.Ldexp(math.Abs(c.want), -23), c.e) // the error of pow
	}
}

// Activations of integers equal those of the same real numbers: no step wraps around.
func TestActivationsOfIntegers(t *testing.T) {
	for _, of := range []tensor.Type{tensor.Uint8, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64} {
		x := expr.Input(0, of)
		for _, e := range []expr.Expr{x.Gelu(), x.GeluTanh(), x.Silu(), x.Relu()} {
			got := plan.Evaluate(e.Node, func(leaf *expr.Node) code.Value {
				if leaf.Type == tensor.Int64 {
					return code.U64(20)
				}
				return code.S32(20)
			})
			assert.InDelta(t, 20, valueOf(e.Type, got), 1e-4, e)
		}
	}
}
