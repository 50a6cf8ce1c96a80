package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the text of the module in one canonical form, which Parse reads back into the same tree.
func (m *Module) String() string {
	if m == nil {
		return ""
	}
	p := &printer{}
	p.line(".version %v", m.Version)
	p.line(".target %v", m.Target)
	if m.AddressSize != 0 {
		p.line(".address_size %d", m.AddressSize)
	}
	for _, f := range m.Files {
		p.line(".file %d \"%s\"", f.Index, f.Name)
	}
	if len(m.Variables) > 0 {
		p.line("")
	}
	for _, v := range m.Variables {
		p.line("%s;", variableText(v))
	}
	for _, f := range m.Functions {
		p.line("")
		p.function(f)
	}
	return p.text.String()
}

// String returns the instruction as the text has it, with its guard and without the semicolon.
func (i *Instruction) String() string {
	if i == nil {
		return ""
	}
	var b strings.Builder
	if i.Guard.Kind != OperandNone {
		b.WriteString("@" + i.Guard.String() + " ")
	}
	b.WriteString(i.name())
	for n := range i.Operands {
		b.WriteString([...]string{" ", ", "}[min(n, 1)])
		b.WriteString(i.Operands[n].String())
	}
	return b.String()
}

type printer struct {
	text   strings.Builder
	indent int
}

func (p *printer) line(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if line != "" {
		p.text.WriteString(strings.Repeat("\t", p.indent))
	}
	p.text.WriteString(line + "\n")
}

func (p *printer) function(f *Function) {
	head := linkagePrefix(f.Linkage) + ".func "
	if f.Entry {
		head = linkagePrefix(f.Linkage) + ".entry "
	}
	if len(f.Results) > 0 {
		head += "(" + variableTexts(f.Results, ", ") + ") "
	}
	head += f.Name
	if len(f.Params) > 0 {
		p.line("%s(", head)
		p.line("\t%s", variableTexts(f.Params, ",\n\t"))
		head = ")"
	} else {
		head += "()"
	}
	p.line("%s%s", head, directiveTexts(f.Directives))
	if f.Body == nil {
		p.line(";")
		return
	}
	p.block(f.Body)
}

func directiveTexts(directives []Directive) string {
	var b strings.Builder
	for _, d := range directives {
		b.WriteString("\n." + d.Name)
		if d.Name == "pragma" {
			b.WriteString(" \"" + d.Text + "\";")
		}
		for n, value := range d.Values {
			b.WriteString([...]string{" ", ", "}[min(n, 1)] + strconv.Itoa(value))
		}
	}
	return b.String()
}

func (p *printer) block(b *Block) {
	p.line("{")
	p.indent++
	for _, s := range b.Statements {
		p.statement(s)
	}
	p.indent--
	p.line("}")
}

func (p *printer) statement(s Statement) {
	switch s := s.(type) {
	case *Block:
		p.block(s)
	case *RegisterDeclaration:
		p.line("%s;", registersText(s))
	case *Variable:
		p.line("%s;", variableText(s))
	case *Label:
		p.indent--
		p.line("%s:", s.Name)
		p.indent++
	case *Location:
		p.line(".loc %d %d %d", s.File, s.Line, s.Column)
	case *Pragma:
		p.line(".pragma \"%s\";", s.Text)
	case *Instruction:
		p.line("%s;", s.String())
	}
}

func registersText(d *RegisterDeclaration) string {
	var names []string
	for _, r := range d.Ranges {
		name := r.Name
		if r.Count > 0 {
			name += fmt.Sprintf("<%d>", r.Count)
		}
		names = append(names, name)
	}
	return fmt.Sprintf(".reg .%v %s", d.Type, strings.Join(names, ", "))
}

func linkagePrefix(l Linkage) string {
	if l == Internal {
		return ""
	}
	return l.String() + " "
}

func variableTexts(variables []*Variable, between string) string {
	var texts []string
	for _, v := range variables {
		texts = append(texts, variableText(v))
	}
	return strings.Join(texts, between)
}

func variableText(v *Variable) string {
	var b strings.Builder
	b.WriteString(linkagePrefix(v.Linkage) + "." + v.Space.String())
	if v.Align != 0 {
		fmt.Fprintf(&b, " .align %d", v.Align)
	}
	if v.Vector != 0 {
		fmt.Fprintf(&b, " .v%d", v.Vector)
	}
	b.WriteString(" ." + v.Type.String())
	if v.Pointer != nil {
		b.WriteString(pointerText(v.Pointer))
	}
	b.WriteString(" " + v.Name)
	for _, dim := range v.Dims {
		if dim == Unsized {
			b.WriteString("[]")
			continue
		}
		fmt.Fprintf(&b, "[%d]", dim)
	}
	if v.Init != nil {
		b.WriteString(" = " + v.Init.String())
	}
	return b.String()
}

func pointerText(p *Pointer) string {
	text := " .ptr"
	if p.Space != Generic {
		text += " ." + p.Space.String()
	}
	if p.Align != 0 {
		text += fmt.Sprintf(" .align %d", p.Align)
	}
	return text
}
