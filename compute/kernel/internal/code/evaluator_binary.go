package code

import (
	"math/bits"
)

// Op2 computes an operation of two operands.
func (Evaluator) Op2(op Op, a, b Value) Value {
	switch {
	case op <= NanF32:
		return float32Op(op, a.AsFloat32(), b.AsFloat32())
	case op <= NanF64:
		return float64Op(op, a.AsFloat64(), b.AsFloat64())
	case op <= GeU32:
		return bits32Op(op, uint32(a.Bits), uint32(b.Bits))
	case op <= GeU64:
		return bits64Op(op, a, b)
	}
	switch op { //nolint:exhaustive // two operands only
	case AndPred:
		return Bool(a.Bits&b.Bits != 0)
	case OrPred:
		return Bool(a.Bits|b.Bits != 0)
	case XorPred:
		return Bool(a.Bits != b.Bits)
	case U64FromHalves:
		return U64(a.Bits&0xffffffff | b.Bits<<32)
	}
	panic("code: " + op.Text() + " does not have two operands")
}

func float32Op(op Op, a, b float32) Value {
	switch op { //nolint:exhaustive // two operands only
	case AddF32:
		return f32(a + b)
	case SubF32:
		return f32(a - b)
	case MulF32:
		return f32(a * b)
	case DivF32:
		return f32(a / b)
	case MinF32:
		return f32(lesser(a, b))
	case MaxF32:
		return f32(greater(a, b))
	case EqF32:
		return Bool(a == b)
	case NeF32:
		return Bool(a != b)
	case LtF32:
		return Bool(a < b)
	case LeF32:
		return Bool(a <= b)
	case GtF32:
		return Bool(a > b)
	case GeF32:
		return Bool(a >= b)
	case NanF32:
		return Bool(a != a || b != b)
	}
	panic("code: " + op.Text() + " does not have two operands")
}

func float64Op(op Op, a, b float64) Value {
	switch op { //nolint:exhaustive // two operands only
	case AddF64:
		return f64(a + b)
	case SubF64:
		return f64(a - b)
	case MulF64:
		return f64(a * b)
	case DivF64:
		return f64(a / b)
	case MinF64:
		return f64(lesser(a, b))
	case MaxF64:
		return f64(greater(a, b))
	case EqF64:
		return Bool(a == b)
	case NeF64:
		return Bool(a != b)
	case LtF64:
		return Bool(a < b)
	case LeF64:
		return Bool(a <= b)
	case GtF64:
		return Bool(a > b)
	case GeF64:
		return Bool(a >= b)
	case NanF64:
		return Bool(a != a || b != b)
	}
	panic("code: " + op.Text() + " does not have two operands")
}

// lesser is the lesser one; of a number and a NaN the number, as min of PTX has it.
func lesser[T float32 | float64](a, b T) T {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return min(a, b)
}

func greater[T float32 | float64](a, b T) T {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return max(a, b)
}

func bits32Op(op Op, a, b uint32) Value {
	switch op { //nolint:exhaustive // two operands only
	case AddS32:
		return U32(a + b)
	case SubS32:
		return U32(a - b)
	case MulS32:
		return U32(a * b)
	case MulHiU32:
		return U32(uint32(uint64(a) * uint64(b) >> 32))
	case MinS32:
		return S32(min(int32(a), int32(b)))
	case MaxS32:
		return S32(max(int32(a), int32(b)))
	case DivU32:
		if b == 0 {
			return U32(^uint32(0))
		}
		return U32(a / b)
	case RemU32:
		if b == 0 {
			return U32(a)
		}
		return U32(a % b)
	case And32:
		return U32(a & b)
	case Or32:
		return U32(a | b)
	case Xor32:
		return U32(a ^ b)
	case Shl32:
		return U32(a << b)
	case ShrU32:
		return U32(a >> b)
	case ShrS32:
		return S32(int32(a) >> b)
	case EqS32:
		return Bool(a == b)
	case NeS32:
		return Bool(a != b)
	case LtS32:
		return Bool(int32(a) < int32(b))
	case LeS32:
		return Bool(int32(a) <= int32(b))
	case GtS32:
		return Bool(int32(a) > int32(b))
	case GeS32:
		return Bool(int32(a) >= int32(b))
	case LtU32:
		return Bool(a < b)
	case GeU32:
		return Bool(a >= b)
	}
	panic("code: " + op.Text() + " does not have two operands")
}

func bits64Op(op Op, x, y Value) Value {
	a, b := x.Bits, y.Bits
	switch op { //nolint:exhaustive // two operands only
	case AddS64:
		return U64(a + b)
	case SubS64:
		return U64(a - b)
	case MulS64:
		return U64(a * b)
	case MulWideU32:
		return U64(a & 0xffffffff * (b & 0xffffffff))
	case MulWideS32:
		return U64(uint64(int64(int32(a)) * int64(int32(b))))
	case MinS64:
		return U64(uint64(min(int64(a), int64(b))))
	case MaxS64:
		return U64(uint64(max(int64(a), int64(b))))
	case DivU64:
		if b == 0 {
			return U64(^uint64(0))
		}
		return U64(a / b)
	case RemU64:
		if b == 0 {
			return U64(a)
		}
		_, rest := bits.Div64(0, a, b)
		return U64(rest)
	case And64:
		return U64(a & b)
	case Or64:
		return U64(a | b)
	case Xor64:
		return U64(a ^ b)
	case Shl64:
		return U64(a << (b & 0xffffffff))
	case ShrU64:
		return U64(a >> (b & 0xffffffff))
	case ShrS64:
		return U64(uint64(int64(a) >> (b & 0xffffffff)))
	case EqS64:
		return Bool(a == b)
	case NeS64:
		return Bool(a != b)
	case LtS64:
		return Bool(int64(a) < int64(b))
	case LeS64:
		return Bool(int64(a) <= int64(b))
	case GtS64:
		return Bool(int64(a) > int64(b))
	case GeS64:
		return Bool(int64(a) >= int64(b))
	case LtU64:
		return Bool(a < b)
	case GeU64:
		return Bool(a >= b)
	}
	panic("code: " + op.Text() + " does not have two operands")
}
