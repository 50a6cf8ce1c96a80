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

// Op1 computes an operation of one operand.
func (Evaluator) Op1(op Op, a Value) Value {
	if do := ones[op]; do != nil {
		return do(a)
	}
	panic("code: " + op.Text() + " does not have one operand")
}

// Op2 computes an operation of two operands.
func (Evaluator) Op2(op Op, a, b Value) Value {
	if do := twos[op]; do != nil {
		return do(a, b)
	}
	panic("code: " + op.Text() + " does not have two operands")
}

// Op3 computes an operation of three operands.
func (Evaluator) Op3(op Op, a, b, c Value) Value {
	switch op { //nolint:exhaustive // three operands only
	case FmaF32:
		return f32(fma32(a.AsFloat32(), b.AsFloat32(), c.AsFloat32()))
	case FmaF64:
		return F64(math.FMA(a.AsFloat64(), b.AsFloat64(), c.AsFloat64()))
	case Select32, Select64, SelectPred:
		if c.Bits != 0 {
			return a
		}
		return b
	}
	panic("code: " + op.Text() + " does not have three operands")
}

//nolint:gochecknoglobals // constant table of operations
var ones = [opCount]func(Value) Value{
	NegF32: one(u32, U32, func(a uint32) uint32 { return a ^ 1<<31 }), NegF64: one(u64, U64, func(a uint64) uint64 { return a ^ 1<<63 }),
	AbsF32: one(u32, U32, func(a uint32) uint32 { return a &^ (1 << 31) }), AbsF64: one(u64, U64, func(a uint64) uint64 { return a &^ (1 << 63) }),
	SqrtF32: one(wide, narrow, math.Sqrt), SqrtF64: one(Value.AsFloat64, F64, math.Sqrt),
	RoundF32: one(wide, narrow, math.RoundToEven), RoundF64: one(Value.AsFloat64, F64, math.RoundToEven),
	FloorF32: one(wide, narrow, math.Floor), FloorF64: one(Value.AsFloat64, F64, math.Floor),
	CeilF32: one(wide, narrow, math.Ceil), CeilF64: one(Value.AsFloat64, F64, math.Ceil),
	TruncF32: one(wide, narrow, math.Trunc), TruncF64: one(Value.AsFloat64, F64, math.Trunc),

	NegS32: one(s32, S32, neg), AbsS32: one(s32, S32, abs), Not32: one(u32, U32, not),
	Clz32:  one(u32, U32, func(a uint32) uint32 { return uint32(bits.LeadingZeros32(a)) }),
	NegS64: one(s64, s64Value, neg), AbsS64: one(s64, s64Value, abs), Not64: one(u64, U64, not),
	NotPred: one(u64, Bool, func(a uint64) bool { return a == 0 }),

	F32FromS32: one(s32, F32, to[float32]), F32FromU32: one(u32, F32, to[float32]), F32FromS64: one(s64, F32, to[float32]),
	F64FromS32: one(s32, F64, to[float64]), F64FromU32: one(u32, F64, to[float64]), F64FromS64: one(s64, F64, to[float64]),
	S32FromF32: one(wide, saturated, math.Trunc), S32RoundF32: one(wide, saturated, math.RoundToEven),
	S32FromF64: one(Value.AsFloat64, saturated64, math.Trunc), S32RoundF64: one(Value.AsFloat64, saturated64, math.RoundToEven),
	S64FromF32: one(wide, s64Value, saturate64), S64FromF64: one(Value.AsFloat64, s64Value, saturate64),
	F64FromF32: one(Value.AsFloat32, F64, to[float64]), F32FromF64: one(Value.AsFloat64, f32, to[float32]),
	F32FromF16: one(u32, f32, func(a uint32) float32 { return half.Float16(a).Float32() }), F16FromF32: one(Value.AsFloat32, b16, halfOf),
	S64FromS32: one(s32, s64Value, to[int64]), U64FromU32: one(u32, U64, to[uint64]), U32FromU64: one(u64, U32, to[uint32]),
	U32FromHi:  one(u64, U32, func(a uint64) uint32 { return uint32(a >> 32) }),
	B16FromB32: one(u32, b16, to[uint16]), B32FromB16: one(u32, U32, to[uint32]),
}

//nolint:gochecknoglobals // constant table of operations
var twos = [opCount]func(a, b Value) Value{
	AddF32: two(Value.AsFloat32, f32, add), SubF32: two(Value.AsFloat32, f32, sub), MulF32: two(Value.AsFloat32, f32, mul),
	DivF32: two(Value.AsFloat32, f32, div), MinF32: two(Value.AsFloat32, f32, lesser), MaxF32: two(Value.AsFloat32, f32, greater),
	EqF32: two(Value.AsFloat32, Bool, eq), NeF32: two(Value.AsFloat32, Bool, ne), LtF32: two(Value.AsFloat32, Bool, lt),
	LeF32: two(Value.AsFloat32, Bool, le), GtF32: two(Value.AsFloat32, Bool, gt), GeF32: two(Value.AsFloat32, Bool, ge),
	NanF32: two(Value.AsFloat32, Bool, nan),

	AddF64: two(Value.AsFloat64, F64, add), SubF64: two(Value.AsFloat64, F64, sub), MulF64: two(Value.AsFloat64, F64, mul),
	DivF64: two(Value.AsFloat64, F64, div), MinF64: two(Value.AsFloat64, F64, lesser), MaxF64: two(Value.AsFloat64, F64, greater),
	EqF64: two(Value.AsFloat64, Bool, eq), NeF64: two(Value.AsFloat64, Bool, ne), LtF64: two(Value.AsFloat64, Bool, lt),
	LeF64: two(Value.AsFloat64, Bool, le), GtF64: two(Value.AsFloat64, Bool, gt), GeF64: two(Value.AsFloat64, Bool, ge),
	NanF64: two(Value.AsFloat64, Bool, nan),

	AddS32: two(u32, U32, add), SubS32: two(u32, U32, sub), MulS32: two(u32, U32, mul),
	MulHiU32: two(u32, U32, func(a, b uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) }),
	MinS32:   two(s32, S32, lesser), MaxS32: two(s32, S32, greater), DivU32: two(u32, U32, quotient), RemU32: two(u32, U32, rest),
	And32: two(u32, U32, and), Or32: two(u32, U32, or), Xor32: two(u32, U32, xor),
	Shl32: func(a, b Value) Value { return U32(u32(a) << u32(b)) }, ShrU32: func(a, b Value) Value { return U32(u32(a) >> u32(b)) },
	ShrS32: func(a, b Value) Value { return S32(s32(a) >> u32(b)) },
	EqS32:  two(s32, Bool, eq), NeS32: two(s32, Bool, ne), LtS32: two(s32, Bool, lt), LeS32: two(s32, Bool, le),
	GtS32: two(s32, Bool, gt), GeS32: two(s32, Bool, ge), LtU32: two(u32, Bool, lt), GeU32: two(u32, Bool, ge),

	AddS64: two(u64, U64, add), SubS64: two(u64, U64, sub), MulS64: two(u64, U64, mul),
	MulWideU32: two(u32, U64, func(a, b uint32) uint64 { return uint64(a) * uint64(b) }),
	MulWideS32: two(s32, s64Value, func(a, b int32) int64 { return int64(a) * int64(b) }),
	MinS64:     two(s64, s64Value, lesser), MaxS64: two(s64, s64Value, greater), DivU64: two(u64, U64, quotient), RemU64: two(u64, U64, rest),
	And64: two(u64, U64, and), Or64: two(u64, U64, or), Xor64: two(u64, U64, xor),
	Shl64: func(a, b Value) Value { return U64(a.Bits << u32(b)) }, ShrU64: func(a, b Value) Value { return U64(a.Bits >> u32(b)) },
	ShrS64: func(a, b Value) Value { return s64Value(s64(a) >> u32(b)) },
	EqS64:  two(s64, Bool, eq), NeS64: two(s64, Bool, ne), LtS64: two(s64, Bool, lt), LeS64: two(s64, Bool, le),
	GtS64: two(s64, Bool, gt), GeS64: two(s64, Bool, ge), LtU64: two(u64, Bool, lt), GeU64: two(u64, Bool, ge),

	AndPred: func(a, b Value) Value { return Bool(a.Bits&b.Bits != 0) }, OrPred: func(a, b Value) Value { return Bool(a.Bits|b.Bits != 0) },
	XorPred: two(u64, Bool, ne), U64FromHalves: two(u32, U64, func(a, b uint32) uint64 { return uint64(a) | uint64(b)<<32 }),
}

// one is an operation that reads its operand as an A, and whose result becomes a Value again.
func one[A, R any](of func(Value) A, to func(R) Value, do func(A) R) func(Value) Value {
	return func(a Value) Value { return to(do(of(a))) }
}

func two[A, R any](of func(Value) A, to func(R) Value, do func(a, b A) R) func(a, b Value) Value {
	return func(a, b Value) Value { return to(do(of(a), of(b))) }
}

func u32(v Value) uint32   { return uint32(v.Bits) }
func s32(v Value) int32    { return int32(v.Bits) }
func u64(v Value) uint64   { return v.Bits }
func s64(v Value) int64    { return int64(v.Bits) }
func wide(v Value) float64 { return float64(v.AsFloat32()) }

func s64Value(x int64) Value { return U64(uint64(x)) }
func narrow(x float64) Value { return f32(float32(x)) }
func b16(x uint16) Value     { return Value{Class: B16, Const: true, Bits: uint64(x)} }

const nan32 = 0x7fffffff // the NaN that a GPU makes

func f32(x float32) Value {
	if x != x {
		return U32(nan32)
	}
	return F32(x)
}

type number interface {
	int32 | uint32 | int64 | uint64 | float32 | float64
}

func to[R uint16 | number, A number](a A) R { return R(a) }

func add[A number](a, b A) A               { return a + b }
func sub[A number](a, b A) A               { return a - b }
func mul[A number](a, b A) A               { return a * b }
func div[A float32 | float64](a, b A) A    { return a / b }
func neg[A int32 | int64](a A) A           { return -a }
func abs[A int32 | int64](a A) A           { return max(a, -a) }
func not[A uint32 | uint64](a A) A         { return ^a }
func and[A uint32 | uint64](a, b A) A      { return a & b }
func or[A uint32 | uint64](a, b A) A       { return a | b }
func xor[A uint32 | uint64](a, b A) A      { return a ^ b }
func eq[A number](a, b A) bool             { return a == b }
func ne[A number](a, b A) bool             { return a != b }
func lt[A number](a, b A) bool             { return a < b }
func le[A number](a, b A) bool             { return a <= b }
func gt[A number](a, b A) bool             { return a > b }
func ge[A number](a, b A) bool             { return a >= b }
func nan[A float32 | float64](a, b A) bool { return a != a || b != b }

// lesser is the lesser one; of a number and a NaN the number, as min of PTX has it.
func lesser[A number](a, b A) A {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return min(a, b)
}

func greater[A number](a, b A) A {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return max(a, b)
}

// quotient and rest divide by 0 as a GPU does.
func quotient[A uint32 | uint64](a, b A) A {
	if b == 0 {
		return ^b
	}
	return a / b
}

func rest[A uint32 | uint64](a, b A) A {
	if b == 0 {
		return a
	}
	return a % b
}

// halfOf is the nearest float16.
func halfOf(x float32) uint16 {
	if x != x {
		return 0x7fff
	}
	return uint16(half.NewFloat16(x))
}

// saturated is the nearest int32, and 0 for NaN: as cvt does from float32.
func saturated(x float64) Value {
	if x != x {
		return S32(0)
	}
	return S32(int32(min(max(x, math.MinInt32), math.MaxInt32)))
}

// saturated64 is the nearest int32, and the least one for NaN: as cvt does from float64.
func saturated64(x float64) Value {
	if x != x {
		return S32(math.MinInt32)
	}
	return saturated(x)
}

// saturate64 is the nearest int64, and the least one for NaN.
func saturate64(x float64) int64 {
	switch {
	case x != x || x <= math.MinInt64:
		return math.MinInt64
	case x >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(x)
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
