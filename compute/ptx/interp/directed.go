package interp

import (
	"math"
	"math/big"

	"github.com/go-vram/vram/compute/ptx"
)

// exactBits is enough for sums of any two products of numbers of double precision.
const exactBits = 4400

// operation is one of add, sub, mul, fma, div, sqrt and rcp on numbers of single or double precision.
type operation uint8

const (
	opAdd operation = iota
	opMul
	opFma
	opDiv
	opSqrt
)

// directed computes an operation with a rounding that Go does not have. t is formatF32, or double precision where it has none.
func directed(op operation, mode ptx.Modifier, double bool, a, b, c float64) float64 {
	nearest := nearestOf(op, a, b, c)
	if math.IsNaN(nearest) {
		return nearest
	}
	exact := exactly(op, a, b, c)
	if exact.Sign() == 0 {
		return signOfZero(op, mode, nearest, a, b, c)
	}
	var x float64
	var at big.Accuracy
	if double {
		x, at = exact.Float64()
	} else {
		var single float32
		single, at = exact.Float32()
		x = float64(single)
	}
	return nudge(x, at, mode, double)
}

// nearestOf returns the result of Go's own operation, rounded to the nearest.
func nearestOf(op operation, a, b, c float64) float64 {
	switch op {
	case opAdd:
		return a + b
	case opMul:
		return a * b
	case opFma:
		return math.FMA(a, b, c)
	case opDiv:
		return a / b
	default:
		return math.Sqrt(a)
	}
}

// signOfZero returns x, with the sign that a sum of two opposite numbers has when rounding down.
func signOfZero(op operation, mode ptx.Modifier, x, a, b, c float64) float64 {
	if x != 0 || mode != ptx.ModRm || op != opAdd && op != opFma {
		return x
	}
	one, other := a, b
	if op == opFma {
		one, other = a*b, c
	}
	if math.Signbit(one) || math.Signbit(other) {
		return math.Copysign(0, -1)
	}
	return x
}

// exactly returns the result, which is not NaN, without rounding, or with so many bits that the difference cannot be seen.
func exactly(op operation, a, b, c float64) *big.Float {
	number := func(x float64) *big.Float { return new(big.Float).SetPrec(exactBits).SetFloat64(x) }
	r := new(big.Float).SetPrec(exactBits)
	switch op {
	case opAdd:
		return r.Add(number(a), number(b))
	case opMul:
		return r.Mul(number(a), number(b))
	case opFma:
		return r.Add(r.Mul(number(a), number(b)), number(c))
	case opDiv:
		return r.SetPrec(300).Quo(number(a), number(b)) //nolint:mnd // a quotient that is not exact shows within 110 bits
	default:
		return r.SetPrec(300).Sqrt(number(a).SetPrec(300)) //nolint:mnd // likewise
	}
}

// nudge moves the nearest number to the result of another rounding; at is the side of the exact number on which x lies.
func nudge(x float64, at big.Accuracy, mode ptx.Modifier, double bool) float64 {
	step := func(to float64) float64 {
		if double {
			return math.Nextafter(x, to)
		}
		return float64(math.Nextafter32(float32(x), float32(to)))
	}
	positive := !math.Signbit(x)
	switch {
	case at == big.Above && (mode == ptx.ModRm || mode == ptx.ModRz && positive):
		return step(math.Inf(-1))
	case at == big.Below && (mode == ptx.ModRp || mode == ptx.ModRz && !positive):
		return step(math.Inf(1))
	}
	return x
}
