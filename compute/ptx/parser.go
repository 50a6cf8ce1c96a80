package ptx

import "fmt"

// maxDepth is the number of braces that may be open at once: more than a compiler writes, and few enough that the parser, which
// calls itself for each, has the stack.
const maxDepth = 200

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

// source returns the token as a text has it.
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

// unexpectedDirective fails with a directive's name.
func (p *parser) unexpectedDirective() {
	if p.tok.kind == tokenDot {
		p.fail("directive .%s is not supported here", p.tok.text)
		return
	}
	p.unexpected("a directive")
}

func (p *parser) parsePragma() *Pragma {
	pragma := &Pragma{Pos: p.advance().pos, Text: p.expectString()}
	p.expect(";")
	return pragma
}

// scope has the names that are declared between two braces. Registers and variables stand before their uses; labels and
// functions may come later, so that operands wait for them in pending.
type scope struct {
	outer     *scope
	registers map[string]declared // by name, or by prefix and "<" of a range
	variables map[string]*Variable
	labels    map[string]*Label
	pending   []*Operand
}

type declared struct {
	RegisterRange
	typ  Type
	used map[int]*Register // by number; a single register has number 0
}

func newScope(outer *scope) *scope {
	return &scope{outer: outer, registers: map[string]declared{}, variables: map[string]*Variable{}, labels: map[string]*Label{}}
}
