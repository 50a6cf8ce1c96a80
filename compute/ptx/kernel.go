package ptx

import (
	"fmt"
	"runtime"
	"strings"
)

// Kernel builds an .entry: Let and Do add instructions by the names that PTX has for them, other methods add several
// instructions at once. No method fails: Build reports each mistake with the line of the caller that made it.
type Kernel struct {
	name       string
	begun      place
	params     []*Variable
	directives []Directive
	variables  []*Variable // in shared or local memory
	statements []Statement
	counts     map[Type]int // of registers
	registers  []*Register
	labels     int
	forms      *formTable // of instructions, whose results need registers
	places     map[*Instruction]place
	mistakes   []error
}

// NewKernel begins a kernel without parameters and instructions.
func NewKernel(name string) *Kernel {
	k := &Kernel{name: name, begun: callerPlace()}
	k.usable()
	return k
}

// usable makes the maps of a zero Kernel. It reports false for nil, to which nothing is added.
func (k *Kernel) usable() bool {
	if k == nil {
		return false
	}
	if k.counts == nil {
		k.counts = map[Type]int{}
		k.forms = newChecker(&Module{}).forms
		k.places = map[*Instruction]place{}
	}
	return true
}

// Reg returns a new register for values of a type. It is declared without a sign, as the instructions have one.
func (k *Kernel) Reg(t Type) Operand {
	if !k.usable() {
		return Operand{}
	}
	t, prefix := registerOf(t)
	r := &Register{Name: fmt.Sprintf("%s%d", prefix, k.counts[t]), Type: t, Index: len(k.registers)}
	k.counts[t]++
	k.registers = append(k.registers, r)
	return Reg(r)
}

// registerTypes are the types of registers that a kernel declares, with the prefixes of their names.
//
//nolint:gochecknoglobals // constant table of registers
var registerTypes = []struct {
	typ    Type
	prefix string
}{{Pred, "%p"}, {B16, "%h"}, {B32, "%r"}, {B64, "%rd"}, {F32, "%f"}, {F64, "%d"}}

// registerOf returns the type of registers that hold values of a type.
func registerOf(t Type) (Type, string) {
	for _, r := range registerTypes {
		if t == r.typ || t.Class() != Predicate && r.typ.Class() == Untyped && t != F32 && t != F64 && t.Bits() <= r.typ.Bits() {
			return r.typ, r.prefix
		}
	}
	return B64, "%rd"
}

// Do adds an instruction: its name as PTX has it, and its operands.
func (k *Kernel) Do(name string, operands ...Operand) { k.add(Operand{}, name, operands) }

// DoIf adds an instruction that runs where the predicate holds; Not turns it round.
func (k *Kernel) DoIf(predicate Operand, name string, operands ...Operand) {
	k.add(predicate, name, operands)
}

// Let adds an instruction with new registers for its result in front of the operands, and returns the result: a register, or a
// vector of them.
func (k *Kernel) Let(name string, operands ...Operand) Operand {
	result := k.resultOf(name, len(operands)+1)
	k.add(Operand{}, name, append([]Operand{result}, operands...))
	return result
}

// Set copies a value into a register: mov.
func (k *Kernel) Set(t Type, register, value Operand) {
	k.Do("mov."+moved(t).String(), register, value)
}

// Not returns the predicate turned round, for guards and Boolean operands.
func Not(predicate Operand) Operand {
	predicate.Negated = !predicate.Negated
	return predicate
}

// add appends an instruction. Its operands are copied, so that the caller may reuse its own.
func (k *Kernel) add(guard Operand, name string, operands []Operand) {
	if !k.usable() {
		return
	}
	i := &Instruction{Guard: copied(guard), Operands: copies(operands)}
	i.setName(strings.Split(name, "."))
	k.statements = append(k.statements, i)
	k.places[i] = callerPlace()
}

// resultOf are new registers for the result of an instruction with so many operands. An instruction without a form gets one
// register, and Build reports it.
func (k *Kernel) resultOf(name string, count int) Operand {
	if !k.usable() {
		return Operand{}
	}
	i := &Instruction{}
	i.setName(strings.Split(name, "."))
	if i.Op == UnknownOp {
		return k.Reg(B32)
	}
	for _, f := range k.forms.formsOf(i.Op) {
		if !f.matches(i) || !f.takes(count) || len(f.operands) == 0 || !f.operands[0].result || f.operands[0].kind != specValue {
			continue
		}
		s := &f.operands[0]
		elements := s.elements(i)
		if elements == 0 {
			return k.Reg(s.typeIn(i))
		}
		v := Operand{Kind: OperandVector}
		for range elements {
			v.Elements = append(v.Elements, k.Reg(s.typeIn(i)))
		}
		return v
	}
	return k.Reg(B32)
}

// mistake notes a mistake that is not about one instruction.
func (k *Kernel) mistake(format string, args ...any) {
	if !k.usable() {
		return
	}
	at := callerPlace()
	k.mistakes = append(k.mistakes, &CheckError{File: at.file, Line: at.line, Function: k.name, Message: fmt.Sprintf(format, args...)})
}

// callerPlace returns the line that called into this package's Kernel.
func callerPlace() place {
	var counters [32]uintptr
	frames := runtime.CallersFrames(counters[:runtime.Callers(2, counters[:])])
	for {
		frame, more := frames.Next()
		if !strings.Contains(frame.Function, "/ptx.(*Kernel).") && !strings.HasSuffix(frame.Function, "/ptx.NewKernel") || !more {
			return place{frame.File, frame.Line}
		}
	}
}

// moved returns the type that ld, st and mov have for values of a type: bits, if they have 16 bits or are packed.
func moved(t Type) Type {
	switch {
	case t.Class() != Float || t == F32 || t == F64:
		return t
	case t.Bits() == 16:
		return B16
	}
	return B32
}
