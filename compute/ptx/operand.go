package ptx

import (
	"math"
	"slices"
)

// OperandKind says which fields of an operand count.
type OperandKind uint8

// The kinds of operands.
const (
	OperandNone     OperandKind = iota
	OperandRegister             // %r1, !%p1: Register, Negated
	OperandSpecial              // %tid.x: Special
	OperandInteger              // 7: Value
	OperandFloat32              // 0f3F800000: Value has the bits
	OperandFloat64              // 0d3FF0000000000000 and 1.0: Value has the bits
	OperandVariable             // the address of a variable: Variable, Offset; Generic where the text asks for a generic address
	OperandAddress              // memory, [%rd1+4]: Register, or Variable, or Name where it is not declared, or none of them; Offset; Elements are coordinates: [t, {%f1, %f2}]
	OperandLabel                // Label
	OperandFunction             // Name
	OperandVector               // {a, b}: Elements
	OperandPair                 // p|q: two Elements
	OperandList                 // (a, b) of a call: Elements
	OperandSink                 // _, a result that is dropped
	OperandName                 // a name that is not declared: Name, Negated, Offset
)

// Operand is an argument or a result of an instruction, and a value of an initialiser.
type Operand struct {
	Kind     OperandKind
	Negated  bool // of a predicate
	Generic  bool // generic(variable)
	Special  Special
	Register *Register
	Variable *Variable
	Label    *Label
	Value    uint64 // an integer in two's complement, or the bits of a floating-point number
	Offset   int64  // in bytes
	Name     string
	Elements []Operand
}

// Reg returns an operand that names a register.
func Reg(r *Register) Operand { return Operand{Kind: OperandRegister, Register: r} }

// Integer returns an operand that is an integer.
func Integer(value int64) Operand { return Operand{Kind: OperandInteger, Value: uint64(value)} }

// Float32 returns an operand that is a number of single precision.
func Float32(value float32) Operand {
	return Operand{Kind: OperandFloat32, Value: uint64(math.Float32bits(value))}
}

// Float64 returns an operand that is a number of double precision.
func Float64(value float64) Operand {
	return Operand{Kind: OperandFloat64, Value: math.Float64bits(value)}
}

// Memory returns an operand that is the memory at a register's address and an offset in bytes.
func Memory(base *Register, offset int64) Operand {
	return Operand{Kind: OperandAddress, Register: base, Offset: offset}
}

// MemoryOf returns an operand that is the memory of a variable from an offset in bytes.
func MemoryOf(v *Variable, offset int64) Operand {
	return Operand{Kind: OperandAddress, Variable: v, Offset: offset}
}

// AddressOf returns an operand that is the address of a variable in its own state space.
func AddressOf(v *Variable) Operand { return Operand{Kind: OperandVariable, Variable: v} }

// Vector returns an operand of several elements.
func Vector(elements ...Operand) Operand { return Operand{Kind: OperandVector, Elements: elements} }

// Float returns the value of an operand that is a floating-point number, else 0.
func (o *Operand) Float() float64 {
	if o == nil {
		return 0
	}
	if o.Kind == OperandFloat32 {
		return float64(math.Float32frombits(uint32(o.Value))) // the upper half is empty
	}
	if o.Kind == OperandFloat64 {
		return math.Float64frombits(o.Value)
	}
	return 0
}

// copied returns an operand that shares no elements with another one.
func copied(o Operand) Operand {
	o.Elements = copies(o.Elements)
	return o
}

// copies returns copies of operands.
func copies(all []Operand) []Operand {
	all = slices.Clone(all)
	for i := range all {
		all[i] = copied(all[i])
	}
	return all
}

// each calls visit for the operand and its elements at every depth.
func (o *Operand) each(visit func(*Operand)) {
	visit(o)
	for i := range o.Elements {
		o.Elements[i].each(visit)
	}
}
