package elementary

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/internal/code"
)

type value = code.Value

// m writes formulas of float32.
type m struct{ code.Machine }

func (m m) add(a, b value) value    { return m.Op2(code.AddF32, a, b) }
func (m m) sub(a, b value) value    { return m.Op2(code.SubF32, a, b) }
func (m m) mul(a, b value) value    { return m.Op2(code.MulF32, a, b) }
func (m m) div(a, b value) value    { return m.Op2(code.DivF32, a, b) }
func (m m) fma(a, b, c value) value { return m.Op3(code.FmaF32, a, b, c) }
func (m m) neg(a value) value       { return m.Op1(code.NegF32, a) }
func (m m) abs(a value) value       { return m.Op1(code.AbsF32, a) }
func (m m) lt(a, b value) value     { return m.Op2(code.LtF32, a, b) }
func (m m) gt(a, b value) value     { return m.Op2(code.GtF32, a, b) }
func (m m) ge(a, b value) value     { return m.Op2(code.GeF32, a, b) }
func (m m) eq(a, b value) value     { return m.Op2(code.EqF32, a, b) }
func (m m) and(a, b value) value    { return m.Op2(code.AndPred, a, b) }
func (m m) or(a, b value) value     { return m.Op2(code.OrPred, a, b) }
func (m m) not(a value) value       { return m.Op1(code.NotPred, a) }

// pick is a where the condition holds, else b.
func (m m) pick(condition, a, b value) value { return m.Op3(code.Select32, a, b, condition) }

func (m m) addInt(a, b value) value { return m.Op2(code.AddS32, a, b) }
func (m m) subInt(a, b value) value { return m.Op2(code.SubS32, a, b) }
func (m m) bits(a value, mask uint32) value {
	return m.Op2(code.And32, a, code.U32(mask))
}

// signed is a, which is not negative, with the sign of b.
func (m m) signed(a, b value) value { return m.Op2(code.Or32, a, m.bits(b, sign)) }

// poly continues a polynomial of x with the coefficients of lower powers.
func (m m) poly(first, x value, coefficients ...float32) value {
	for _, c := range coefficients {
		first = m.fma(first, x, code.F32(c))
	}
	return first
}

const (
	sign  = 1 << 31
	magic = 12582912 // 3*2^22: a number is rounded to an integer, in the low bits, when it is added
)

func number(x float32) value { return code.F32(x) }

func infinity() value { return number(float32(math.Inf(1))) }

func nan() value { return code.U32(0x7fffffff) }
