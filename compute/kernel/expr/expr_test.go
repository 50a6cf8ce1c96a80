package expr_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
)

func TestPromotion(t *testing.T) {
	for _, c := range []struct{ a, b, want tensor.Type }{
		{tensor.Bool, tensor.Uint8, tensor.Uint8},
		{tensor.Uint8, tensor.Int8, tensor.Int16},
		{tensor.Uint8, tensor.Int32, tensor.Int32},
		{tensor.Int64, tensor.Float16, tensor.Float16},
		{tensor.Float16, tensor.BFloat16, tensor.Float32},
		{tensor.BFloat16, tensor.Float32, tensor.Float32},
		{tensor.Float32, tensor.Float64, tensor.Float64},
	} {
		assert.Equal(t, c.want, expr.Promote(c.a, c.b))
		assert.Equal(t, c.want, expr.Promote(c.b, c.a))
		assert.Equal(t, c.want, expr.Input(0, c.a).Minimum(expr.Input(1, c.b)).Type)
	}
}

func TestTypesOfOperations(t *testing.T) {
	i, f, h := expr.Input(0, tensor.Int32), expr.Input(1, tensor.Float32), expr.Input(2, tensor.Float16)
	for _, c := range []struct {
		e    expr.Expr
		want tensor.Type
	}{
		{i.Add(expr.Number(2)), tensor.Int32},
		{i.Add(expr.Number(0.5)), tensor.Float32},
		{expr.Number(0.5).Mul(h), tensor.Float16},
		{i.Div(i), tensor.Float32},
		{h.Exp(), tensor.Float16},
		{i.Sin(), tensor.Float32},
		{i.Sum(), tensor.Int64},
		{h.Sum(), tensor.Float16},
		{f.ArgMax(), tensor.Int64},
		{f.Lt(h), tensor.Bool},
		{f.Bitcast(), tensor.Int32},
		{i.Mean(), tensor.Float32},
		{expr.Select(i, h, f), tensor.Float32},
		{expr.Number(1).Add(expr.Number(2)), tensor.Float32},
	} {
		require.NoError(t, c.e.Err(), c.e)
		assert.Equal(t, c.want, c.e.Type, c.e)
	}
}

func TestMistakesAreKept(t *testing.T) {
	f := expr.Input(0, tensor.Float32)
	var wrong *expr.TypeError
	for _, e := range []expr.Expr{
		f.And(f), f.Not(), f.Eq(f).Add(f.Eq(f)), f.Cast(tensor.Float64).Log(), f.Eq(f).Max(), f.Cast(tensor.Int8).Bitcast(),
		f.Not().Add(f).Exp().Sum(), expr.Input(0, 0).Relu(), expr.Count(tensor.Int8),
	} {
		require.ErrorAs(t, e.Err(), &wrong, e)
	}
	require.ErrorIs(t, expr.Expr{}.Add(f).Err(), expr.ErrNoExpr)
	require.ErrorIs(t, expr.Expr{Node: &expr.Node{}}.Add(f).Err(), expr.ErrNoExpr)
	require.ErrorIs(t, expr.Input(99, tensor.Float32).Err(), expr.ErrInputs)
	require.ErrorIs(t, expr.Index(0).Err(), expr.ErrIndex)
}

// A zero Expr among the operands of any method is the mistake of the result, and no panic; operands that are right make none.
func TestZeroExpressionsAreMistakes(t *testing.T) {
	f, i := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Int32)
	operands := []expr.Expr{{}, expr.Number(2), f, i, expr.Input(99, tensor.Float32), f.And(f)}
	is := reflect.TypeFor[expr.Expr]()
	tried := 0
	var try func(m reflect.Method, args []reflect.Value)
	try = func(m reflect.Method, args []reflect.Value) {
		if len(args) < m.Type.NumIn() {
			switch in := m.Type.In(len(args)); {
			case in == is:
				for _, e := range operands {
					try(m, append(args[:len(args):len(args)], reflect.ValueOf(e)))
				}
			case in == reflect.TypeFor[tensor.Type]():
				try(m, append(args[:len(args):len(args)], reflect.ValueOf(tensor.Float16)))
			default:
				try(m, append(args[:len(args):len(args)], reflect.Zero(in)))
			}
			return
		}
		tried++
		result := m.Func.Call(args)[0].Interface().(expr.Expr)
		var first error
		for _, a := range args {
			if e, ok := a.Interface().(expr.Expr); ok && first == nil {
				first = e.Err()
			}
		}
		if first != nil {
			require.Error(t, result.Err(), "%s of %v", m.Name, args)
			require.NotEmpty(t, result.String())
		}
	}
	for m := range is.Methods() {
		if m.Type.NumOut() == 1 && m.Type.Out(0) == is && !m.Type.IsVariadic() {
			require.NotPanics(t, func() { try(m, nil) }, m.Name)
		}
	}
	assert.Greater(t, tried, 500)
	for _, e := range []expr.Expr{
		expr.Select(expr.Expr{}, f, f), expr.Select(f, expr.Expr{}, f), expr.Select(f, f, expr.Expr{}),
		expr.Number(1).Minimum(expr.Expr{}), expr.Expr{}.Maximum(expr.Number(1)),
	} {
		require.ErrorIs(t, e.Err(), expr.ErrNoExpr)
	}
}

// Numbers beside integers: Maximum and Minimum take the nearest integer of the other operand's type.
func TestNearestIntegers(t *testing.T) {
	for _, c := range []struct {
		of     tensor.Type
		number float64
		bits   uint64
	}{
		{tensor.Uint8, 300, 255},
		{tensor.Uint8, 255, 255},
		{tensor.Uint8, -1, 0},
		{tensor.Int8, 128, 127},
		{tensor.Int8, -129, math.MaxUint32 - 127},
		{tensor.Int16, 1 << 15, 1<<15 - 1},
		{tensor.Int16, -1 << 20, math.MaxUint32 - (1<<15 - 1)},
		{tensor.Int32, 1 << 31, 1<<31 - 1},
		{tensor.Int32, -1 << 40, 1 << 31},
	} {
		for _, e := range []expr.Expr{
			expr.Input(0, c.of).Maximum(expr.Number(c.number)).Args[1], expr.Number(c.number).Minimum(expr.Input(0, c.of)).Args[0],
		} {
			assert.Equal(t, c.of, e.Type, "%v", c)
			assert.Equal(t, c.bits, e.Bits, "%v", c)
		}
	}
	for x, want := range map[float64]tensor.Type{
		1.5: tensor.Float32, math.Inf(1): tensor.Float32, math.NaN(): tensor.Float32, 1 << 63: tensor.Float32, -1 << 63: tensor.Int64, 1 << 62: tensor.Int64,
	} {
		assert.Equal(t, want, expr.Input(0, tensor.Int64).Add(expr.Number(x)).Type, "%v", x)
	}
	assert.Equal(t, tensor.Int64, expr.Input(0, tensor.Bool).Add(expr.Number(1)).Type)
}

// Names, errors and inputs at their bounds.
func TestBoundsOfExpressions(t *testing.T) {
	require.NoError(t, expr.Input(expr.MaxInputs-1, tensor.Float32).Err())
	require.ErrorIs(t, expr.Input(expr.MaxInputs, tensor.Float32).Err(), expr.ErrInputs)
	require.ErrorIs(t, expr.Input(-1, tensor.Float32).Err(), expr.ErrInputs)
	require.NoError(t, expr.Index(-1).Err())
	require.EqualError(t, expr.Index(0).Err(), "expr: there is no such dimension: dimension 0: count from the end, -1 is the last one")
	require.EqualError(t, expr.Input(0, tensor.Float32).And(expr.Input(1, tensor.Float64)).Err(),
		"expr: and float64 and float64: not possible for these element types")
	names := map[string]bool{}
	for o := expr.OpInput; o <= expr.OpRunningSum; o++ {
		text, err := o.MarshalText()
		require.NoError(t, err)
		require.NotEmpty(t, string(text))
		assert.Equal(t, o.String(), string(text))
		assert.Equal(t, o >= expr.OpSum, o.Reduces(), o)
		names[o.String()] = true
	}
	assert.Len(t, names, int(expr.OpRunningSum), "each has a name of its own")
	for _, o := range []expr.Op{0, expr.OpRunningSum + 1} {
		assert.Equal(t, fmt.Sprint("operation ", uint8(o)), o.String())
		assert.False(t, o.Reduces())
	}
	assert.Equal(t, "index(-12)", expr.Index(-12).String())
	assert.Equal(t, "2.5", expr.Number(2.5).String())
	assert.Equal(t, "select(bool:0x1, float32[0], float32[3])",
		expr.Select(expr.Const(true), expr.Input(0, tensor.Float32), expr.Input(3, tensor.Float32)).String())
	assert.Zero(t, expr.Expr{}.Depth())
	assert.False(t, expr.Expr{}.Row())
	assert.Equal(t, "(expr: no expression)", expr.Expr{}.String())
}

func TestDepthAndRows(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	assert.Equal(t, 2, x.Var(0).Depth())
	assert.True(t, x.Var(0).Row())
	assert.Equal(t, 1, x.Softmax().Depth())
	assert.False(t, x.Softmax().Row())
	assert.Equal(t, "float32[0]", x.String())
	assert.Equal(t, "maximum(neg(float32[0]), float32:0x0)", x.Neg().Relu().String())
}

func TestALongTextIsCut(t *testing.T) {
	x := expr.Input(0, tensor.Float32)
	for range 18 {
		x = x.Add(x)
	}
	text := x.String()
	assert.Len(t, text, expr.MaxText)
	assert.True(t, strings.HasPrefix(text, "add(add(add("))
	assert.True(t, strings.HasSuffix(text, "..."))
}
