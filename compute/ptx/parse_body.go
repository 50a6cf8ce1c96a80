package ptx

import (
	"slices"
	"strings"
)

// parseBlock reads statements between braces.
func (p *parser) parseBlock() *Block {
	b := &Block{Pos: p.tok.pos, Statements: []Statement{}}
	p.expect("{")
	p.openScope()
	p.nested(func() {
		for !p.isMark("}") && !p.isEnd() {
			b.Statements = p.parseStatement(b.Statements)
		}
	})
	p.closeScope()
	p.expect("}")
	return b
}

// parseStatement reads one statement and appends it; a declaration of several variables is several.
func (p *parser) parseStatement(to []Statement) []Statement {
	switch {
	case p.isMark("{"):
		return append(to, p.parseBlock())
	case p.isMark("@"):
		return append(to, p.parseInstruction())
	case p.tok.kind == tokenName:
		return p.parseNamed(to)
	case p.tok.kind == tokenDot:
		return append(to, p.parseDirectiveStatement()...)
	}
	p.unexpected("a statement")
	return to
}

// parseNamed reads a label or an instruction without a guard.
func (p *parser) parseNamed(to []Statement) []Statement {
	name := p.advance()
	if !p.accept(":") {
		return append(to, p.parseInstructionNamed(name, Operand{}))
	}
	label := &Label{Pos: name.pos, Name: name.text}
	p.scope.declareLabel(label)
	if p.isDot("callprototype") || p.isDot("branchtargets") || p.isDot("calltargets") {
		return append(to, label, p.parseUnknown())
	}
	return append(to, label)
}

// parseUnknown keeps a directive that stands for a table of targets, or a prototype, as an unknown instruction: its
// words up to the semicolon.
func (p *parser) parseUnknown() *Instruction {
	i := &Instruction{Pos: p.tok.pos, Source: p.source}
	var words []string
	for !p.isMark(";") && !p.isEnd() {
		words = append(words, p.advance().source())
	}
	i.Name = strings.Join(words, " ")
	p.expect(";")
	return i
}

func (p *parser) parseDirectiveStatement() []Statement {
	switch {
	case p.isDot("reg"):
		return []Statement{p.parseRegisters()}
	case p.isDot("loc"):
		p.source = p.parseLocation()
		return []Statement{p.source}
	case p.isDot("pragma"):
		return []Statement{p.parsePragma()}
	case isVariableSpace(p.tok):
		var statements []Statement
		for _, v := range p.parseVariables(Internal) {
			statements = append(statements, v)
		}
		return statements
	}
	p.unexpectedDirective()
	return nil
}

// parseRegisters reads .reg .type name, name<count>; with the semicolon.
func (p *parser) parseRegisters() *RegisterDeclaration {
	d := &RegisterDeclaration{Pos: p.advance().pos}
	t, ok := typeByName[p.tok.text]
	if p.tok.kind != tokenDot || !ok {
		p.unexpected("a type of registers")
		return d
	}
	p.advance()
	d.Type = t
	p.list(func() {
		r := RegisterRange{Name: p.expectName("a register's name")}
		if p.accept("<") {
			r.Count = p.expectCount("a number of registers")
			if r.Count == 0 {
				p.fail("a range of no registers")
			}
			p.expect(">")
		}
		d.Ranges = append(d.Ranges, r)
		p.scope.declareRegisters(r, t)
	})
	p.expect(";")
	return d
}

// parseLocation reads .loc file line column, with the call that was inlined, which nobody keeps.
func (p *parser) parseLocation() *Location {
	loc := &Location{Pos: p.advance().pos}
	loc.File = p.expectCount("a file's index")
	loc.Line = p.expectCount("a line")
	loc.Column = p.expectCount("a column")
	for p.accept(",") {
		p.expectName("an attribute of .loc")
		for p.tok.kind == tokenNumber || p.tok.kind == tokenName && strings.HasPrefix(p.tok.text, "$") || p.isMark("+") {
			p.advance()
		}
	}
	return loc
}

// parseInstruction reads a guard and the instruction after it.
func (p *parser) parseInstruction() *Instruction {
	p.expect("@")
	guard := Operand{Kind: OperandName, Negated: p.accept("!"), Name: p.expectName("a predicate")}
	if p.tok.kind != tokenName {
		p.unexpected("an instruction")
		return &Instruction{}
	}
	return p.parseInstructionNamed(p.advance(), guard)
}

// parseInstructionNamed reads an instruction after the first part of its name.
func (p *parser) parseInstructionNamed(name token, guard Operand) *Instruction {
	i := &Instruction{Pos: name.pos, Source: p.source, Guard: guard}
	p.parts = append(p.parts[:0], name.text)
	for p.tok.kind == tokenDot {
		p.parts = append(p.parts, p.advance().text)
	}
	p.setName(i)
	if i.Op == UnknownOp {
		p.parseUnknownOperands(i)
	} else if !p.isMark(";") {
		i.Operands = p.parseOperands()
	}
	p.expect(";")
	p.resolve(&i.Guard)
	for n := range i.Operands {
		i.Operands[n].each(p.resolver)
	}
	return i
}

// parseUnknownOperands reads the operands of an instruction that is not known. Where they are of no known form its name
// keeps their words, up to the semicolon.
func (p *parser) parseUnknownOperands(i *Instruction) {
	if p.isMark(";") || p.failure != nil {
		return
	}
	lexer, tok, first := *p.lexer, p.tok, len(p.operands)
	if i.Operands = p.parseOperands(); p.isMark(";") {
		return
	}
	*p.lexer, p.tok, p.failure, p.operands, i.Operands = lexer, tok, nil, p.operands[:first], nil
	words := []string{i.Name}
	for open := 0; !p.isMark(";") && !p.isEnd() && (open > 0 || !p.isMark("}")); {
		switch {
		case p.isMark("{"):
			open++
		case p.isMark("}"):
			open--
		}
		words = append(words, p.advance().source())
	}
	i.Name = strings.Join(words, " ")
}

// parseOperands reads operands between commas: the slice has no room for more.
func (p *parser) parseOperands() []Operand {
	first := len(p.operands)
	p.list(func() {
		o := p.parseOperand() // which may use the stack itself
		p.operands = append(p.operands, o)
	})
	operands := slices.Clone(p.operands[first:])
	clear(p.operands[first:])
	p.operands = p.operands[:first]
	return slices.Clip(operands)
}

// setName gives an instruction the name whose parts were read. Few names are many: each is split once.
func (p *parser) setName(i *Instruction) {
	p.whole = p.whole[:0]
	for _, part := range p.parts {
		p.whole = append(append(p.whole, part...), '.')
	}
	known := p.names[string(p.whole)]
	if known == nil {
		known = &Instruction{}
		known.setName(slices.Clone(p.parts))
		if p.names == nil {
			p.names = map[string]*Instruction{}
		}
		p.names[string(p.whole)] = known
	}
	i.Op, i.Name, i.Mods, i.Types = known.Op, known.Name, slices.Clone(known.Mods), slices.Clone(known.Types)
}

// setName splits a name into opcode, modifiers and types. The driver takes modifiers and types in any order, apart from
// those that belong to the opcode. A name with a part that is not known is kept as it is.
func (i *Instruction) setName(parts []string) {
	op, rest := splitOpcode(parts)
	i.Op = op
	for n, part := range rest {
		t, isType := typeByName[part]
		m, isModifier := modifierByName[part]
		switch {
		case isType:
			i.Types = append(i.Types, t)
		case isModifier && (n == 0 || !leads(op, m)):
			i.Mods = append(i.Mods, m)
		default:
			i.Op = UnknownOp
		}
	}
	if i.Op == UnknownOp {
		i.Name, i.Mods, i.Types = strings.Join(parts, "."), nil, nil
	}
}

// leads reports whether a modifier follows the opcode at once, as if it were a part of it.
func leads(op Opcode, m Modifier) bool {
	switch op { //nolint:exhaustive // those that have such modifiers
	case OpMul, OpMad, OpMadc:
		return m == ModLo || m == ModHi || m == ModWide
	case OpShf:
		return m == ModL || m == ModR
	case OpCvta:
		return m == ModTo
	}
	return false
}
