package ptx

import "strings"

// parseBlock reads statements between braces.
func (p *parser) parseBlock() *Block {
	b := &Block{Pos: p.tok.pos, Statements: []Statement{}}
	p.expect("{")
	p.openScope()
	p.nested(func() {
		for !p.isMark("}") && !p.isEnd() {
			b.Statements = append(b.Statements, p.parseStatement()...)
		}
	})
	p.closeScope()
	p.expect("}")
	return b
}

// parseStatement reads one statement; a declaration of several variables is several.
func (p *parser) parseStatement() []Statement {
	switch {
	case p.isMark("{"):
		return []Statement{p.parseBlock()}
	case p.isMark("@"):
		return []Statement{p.parseInstruction()}
	case p.tok.kind == tokenName:
		return p.parseNamed()
	case p.tok.kind == tokenDot:
		return p.parseDirectiveStatement()
	}
	p.unexpected("a statement")
	return nil
}

// parseNamed reads a label or an instruction without a guard.
func (p *parser) parseNamed() []Statement {
	name := p.advance()
	if !p.accept(":") {
		return []Statement{p.parseInstructionNamed(name, Operand{})}
	}
	label := &Label{Pos: name.pos, Name: name.text}
	p.scope.declareLabel(label)
	if p.isDot("callprototype") || p.isDot("branchtargets") || p.isDot("calltargets") {
		return []Statement{label, p.parseUnknown()}
	}
	return []Statement{label}
}

// parseUnknown keeps a directive that stands for a table of targets, or a prototype, as an unknown instruction: its words up to the
// semicolon.
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

// parseInstruction reads a guard and the instruction behind it.
func (p *parser) parseInstruction() *Instruction {
	p.expect("@")
	guard := Operand{Kind: OperandName, Negated: p.accept("!"), Name: p.expectName("a predicate")}
	if p.tok.kind != tokenName {
		p.unexpected("an instruction")
		return &Instruction{}
	}
	return p.parseInstructionNamed(p.advance(), guard)
}

// parseInstructionNamed reads an instruction behind the first part of its name.
func (p *parser) parseInstructionNamed(name token, guard Operand) *Instruction {
	i := &Instruction{Pos: name.pos, Source: p.source, Guard: guard}
	parts := []string{name.text}
	for p.tok.kind == tokenDot {
		parts = append(parts, p.advance().text)
	}
	i.setName(parts)
	if !p.isMark(";") {
		p.list(func() { i.Operands = append(i.Operands, p.parseOperand()) })
	}
	p.expect(";")
	p.resolve(&i.Guard)
	for n := range i.Operands {
		i.Operands[n].each(p.resolve)
	}
	return i
}

// setName splits a name into opcode, modifiers and types. The driver takes modifiers and types in any order, apart from those that
// belong to the opcode. A name with a part that is not known is kept as it is.
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

// leads reports whether a modifier stands right behind the opcode, as if it were a part of it.
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
