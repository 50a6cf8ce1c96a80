package code

import "math"

// Class is the kind of register that holds a value.
type Class uint8

// The classes of registers.
const (
	Pred Class = iota
	B16
	B32
	B64
	classCount
)

// Value is a constant, a register of the Emitter, or bits of the Evaluator.
type Value struct {
	Class Class
	Const bool
	Bits  uint64 // of a constant; else the number of the register
}

// F32 is a constant of float32.
func F32(x float32) Value { return U32(math.Float32bits(x)) }

// U32 is a constant of 32 bits.
func U32(x uint32) Value { return Value{Class: B32, Const: true, Bits: uint64(x)} }

// S32 is a constant of 32 bits with a sign.
func S32(x int32) Value { return U32(uint32(x)) } //nolint:gosec // the same bits

// F64 is a constant of float64.
func F64(x float64) Value { return U64(math.Float64bits(x)) }

// U64 is a constant of 64 bits.
func U64(x uint64) Value { return Value{Class: B64, Const: true, Bits: x} }

// Bool is a constant predicate.
func Bool(x bool) Value {
	v := Value{Class: Pred, Const: true}
	if x {
		v.Bits = 1
	}
	return v
}

// AsFloat32 returns the bits as a float32.
func (v Value) AsFloat32() float32 { return math.Float32frombits(uint32(v.Bits)) } //nolint:gosec // the low half

// AsFloat64 returns the bits as a float64.
func (v Value) AsFloat64() float64 { return math.Float64frombits(v.Bits) }

// Machine performs operations: the Emitter writes them, the Evaluator computes them.
type Machine interface {
	// Op1, Op2 and Op3 perform an operation of that many operands.
	Op1(op Op, a Value) Value
	Op2(op Op, a, b Value) Value
	Op3(op Op, a, b, c Value) Value
	// Rare is otherwise, or the result of the function where the condition holds: for work that few elements need.
	Rare(condition, otherwise Value, do func() Value) Value
}
