package ptx

import (
	"fmt"
	"slices"
)

// misfit says how the operands of an instruction do not fit a form, or "".
func (c *visible) misfit(i *Instruction, f *form) string {
	for n := range i.Operands {
		s := &f.operands[min(n, len(f.operands)-1)]
		if s.kind == specCall {
			return c.callMisfit(i)
		}
		if wrong := c.operandMisfit(i, s, &i.Operands[n]); wrong != "" {
			return fmt.Sprintf("operand %d, %v, %s", n+1, i.Operands[n], wrong)
		}
	}
	return ""
}

// operandMisfit says how one operand does not fit, or "".
func (c *visible) operandMisfit(i *Instruction, s *operandSpec, o *Operand) string {
	switch s.kind {
	case specLabel:
		return c.labelMisfit(o)
	case specInteger:
		return s.integerMisfit(o)
	case specMemory:
		return c.addressMisfit(i, s, o)
	case specPack:
		return c.packMisfit(i, s, o)
	case specValue, specCall:
	}
	count := s.elements(i)
	if count == 0 && s.vector && o.Kind == OperandVector && len(o.Elements) == 1 { // Triton writes so
		return c.valueMisfit(i, s, &o.Elements[0])
	}
	if count == 0 {
		return c.valueMisfit(i, s, o)
	}
	if o.Kind != OperandVector || len(o.Elements) != count {
		return fmt.Sprintf("is no vector of %d", count)
	}
	if wrong := elementsMisfit(s, o); wrong != "" {
		return wrong
	}
	for n := range o.Elements {
		if o.Elements[n].Kind == OperandSink && s.result && s.vector {
			continue
		}
		if wrong := c.valueMisfit(i, s, &o.Elements[n]); wrong != "" {
			return fmt.Sprintf("element %d, %v, %s", n+1, o.Elements[n], wrong)
		}
	}
	return ""
}

// typeIn returns the type that the operand has in the instruction.
func (s *operandSpec) typeIn(i *Instruction) Type {
	t := s.typ
	if s.place > 0 {
		t = i.Type(s.place - 1)
	}
	if s.twice {
		return map[Type]Type{U16: U32, U32: U64, S16: S32, S32: S64}[t]
	}
	return t
}

// valueMisfit is about one register or constant.
func (c *visible) valueMisfit(i *Instruction, s *operandSpec, o *Operand) string {
	t := s.typeIn(i)
	switch {
	case o.Kind == OperandRegister:
		return c.registerMisfit(s, t, o)
	case o.Kind == OperandName:
		return "is not declared"
	case o.Kind == OperandPair && s.paired && len(o.Elements) == 2:
		first := *s
		first.sink = i.Op == OpSetp
		if wrong := c.valueMisfit(i, &first, &o.Elements[0]); wrong != "" {
			return wrong
		}
		return c.valueMisfit(i, &operandSpec{result: true, typ: Pred, sink: i.Op == OpSetp}, &o.Elements[1])
	case o.Kind == OperandSink && s.sink:
		return ""
	case s.result:
		return "is no register, and a result needs one"
	case s.count > 0 || s.columns:
		return "is no register, and matrices stand in registers"
	case o.Kind == OperandSpecial && o.Special == WarpSize:
		if !t.IsInteger() && t.Class() != Untyped {
			return fmt.Sprintf("is a whole number, which is no .%v", t)
		}
		return s.limits.misfit(i, &Operand{Kind: OperandInteger, Value: warpThreads})
	case o.Kind == OperandSpecial:
		return specialMisfit(i, s, t, o)
	case s.address && (o.Kind == OperandVariable || o.Kind == OperandFunction):
		return c.variableMisfit(i, t, o)
	case t == Pred && o.Kind == OperandInteger && i.isBrain():
		return "is no register"
	case t == Pred && o.Kind == OperandInteger: // true, but for 0
		return ""
	}
	if wrong := constantMisfit(t, o); wrong != "" {
		return wrong
	}
	return s.limits.misfit(i, o)
}

// isBrain reports whether an instruction compares numbers of bfloat16.
func (i *Instruction) isBrain() bool {
	return (i.Op == OpSet || i.Op == OpSetp) && (slices.Contains(i.Types, BF16) || slices.Contains(i.Types, BF16x2))
}

// warpThreads is the value of WARP_SZ.
const warpThreads = 32

// elementsMisfit says how the elements of a vector do not go together, or "".
func elementsMisfit(s *operandSpec, o *Operand) string {
	bits := 0
	for n := range o.Elements {
		r := o.Elements[n].Register
		if r == nil {
			continue
		}
		if bits > 0 && bits != r.Type.Bits() {
			return "has registers of different widths"
		}
		bits = r.Type.Bits()
	}
	if s.result && !slices.ContainsFunc(o.Elements, func(e Operand) bool { return e.Kind != OperandSink }) {
		return "drops all of its elements"
	}
	return ""
}

func (c *visible) registerMisfit(s *operandSpec, t Type, o *Operand) string {
	r := o.Register
	switch {
	case !c.owns(r):
		return "is no register of the function"
	case o.Negated && !s.negatable:
		return "is negated"
	case !fits(t, r.Type, s.wider):
		return fmt.Sprintf("is a register of .%v, which is no .%v", r.Type, t)
	}
	return ""
}

// predicateMisfit is about the guard of an instruction.
func (c *visible) predicateMisfit(o *Operand) string {
	switch {
	case o.Kind == OperandName:
		return "is not declared"
	case o.Kind != OperandRegister || !c.owns(o.Register) || o.Register.Type != Pred:
		return "is no predicate"
	}
	return ""
}

func specialMisfit(i *Instruction, s *operandSpec, t Type, o *Operand) string {
	short := t.Bits() < o.Special.Type().Bits() && (o.Special == Gridid || t.Bits() == 16) //nolint:mnd // mov cuts these
	switch {
	case !s.address && (i.Op != OpCvt || !i.Type(0).IsInteger()):
		return "is a special register, which only mov and cvt to an integer read"
	case short && s.address && (t.IsInteger() || t.Class() == Untyped):
	case !fits(t, o.Special.Type(), false):
		return fmt.Sprintf("is a special register of .%v, which is no .%v", o.Special.Type(), t)
	}
	return ""
}

// variableMisfit is about the address of a variable or a function as a value.
func (c *visible) variableMisfit(i *Instruction, t Type, o *Operand) string {
	switch {
	case o.Kind == OperandVariable && !c.variables[o.Variable]:
		return "is no variable of the module or the function"
	case o.Generic:
		return "is a generic address, which only an initial value has"
	case o.Kind == OperandVariable && c.isLater(o.Variable):
		return "is declared further down"
	case o.Kind == OperandFunction && i.Pos != Pos{} && !c.declaredBefore(o.Name, i.Pos):
		return "is declared further down"
	}
	isShort := o.Variable != nil && (o.Variable.Space == Shared || o.Variable.Space == Local)
	if t.Bits() != 64 && (t.Bits() != 32 || !isShort) || t.Class() == Float {
		return fmt.Sprintf("is an address, which is no .%v", t)
	}
	if i.Op == OpCvta && o.Variable != nil && o.Variable.Space != i.Space() {
		return fmt.Sprintf("is in the space .%v", o.Variable.Space)
	}
	return ""
}

// constantMisfit says how a number does not fit a type, or "".
func constantMisfit(t Type, o *Operand) string {
	switch {
	case o.Kind == OperandInteger && (t.IsInteger() || t.Class() == Untyped):
		return rangeMisfit(t, int64(o.Value)) // in two's complement
	case o.Kind == OperandInteger && t.Class() == Float && t.Bits() >= 32 && t.Lanes() == 1:
		return "is an integer: floating-point numbers have a point, or the prefix 0f or 0d"
	case o.Kind == OperandFloat32 && (t == F32 || t == B32):
		return ""
	case o.Kind == OperandFloat32 && t == F64:
		return ""
	case o.Kind == OperandFloat64 && (t == F32 || t == F64 || t == B64):
		return ""
	}
	return fmt.Sprintf("is no .%v", t)
}

// rangeMisfit is about an integer of either sign: -1 is also the largest unsigned one.
func rangeMisfit(t Type, value int64) string {
	if t.Bits() < 64 && (value < -1<<(t.Bits()-1) || value >= 1<<t.Bits()) {
		return fmt.Sprintf("is more than .%v holds", t)
	}
	return ""
}

func (s *operandSpec) integerMisfit(o *Operand) string {
	if o.Kind != OperandInteger {
		return "is no constant"
	}
	value := int64(o.Value) // in two's complement
	switch {
	case slices.Contains(s.members, value):
		return ""
	case s.members != nil:
		return fmt.Sprintf("is none of %v", s.members)
	case value < s.low || value > s.high:
		return fmt.Sprintf("is not in %d..%d", s.low, s.high)
	}
	return ""
}

func (c *visible) labelMisfit(o *Operand) string {
	if o.Kind != OperandLabel {
		return "is no label of this scope"
	}
	if _, ok := c.code.Targets[o.Label]; !ok {
		return "is no label of this body"
	}
	return ""
}

// packMisfit is about a vector whose elements are the parts of one value.
func (c *visible) packMisfit(i *Instruction, s *operandSpec, o *Operand) string {
	t := s.typeIn(i)
	count := len(o.Elements)
	if o.Kind != OperandVector || count < 1 || t.Bits()%count != 0 {
		return fmt.Sprintf("is no vector of the parts of .%v", t)
	}
	if wrong := elementsMisfit(s, o); wrong != "" {
		return wrong
	}
	part := &operandSpec{result: s.result, sink: s.result, typ: map[int]Type{8: B8, 16: B16, 32: B32, 64: B64}[t.Bits()/count]}
	for n := range o.Elements {
		if wrong := c.valueMisfit(i, part, &o.Elements[n]); wrong != "" {
			return fmt.Sprintf("element %d, %v, %s", n+1, o.Elements[n], wrong)
		}
	}
	return ""
}
