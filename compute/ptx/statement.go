package ptx

import (
	"slices"
	"strings"
)

// Statement is a part of a body: *Block, *RegisterDeclaration, *Variable, *Label, *Location, *Pragma or *Instruction.
type Statement interface{ isStatement() }

func (*Block) isStatement()               {}
func (*RegisterDeclaration) isStatement() {}
func (*Variable) isStatement()            {}
func (*Label) isStatement()               {}
func (*Location) isStatement()            {}
func (*Pragma) isStatement()              {}
func (*Instruction) isStatement()         {}

// Block is a scope: names that are declared inside are not seen outside.
type Block struct {
	Pos        Pos
	Statements []Statement
}

// RegisterDeclaration is one .reg directive.
type RegisterDeclaration struct {
	Pos    Pos
	Type   Type
	Ranges []RegisterRange
}

// RegisterRange is a name of a .reg directive: one register, or as many as Count says, numbered from 0.
type RegisterRange struct {
	Name  string
	Count int // 0 of one register without a number
}

// Register is a declared register that a body uses.
type Register struct {
	Name  string
	Type  Type
	Index int // in Function.Registers
}

// Label is a place that branches go to.
type Label struct {
	Pos  Pos
	Name string
}

// Location is a .loc directive: the place in the source language of the instructions after it.
type Location struct {
	Pos                Pos
	File, Line, Column int
}

// Pragma is a hint to the compiler of the driver.
type Pragma struct {
	Pos  Pos
	Text string
}

// Instruction is an operation on registers and memory.
type Instruction struct {
	Pos      Pos
	Source   *Location  // the .loc in force, or nil
	Guard    Operand    // a predicate register, Negated or not; OperandNone without a guard
	Op       Opcode     // UnknownOp where the parser knows the name by its text alone
	Mods     []Modifier // in the order of the text
	Types    []Type     // in the order of the text
	Name     string     // of an UnknownOp: the opcode with everything after it
	Operands []Operand
}

// Has reports whether the name has the modifier.
func (i *Instruction) Has(m Modifier) bool {
	if i == nil {
		return false
	}
	return slices.Contains(i.Mods, m)
}

// Mod returns the first modifier of a kind, or NoModifier.
func (i *Instruction) Mod(kind ModifierKind) Modifier {
	if i == nil {
		return NoModifier
	}
	for _, m := range i.Mods {
		if m.Kind() == kind {
			return m
		}
	}
	return NoModifier
}

// Type returns the n-th type of the name, counted from 0, or NoType.
func (i *Instruction) Type(n int) Type {
	if i == nil {
		return NoType
	}
	if n < 0 || n >= len(i.Types) {
		return NoType
	}
	return i.Types[n]
}

// Space returns the first state space that the name has, else Generic.
func (i *Instruction) Space() Space { return spaceOf(i.Mod(KindSpace)) }

// Vector returns the number of elements: 2 or 4 of .v2 and .v4, else 1.
func (i *Instruction) Vector() int {
	switch {
	case i.Has(ModV2):
		return 2
	case i.Has(ModV4):
		return 4
	}
	return 1
}

// name returns the opcode with its modifiers and types, as the text has them.
func (i *Instruction) name() string {
	if i.Op == UnknownOp {
		return i.Name
	}
	var b strings.Builder
	b.WriteString(i.Op.String())
	part := func(name string) {
		b.WriteByte('.')
		b.WriteString(name)
	}
	for _, m := range i.Mods {
		if m.Kind() != KindPermute {
			part(m.String())
		}
	}
	for _, t := range i.Types {
		part(t.String())
	}
	for _, m := range i.Mods {
		if m.Kind() == KindPermute {
			part(m.String())
		}
	}
	return b.String()
}

// spaceOf returns the space that a modifier names.
func spaceOf(m Modifier) Space {
	if m.Kind() != KindSpace {
		return Generic
	}
	return [...]Space{ModGlobal: Global, ModShared: Shared, ModSharedCTA: Shared, ModSharedCluster: Shared, ModLocal: Local, ModConst: Const, ModParam: Param}[m]
}
