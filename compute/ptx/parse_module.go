package ptx

import (
	"slices"
	"strconv"
	"strings"
)

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

// parseModule reads the whole text: .version, .target and .address_size, then variables and functions.
func (p *parser) parseModule() {
	p.parseVersion()
	p.parseTarget()
	if p.acceptDot("address_size") {
		p.module.AddressSize = p.expectCount("32 or 64")
	}
	for !p.isEnd() {
		p.parseTopLevel()
	}
	for _, f := range p.scope.pending {
		p.resolveFunction(f)
	}
}

func (p *parser) parseVersion() {
	p.module.VersionPos = p.tok.pos
	if !p.acceptDot("version") {
		p.unexpected(`".version"`)
		return
	}
	if p.tok.kind != tokenNumber {
		p.unexpected("a version such as 7.0")
		return
	}
	major, minor, _ := strings.Cut(p.tok.text, ".")
	var errMajor, errMinor error
	p.module.Version.Major, errMajor = strconv.Atoi(major)
	p.module.Version.Minor, errMinor = strconv.Atoi(minor)
	if errMajor != nil || errMinor != nil {
		p.unexpected("a version such as 7.0")
		return
	}
	p.advance()
}

func (p *parser) parseTarget() {
	p.module.TargetPos = p.tok.pos
	if !p.acceptDot("target") {
		p.unexpected(`".target"`)
		return
	}
	const wanted = "an architecture such as sm_70"
	t := &p.module.Target
	number, ok := strings.CutPrefix(p.tok.text, "sm_")
	digits := strings.TrimRight(number, "abcdefghijklmnopqrstuvwxyz")
	sm, err := strconv.Atoi(digits)
	if p.tok.kind != tokenName || !ok || err != nil {
		p.unexpected(wanted)
		return
	}
	p.advance()
	t.SM, t.Variant = sm, number[len(digits):]
	for p.accept(",") {
		t.Options = append(t.Options, p.expectName("an option of the target"))
	}
}

// parseTopLevel reads one directive of a module.
func (p *parser) parseTopLevel() {
	switch {
	case p.isDot("file"):
		p.parseFile()
	case p.isDot("section"):
		p.skipSection()
	case p.isDot("pragma"):
		p.parsePragma() // of the whole module: a hint that has no place in the tree
	case p.tok.kind == tokenDot:
		linkage := p.parseLinkage()
		switch {
		case p.isDot("entry") || p.isDot("func"):
			p.parseFunction(linkage)
		case isVariableSpace(p.tok):
			p.module.Variables = append(p.module.Variables, p.parseVariables(linkage)...)
		default:
			p.unexpectedDirective()
		}
	default:
		p.unexpected("a directive")
	}
}

func (p *parser) parseLinkage() Linkage {
	if i := slices.Index(linkageNames[:], "."+p.tok.text); i > 0 && p.tok.kind == tokenDot {
		p.advance()
		return Linkage(i) // an index of the table of linkages
	}
	return Internal
}

// parseFile reads .file index "name", with a time and a size that nobody keeps.
func (p *parser) parseFile() {
	f := File{Pos: p.advance().pos}
	f.Index = p.expectCount("a file's index")
	f.Name = p.expectString()
	for p.accept(",") {
		p.expectCount("a number")
	}
	p.module.Files = append(p.module.Files, f)
}

// skipSection passes .section name { … }: debugging information.
func (p *parser) skipSection() {
	p.advance()
	for !p.isMark("{") && !p.isEnd() {
		p.advance()
	}
	p.expect("{")
	for !p.isMark("}") && !p.isEnd() {
		p.advance()
	}
	p.expect("}")
}

// parseFunction reads .entry or .func with its parameters, directives and body.
func (p *parser) parseFunction(linkage Linkage) {
	f := &Function{Pos: p.tok.pos, Linkage: linkage, Entry: p.isDot("entry")}
	p.advance()
	p.function, p.source = f, nil
	p.openScope()
	if !f.Entry && p.isMark("(") {
		f.Results = p.parseParams()
	}
	f.Name = p.expectName("a function's name")
	if p.isMark("(") {
		f.Params = p.parseParams()
	}
	for p.tok.kind == tokenDot {
		f.Directives = append(f.Directives, p.parseDirective())
	}
	if p.isMark("{") {
		f.Body = p.parseBlock()
	} else {
		p.expect(";")
	}
	p.closeScope()
	p.module.Functions = append(p.module.Functions, f)
	p.function = nil
}

// parseParams reads parameters or results between parentheses.
func (p *parser) parseParams() (params []*Variable) {
	p.expect("(")
	if !p.isMark(")") {
		p.list(func() {
			switch {
			case p.isDot("reg"):
				p.fail("parameters in registers are not supported")
			case !p.isDot("param"):
				p.unexpected(`".param"`)
			default:
				params = append(params, p.parseVariable(Internal))
			}
		})
	}
	p.expect(")")
	return params
}

// functionDirectives returns the directives between the parameters of a function and its body, with the most values they take.
func functionDirectives(name string) (values int, ok bool) {
	values, ok = map[string]int{
		"maxntid": 3, "reqntid": 3, "minnctapersm": 1, "maxnctapersm": 1, "maxnreg": 1, "noreturn": 0, "pragma": 0,
		"reqnctapercluster": 3, "maxclusterrank": 1, "explicitcluster": 0, "blocksareclusters": 0,
	}[name]
	return values, ok
}

func (p *parser) parseDirective() Directive {
	d := Directive{Pos: p.tok.pos, Name: p.tok.text}
	values, ok := functionDirectives(d.Name)
	switch {
	case !ok:
		p.unexpectedDirective()
	case d.Name == "pragma":
		d.Text = p.parsePragma().Text
	case values == 0:
		p.advance()
	default:
		p.advance()
		p.list(func() { d.Values = append(d.Values, p.expectCount("a number")) })
		if len(d.Values) > values {
			p.failAt(d.Pos, "directive .%s has %d values, at most %d", d.Name, len(d.Values), values)
		}
	}
	return d
}
