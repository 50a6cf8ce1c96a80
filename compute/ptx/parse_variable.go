package ptx

// variableSpace returns the space that a directive declares variables in.
func variableSpace(directive string) (Space, bool) {
	space, ok := map[string]Space{"global": Global, "shared": Shared, "local": Local, "const": Const, "param": Param}[directive]
	return space, ok
}

func isVariableSpace(t token) bool {
	_, ok := variableSpace(t.text)
	return t.kind == tokenDot && ok
}

// parseVariables reads one declaration with all its variables, up to the semicolon.
func (p *parser) parseVariables(linkage Linkage) []*Variable {
	first := p.parseVariable(linkage)
	all := []*Variable{first}
	for p.accept(",") {
		v := &Variable{
			Pos: p.tok.pos, Linkage: linkage, Space: first.Space, Align: first.Align, Vector: first.Vector, Type: first.Type,
		}
		p.parseDeclarator(v)
		all = append(all, v)
	}
	p.expect(";")
	return all
}

// parseVariable reads a declaration of one variable or parameter without the semicolon.
func (p *parser) parseVariable(linkage Linkage) *Variable {
	v := &Variable{Pos: p.tok.pos, Linkage: linkage}
	v.Space, _ = variableSpace(p.advance().text)
	for p.tok.kind == tokenDot {
		p.parseAttribute(v)
	}
	if v.Type == NoType {
		p.unexpected("a type")
	}
	p.parseDeclarator(v)
	return v
}

// parseAttribute reads .align, .ptr, .v2, .v4 or a type.
func (p *parser) parseAttribute(v *Variable) {
	t, isType := typeByName[p.tok.text]
	switch {
	case p.acceptDot("align"):
		v.Align = p.expectAlignment()
	case p.acceptDot("ptr"):
		v.Pointer = &Pointer{}
		if isVariableSpace(p.tok) {
			v.Pointer.Space, _ = variableSpace(p.advance().text)
		}
		if p.acceptDot("align") {
			v.Pointer.Align = p.expectAlignment()
		}
	case p.acceptDot("v2"):
		v.Vector = 2
	case p.acceptDot("v4"):
		v.Vector = 4
	case isType && v.Type == NoType:
		p.advance()
		v.Type = t
	default:
		p.unexpectedDirective()
	}
}

// expectAlignment passes a number of bytes, which is not 0.
func (p *parser) expectAlignment() int {
	pos := p.tok.pos
	bytes := p.expectCount("an alignment")
	if bytes == 0 {
		p.failAt(pos, "an alignment of 0 bytes")
	}
	return bytes
}

// parseDeclarator reads a name with dimensions and an initialiser.
func (p *parser) parseDeclarator(v *Variable) {
	v.Name = p.expectName("a variable's name")
	for p.accept("[") {
		if p.accept("]") {
			v.Dims = append(v.Dims, Unsized)
			continue
		}
		v.Dims = append(v.Dims, p.expectCount("a number of elements"))
		p.expect("]")
	}
	if p.accept("=") {
		value := p.parseInitialiser()
		v.Init = &value
		v.Init.each(p.resolveLater)
	}
	p.scope.declareVariable(v)
}

// parseInitialiser reads a value or values between braces, which may nest.
func (p *parser) parseInitialiser() (value Operand) {
	if !p.accept("{") {
		return p.parseValue()
	}
	value.Kind = OperandVector
	p.nested(func() {
		if !p.isMark("}") {
			p.list(func() { value.Elements = append(value.Elements, p.parseInitialiser()) })
		}
	})
	p.expect("}")
	return value
}
