package expr_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/kernel/expr"
	"github.com/go-vram/vram/tensor"
	"github.com/go-vram/vram/tensor/half"
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
