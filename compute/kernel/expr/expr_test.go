package expr_test

import (
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
	require.ErrorIs(t, expr.Input(99, tensor.Float32).Err(), expr.ErrInputs)
	require.ErrorIs(t, expr.Index(0).Err(), expr.ErrIndex)
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
