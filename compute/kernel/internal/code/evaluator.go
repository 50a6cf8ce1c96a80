package code

import (
	"math"
	"math/bits"

	"github.com/go-vram/vram/compute/tensor/half"
)

// Evaluator computes on the host.
type Evaluator struct{}

// Rare computes the branch that the condition chooses.
func (Evaluator) Rare(condition, otherwise Value, do func() Value) Value {
	if condition.Bits != 0 {
		return do()
	}
	return otherwise
}

const nan32 = 0x7fffffff // the NaN that a GPU makes

func f32(x float32) Value {
	if x != x {
		return U32(nan32)
	}
	return F32(x)
}

func f64(x float64) Value { return F64(x) }

// Op1 computes an operation of one operand.
func (Evaluator) Op1(op Op, a Value) Value {
	switch op { //nolint:exhaustive // one operand only
	case NegF32:
		return U32(uint32(a.Bits) ^ 1<<31)
	case AbsF32:
		return U32(uint32(a.Bits) &^ (1 << 31))
	case SqrtF32:
		return f32(float32(math.Sqrt(float64(a.AsFloat32()))))
	case RoundF32:
		return f32(float32(math.RoundToEven(float64(a.AsFloat32()))))
	case FloorF32:
		return f32(float32(math.Floor(float64(a.AsFloat32()))))
	case CeilF32:
		return f32(float32(math.Ceil(float64(a.AsFloat32()))))
	case TruncF32:
		return f32(float32(math.Trunc(float64(a.AsFloat32()))))
	case NegF64:
		return U64(a.Bits ^ 1<<63)
	case AbsF64:
		return U64(a.Bits &^ (1 << 63))
	case SqrtF64:
		return f64(math.Sqrt(a.AsFloat64()))
	case RoundF64:
		return f64(math.RoundToEven(a.AsFloat64()))
	case FloorF64:
		return f64(math.Floor(a.AsFloat64()))
	case CeilF64:
		return f64(math.Ceil(a.AsFloat64()))
	case TruncF64:
		return f64(math.Trunc(a.AsFloat64()))
	case NegS32:
		return U32(-uint32(a.Bits))
	case AbsS32:
		if int32(a.Bits) < 0 {
			return U32(-uint32(a.Bits))
		}
		return a
	case Not32:
		return U32(^uint32(a.Bits))
	case Clz32:
		return U32(uint32(bits.LeadingZeros32(uint32(a.Bits))))
	case NegS64:
		return U64(-a.Bits)
	case AbsS64:
		if int64(a.Bits) < 0 {
			return U64(-a.Bits)
		}
		return a
	case Not64:
		return U64(^a.Bits)
	case NotPred:
		return Bool(a.Bits == 0)
	}
	return convert(op, a)
}

func convert(op Op, a Value) Value {
	switch op { //nolint:exhaustive // conversions
	case F32FromS32:
		return F32(float32(int32(a.Bits)))
	case F32FromU32:
		return F32(float32(uint32(a.Bits)))
	case F32FromS64:
		return F32(float32(int64(a.Bits)))
	case F64FromS32:
		return F64(float64(int32(a.Bits)))
	case F64FromU32:
		return F64(float64(uint32(a.Bits)))
	case F64FromS64:
		return F64(float64(int64(a.Bits)))
	case S32FromF32:
		return S32(int32(saturate(math.Trunc(float64(a.AsFloat32())))))
	case S32RoundF32:
		return S32(int32(saturate(math.RoundToEven(float64(a.AsFloat32())))))
	case S64FromF32:
		return U64(uint64(saturateF32(a.AsFloat32())))
	case S32FromF64:
		return S32(int32(saturate(math.Trunc(a.AsFloat64()))))
	case S32RoundF64:
		return S32(int32(saturate(math.RoundToEven(a.AsFloat64()))))
	case S64FromF64:
		return U64(uint64(saturateF64(a.AsFloat64())))
	case F64FromF32:
		return f64(float64(a.AsFloat32()))
	case F32FromF64:
		return f32(float32(a.AsFloat64()))
	case F32FromF16:
		return f32(half.Float16(a.Bits).Float32())
	case F16FromF32:
		return halfOf(a.AsFloat32())
	case S64FromS32:
		return U64(uint64(int64(int32(a.Bits))))
	case U64FromU32:
		return U64(uint64(uint32(a.Bits)))
	case U32FromU64:
		return U32(uint32(a.Bits))
	case U32FromHi:
		return U32(uint32(a.Bits >> 32))
	case B16FromB32:
		return Value{Class: B16, Const: true, Bits: a.Bits & 0xffff}
	case B32FromB16:
		return U32(uint32(a.Bits))
	}
	panic("code: " + op.Text() + " does not have one operand")
}

// halfOf is the nearest float16.
func halfOf(x float32) Value {
	if x != x {
		return Value{Class: B16, Const: true, Bits: 0x7fff}
	}
	return Value{Class: B16, Const: true, Bits: uint64(half.NewFloat16(x))}
}

// saturate is the nearest int32, and 0 for NaN: as cvt does.
func saturate(x float64) int64 {
	if x != x {
		return 0
	}
	return int64(min(max(x, math.MinInt32), math.MaxInt32))
}

func saturateF32(x float32) int64 {
	if x != x {
		return math.MinInt64 // a conversion to 64 bits makes this of a NaN
	}
	return saturateF64(float64(x))
}

func saturateF64(x float64) int64 {
	switch {
	case x != x:
		return math.MinInt64
	case x >= math.MaxInt64:
		return math.MaxInt64
	case x <= math.MinInt64:
		return math.MinInt64
	}
	return int64(x)
}

// Op3 computes an operation of three operands.
func (Evaluator) Op3(op Op, a, b, c Value) Value {
	switch op { //nolint:exhaustive // three operands only
	case FmaF32:
		return f32(fma32(a.AsFloat32(), b.AsFloat32(), c.AsFloat32()))
	case FmaF64:
		return f64(math.FMA(a.AsFloat64(), b.AsFloat64(), c.AsFloat64()))
	case Select32, Select64, SelectPred:
		if c.Bits != 0 {
			return a
		}
		return b
	}
	panic("code: " + op.Text() + " does not have three operands")
}

// fma32 is a*b+c, rounded once. The product is exact in float64; the sum is rounded to odd there, and so the second rounding
// does no harm.
func fma32(a, b, c float32) float32 {
	p, z := float64(a)*float64(b), float64(c)
	s := p + z
	if s-s != 0 { // an infinity or NaN
		return float32(s)
	}
	t := s - p
	lost := (p - (s - t)) + (z - t)
	if lost != 0 && math.Float64bits(s)&1 == 0 {
		if (lost > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}
