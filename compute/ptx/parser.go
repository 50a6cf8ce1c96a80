package ptx

import "fmt"

// maxDepth is the number of braces that may be open at once: more than a compiler writes, and few enough that the parser, which
// calls itself for each, has the stack.
const maxDepth = 200

// Parse reads a module. The error is a *SyntaxError at the first place that is not understood. Instructions that this
// package does not know are kept by their text: Check reports them.
func Parse(text string) (*Module, error) {
	p := &parser{lexer: newLexer(text), module: &Module{}, scope: newScope(nil)}
	p.resolver = p.resolve
	p.advance()
	p.parseModule()
	if p.failure != nil {
		return nil, p.failure
	}
	return p.module, nil
}

// parser reads tokens one ahead. After a failure the current token is the end of the text and stays so: each loop over
// tokens ends there, and no step has to ask for failures. It has a method for each rule of the grammar.
type parser struct {
	lexer   *lexer
	tok     token
	failure *SyntaxError
	depth   int

	module   *Module
	function *Function // whose body is read, or nil
	scope    *scope
	source   *Location // the last .loc of the function

	parts    []string                // of the name that is read
	whole    []byte                  // the parts, each followed by a dot
	resolver func(*Operand)          // resolve
	operands []Operand               // a stack of those that are read
	names    map[string]*Instruction // those that were split
}

// advance goes to the next token and returns the one that was current.
func (p *parser) advance() token {
	old := p.tok
	if p.failure != nil {
		return old
	}
	p.tok = p.lexer.next()
	if p.tok.kind == tokenWrong {
		p.failAt(p.tok.pos, "unexpected %s", p.tok.text)
	}
	return old
}

func (p *parser) fail(format string, args ...any) { p.failAt(p.tok.pos, format, args...) }

func (p *parser) failAt(pos Pos, format string, args ...any) {
	if p.failure == nil {
		p.failure = &SyntaxError{pos, fmt.Sprintf(format, args...)}
	}
	p.tok = token{kind: tokenEnd, pos: pos}
}

// unexpected fails with the current token and the wanted thing.
func (p *parser) unexpected(wanted string) {
	if p.tok.kind == tokenEnd {
		p.fail("the text ends where %s is expected", wanted)
		return
	}
	p.fail("%s where %s is expected", p.tok.describe(), wanted)
}

func (t token) describe() string {
	if t.kind == tokenDot {
		return quote("." + t.text)
	}
	return quote(t.text)
}

// source is the token as a text has it.
func (t token) source() string {
	switch t.kind { //nolint:exhaustive // others are their text
	case tokenDot:
		return "." + t.text
	case tokenString:
		return `"` + t.text + `"`
	}
	return t.text
}

func (p *parser) isMark(mark string) bool { return p.tok.kind == tokenMark && p.tok.text == mark }
func (p *parser) isDot(directive string) bool {
	return p.tok.kind == tokenDot && p.tok.text == directive
}
func (p *parser) isEnd() bool { return p.tok.kind == tokenEnd }

// accept passes the mark if it is the current token.
func (p *parser) accept(mark string) bool {
	if !p.isMark(mark) {
		return false
	}
	p.advance()
	return true
}

// acceptDot passes the directive if it is the current token.
func (p *parser) acceptDot(directive string) bool {
	if !p.isDot(directive) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(mark string) {
	if !p.accept(mark) {
		p.unexpected(quote(mark))
	}
}

// expectName passes a name.
func (p *parser) expectName(wanted string) string {
	if p.tok.kind != tokenName {
		p.unexpected(wanted)
		return ""
	}
	return p.advance().text
}

// expectString passes a string between quotes.
func (p *parser) expectString() string {
	if p.tok.kind != tokenString {
		p.unexpected("a string")
		return ""
	}
	return p.advance().text
}

// expectCount passes an integer without a sign that fits an int of 32 bits.
func (p *parser) expectCount(wanted string) int {
	if p.tok.kind != tokenNumber {
		p.unexpected(wanted)
		return 0
	}
	value, ok := parseInteger(p.tok.text)
	if !ok || value > 1<<31-1 {
		p.unexpected(wanted)
		return 0
	}
	p.advance()
	return int(value)
}

// list reads items between commas, at least one.
func (p *parser) list(item func()) {
	for {
		item()
		if !p.accept(",") {
			return
		}
	}
}

// nested runs a step that may come back here, if the text is not too deep.
func (p *parser) nested(step func()) {
	if p.depth == maxDepth {
		p.fail("more than %d braces are open", maxDepth)
		return
	}
	p.depth++
	step()
	p.depth--
}
