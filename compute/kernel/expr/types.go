package expr

import (
	"errors"
	"math"
	"strings"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

var (
	// ErrNoExpr is the mistake of a zero Expr.
	ErrNoExpr = errors.New("expr: no expression")
	// ErrInputs refuses more inputs than MaxInputs.
	ErrInputs = errors.New("expr: there is no such input")
	// ErrIndex refuses a dimension.
	ErrIndex = errors.New("expr: there is no such dimension")
)

// TypeError refuses element types that an operation cannot have, or cannot have together.
type TypeError struct {
	Op    Op
	Types []tensor.Type
}

// Error names the operation and the types.
func (e *TypeError) Error() string {
	names := make([]string, len(e.Types))
	for i, t := range e.Types {
		names[i] = t.String()
	}
	return "expr: " + e.Op.String() + " " + strings.Join(names, " and ") + ": not possible for these element types"
}

// Promote is the type to which operands of two types are converted.
func Promote(a, b tensor.Type) tensor.Type {
	if a == b {
		return a
	}
	if rank(a) > rank(b) {
		a, b = b, a
	}
	switch {
	case a == tensor.Uint8 && b == tensor.Int8:
		return tensor.Int16
	case a == tensor.Float16 && b == tensor.BFloat16:
		return tensor.Float32
	}
	return b
}

// rank orders the types: families first, then lengths. It is the order of their declarations.
func rank(t tensor.Type) int { return int(t) }

// promoted are two operands in one type.
func promoted(a, b Expr) (Expr, Expr) {
	switch {
	case a.Err() != nil || b.Err() != nil:
		return a, b
	case a.Type == 0 && b.Type == 0:
		return a.Typed(), b.Typed()
	case a.Type == 0:
		b, a = promoted(b, a)
		return a, b
	case b.Type == 0:
		b = b.typed(numberType(a.Type, b.number))
	}
	of := Promote(a.Type, b.Type)
	return a.Cast(of), b.Cast(of)
}

// numberType returns the type that a Number takes with an operand: float32 with integers where int64 does not represent it.
func numberType(of tensor.Type, x float64) tensor.Type {
	switch {
	case of.Kind() == tensor.Floating:
		return of
	case x != math.Trunc(x) || x < math.MinInt64 || x >= -math.MinInt64:
		return tensor.Float32 // as infinities and NaN
	case of == tensor.Bool:
		return tensor.Int64
	}
	return of
}

// floating is the operand as a floating-point number.
func floating(a Expr) Expr {
	if a = a.Typed(); a.Err() == nil && a.Type.Kind() != tensor.Floating {
		return a.Cast(tensor.Float32)
	}
	return a
}

// bitsOf returns the bits of a number as a constant of a type: of float32 for float16 and bfloat16, which are computed in
// float32.
func bitsOf(of tensor.Type, x float64) uint64 {
	switch of {
	case tensor.Float64:
		return math.Float64bits(x)
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
		return uint64(math.Float32bits(float32(x)))
	case tensor.Bool:
		if x != 0 {
			return 1
		}
		return 0
	case tensor.Uint8:
		return uint64(uint8(whole(x))) //nolint:gosec // wraps as Go does
	case tensor.Int8:
		return uint64(uint32(int8(whole(x)))) //nolint:gosec // wraps as Go does
	case tensor.Int16:
		return uint64(uint32(int16(whole(x)))) //nolint:gosec // wraps as Go does
	case tensor.Int32:
		return uint64(uint32(int32(whole(x)))) //nolint:gosec // wraps as Go does
	case tensor.Int64:
		return uint64(whole(x)) //nolint:gosec // the same bits
	}
	return 0
}

// whole is the nearest int64, and 0 for NaN. The conversion of Go has no certain result for numbers that int64 does not have.
func whole(x float64) int64 {
	switch {
	case math.IsNaN(x):
		return 0
	case x >= -math.MinInt64:
		return math.MaxInt64
	case x < math.MinInt64:
		return math.MinInt64
	}
	return int64(x)
}

// smallBits is a constant of at most 32 bits.
func smallBits(x any) uint64 {
	switch x := x.(type) {
	case uint8:
		return bitsOf(tensor.Uint8, float64(x))
	case int8:
		return bitsOf(tensor.Int8, float64(x))
	case int16:
		return bitsOf(tensor.Int16, float64(x))
	case int32:
		return bitsOf(tensor.Int32, float64(x))
	case half.Float16:
		return uint64(math.Float32bits(x.Float32()))
	case half.BFloat16:
		return uint64(math.Float32bits(x.Float32()))
	case float32:
		return uint64(math.Float32bits(x))
	}
	return 0
}
