package expr_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// A constant has the type of its value, and the bits that a register has for it.
func TestConstants(t *testing.T) {
	for _, one := range []struct {
		e    expr.Expr
		of   tensor.Type
		bits uint64
	}{
		{expr.Const(true), tensor.Bool, 1},
		{expr.Const(false), tensor.Bool, 0},
		{expr.Const(uint8(200)), tensor.Uint8, 200},
		{expr.Const(int8(-1)), tensor.Int8, math.MaxUint32},
		{expr.Const(int16(-2)), tensor.Int16, math.MaxUint32 - 1},
		{expr.Const(int32(-3)), tensor.Int32, math.MaxUint32 - 2},
		{expr.Const(int64(-4)), tensor.Int64, math.MaxUint64 - 3},
		{expr.Const(float32(1)), tensor.Float32, 0x3f800000},
		{expr.Const(float64(1)), tensor.Float64, 0x3ff0000000000000},
		{expr.Const(half.NewFloat16(2)), tensor.Float16, 0x40000000},
		{expr.Const(half.NewBFloat16(2)), tensor.BFloat16, 0x40000000},
	} {
		assert.Equal(t, one.of, one.e.Type, "%v", one.e)
		assert.Equal(t, one.bits, one.e.Bits, "%v", one.e)
	}
}

// A Number used with a type of 16 bits is not rounded to it, nor are results of operations. One that is compared, or Cast, is.
func TestNumbersBesideHalves(t *testing.T) {
	for _, of := range []tensor.Type{tensor.Float16, tensor.BFloat16} {
		x := expr.Input(0, of)
		single := uint64(math.Float32bits(0.1))
		rounded := uint64(math.Float32bits(half.NewFloat16(0.1).Float32()))
		if of == tensor.BFloat16 {
			rounded = uint64(math.Float32bits(half.NewBFloat16(0.1).Float32()))
		}
		for name, c := range map[string]struct {
			got  expr.Expr
			want uint64
		}{
			"added":         {x.Add(expr.Number(0.1)).Args[1], single},
			"multiplied":    {expr.Number(0.1).Mul(x).Args[0], single},
			"compared":      {x.Lt(expr.Number(0.1)).Args[1], rounded},
			"compared with": {expr.Number(0.1).Eq(x).Args[0], rounded},
			"cast":          {expr.Number(0.1).Cast(of), rounded},
		} {
			assert.Equal(t, of, c.got.Type, name)
			assert.Equal(t, c.want, c.got.Bits, name)
		}
	}
}
