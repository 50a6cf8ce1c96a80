package ptx

import (
	"math"
	"strconv"
	"strings"
)

// parseOperand reads one operand; names in it are resolved later.
func (p *parser) parseOperand() (o Operand) {
	switch {
	case p.isMark("["):
		return p.parseAddress()
	case p.isMark("{"):
		return p.parseGroup(OperandVector, "}")
	case p.isMark("("):
		return p.parseGroup(OperandList, ")")
	case p.accept("!"):
		return Operand{Kind: OperandName, Negated: true, Name: p.expectName("a predicate")}
	}
	o = p.parseValue()
	if !p.accept("|") {
		return o
	}
	return Operand{Kind: OperandPair, Elements: []Operand{o, p.parseValue()}}
}

// parseGroup reads operands between braces or parentheses.
func (p *parser) parseGroup(kind OperandKind, end string) Operand {
	o := Operand{Kind: kind}
	p.advance()
	p.nested(func() {
		if !p.isMark(end) {
			p.list(func() { o.Elements = append(o.Elements, p.parseOperand()) })
		}
	})
	p.expect(end)
	return o
}

// parseAddress reads [base], [base+offset] or [number], and coordinates after a comma, or a sampler and coordinates.
func (p *parser) parseAddress() Operand {
	o := Operand{Kind: OperandAddress}
	p.expect("[")
	if p.tok.kind == tokenName {
		o.Name = p.advance().text
		o.Offset = p.parseAddend()
	} else {
		o.Offset = p.parseOffset()
	}
	if p.accept(",") {
		p.nested(func() {
			p.list(func() { o.Elements = append(o.Elements, p.parseOperand()) })
		})
	}
	p.expect("]")
	return o
}

// parseOffset reads a number with or without a minus.
func (p *parser) parseOffset() int64 {
	negative := p.accept("-")
	if p.tok.kind != tokenNumber {
		p.unexpected("an offset")
		return 0
	}
	value, ok := parseInteger(p.tok.text)
	if !ok || value > math.MaxInt64 {
		p.unexpected("an offset")
		return 0
	}
	p.advance()
	if negative {
		return -int64(value) // not above MaxInt64
	}
	return int64(value) // not above MaxInt64
}

// parseValue reads a number, a name, a special register or an address of a variable.
func (p *parser) parseValue() Operand {
	switch {
	case p.tok.kind == tokenNumber || p.isMark("-") || p.isMark("+"):
		return p.parseNumber()
	case p.tok.kind == tokenName:
		return p.parseName()
	}
	p.unexpected("an operand")
	return Operand{}
}

// parseName reads a name with its parts, and an offset where there is one.
func (p *parser) parseName() Operand {
	name := p.advance().text
	if name == "_" {
		return Operand{Kind: OperandSink}
	}
	if name == "generic" && p.accept("(") {
		o := Operand{Kind: OperandName, Generic: true, Name: p.expectName("a variable's name")}
		p.expect(")")
		o.Offset = p.parseAddend()
		return o
	}
	for p.tok.kind == tokenDot {
		name += "." + p.advance().text
	}
	return Operand{Kind: OperandName, Name: name, Offset: p.parseAddend()}
}

// parseAddend reads the offset after a name, or nothing. PTX has no difference: a sum with a negative number is +-8.
func (p *parser) parseAddend() int64 {
	if p.isMark("-") {
		p.fail("an address has no difference: a negative offset is written +-8")
		return 0
	}
	if p.accept("+") {
		return p.parseOffset()
	}
	return 0
}

// parseNumber reads an integer or a floating-point number with a sign.
func (p *parser) parseNumber() Operand {
	negative := p.isMark("-")
	if negative || p.isMark("+") {
		p.advance()
	}
	o, ok := numberOperand(p.tok.text)
	if p.tok.kind != tokenNumber || !ok {
		p.unexpected("a number")
		return Operand{}
	}
	p.advance()
	if negative {
		o.negate()
	}
	return o
}

func (o *Operand) negate() {
	switch o.Kind { //nolint:exhaustive // numbers only
	case OperandInteger:
		o.Value = -o.Value
	case OperandFloat32:
		o.Value ^= 1 << 31
	case OperandFloat64:
		o.Value ^= 1 << 63
	}
}

// numberOperand returns the number that a text stands for.
func numberOperand(text string) (Operand, bool) {
	if bits, ok := cutEither(text, "0f", "0F"); ok {
		value, err := strconv.ParseUint(bits, 16, 32)
		return Operand{Kind: OperandFloat32, Value: value}, err == nil && len(bits) == 8
	}
	if bits, ok := cutEither(text, "0d", "0D"); ok {
		value, err := strconv.ParseUint(bits, 16, 64)
		return Operand{Kind: OperandFloat64, Value: value}, err == nil && len(bits) == 16
	}
	if value, ok := parseInteger(text); ok {
		return Operand{Kind: OperandInteger, Value: value}, true
	}
	if isLettered(text) || strings.Contains(text, "_") {
		return Operand{}, false
	}
	value, err := strconv.ParseFloat(text, 64)
	return Float64(value), err == nil
}

// parseInteger parses a decimal, hexadecimal, octal or binary integer with or without the suffix U.
func parseInteger(text string) (uint64, bool) {
	text = strings.TrimSuffix(text, "U")
	base := 10
	if digits, ok := cutEither(text, "0x", "0X"); ok {
		text, base = digits, 16
	} else if digits, ok := cutEither(text, "0b", "0B"); ok {
		text, base = digits, 2
	} else if len(text) > 1 && text[0] == '0' {
		text, base = text[1:], 8
	}
	value, err := strconv.ParseUint(text, base, 64)
	return value, err == nil
}

// cutEither returns the text without the one prefix or the other.
func cutEither(text, lower, upper string) (string, bool) {
	if rest, ok := strings.CutPrefix(text, lower); ok {
		return rest, true
	}
	return strings.CutPrefix(text, upper)
}
