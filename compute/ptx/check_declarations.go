package ptx

import "slices"

// declarations are the names of a module.
type declarations struct {
	*reporter

	symbols    map[string]*Variable   // of the module, by name
	prototypes map[string][]*Function // by name, in the order of the text
	codes      map[*Function]*Code
}

// codeOf returns the body of a function in a row, made once.
func (c *declarations) codeOf(f *Function) *Code {
	if code, ok := c.codes[f]; ok {
		return code
	}
	code := f.Code()
	c.codes[f] = code
	return code
}

// declaredBefore reports whether a function is declared at a place of the text. A tree that a program made has no places.
func (c *declarations) declaredBefore(name string, at Pos) bool {
	return slices.ContainsFunc(c.prototypes[name], func(f *Function) bool { return f.Pos == Pos{} || !at.before(f.Pos) })
}

// calledFunction returns the definition of a function, or else its first declaration.
func (c *declarations) calledFunction(name string) *Function {
	all := c.prototypes[name]
	for _, f := range all {
		if f.Body != nil {
			return f
		}
	}
	return all[0]
}

// isNoreturn reports whether the instruction calls a function that never comes back.
func (c *declarations) isNoreturn(i *Instruction) bool {
	target, _, _ := i.call()
	if target == nil || target.Kind != OperandFunction || i.Guard.Kind != OperandNone {
		return false
	}
	all := c.prototypes[target.Name]
	return len(all) > 0 && all[0].has("noreturn")
}

// ends reports whether no thread runs past the last instruction of a body.
func (c *declarations) ends(code *Code) bool {
	count := len(code.Instructions)
	if count == 0 {
		return false
	}
	for _, i := range code.Instructions {
		for n := range i.Operands {
			if l := i.Operands[n].Label; l != nil && code.Targets[l] == count {
				return false
			}
		}
	}
	last := code.Instructions[count-1]
	leaves := last.Op == UnknownOp || last.Op == OpRet || last.Op == OpExit || last.Op == OpBra || last.Op == OpTrap
	return leaves && last.Guard.Kind == OperandNone || c.isNoreturn(last)
}

// checkIdentifier reports a name that would not be read as one: only trees by hand have such names.
func (c *declarations) checkIdentifier(pos Pos, name string) {
	l := newLexer(name)
	if t := l.next(); t.kind != tokenName || t.text != name || name == "_" || specialByName[name] == WarpSize {
		c.report(pos, "%q is no name", name)
	}
}

// checkB128 reports the type of 128 bits in a module that is too old for it.
func (c *declarations) checkB128(pos Pos, t Type) {
	if least := (Version{8, 3}); t == B128 && c.module.Version.Before(least) {
		c.report(pos, "type .b128 needs PTX %v, the module has %v", least, c.module.Version)
	}
}

// isStored reports whether registers or memory can have the type: other types are for instructions only.
func isStored(t Type) bool {
	return t != NoType && t != BF16 && t != BF16x2 && t != TF32 && t.Class() != Opaque
}

// after returns the end of the variable where it follows so many bytes of others. It does not wrap around.
func (v *Variable) after(size int) int {
	if v.Bytes() > maxVariableBytes || v.Alignment() > maxVariableBytes {
		return maxVariableBytes
	}
	align := v.Alignment()
	return (size+align-1)/align*align + v.Bytes()
}

// has reports whether the function has a directive.
func (f *Function) has(directive string) bool {
	return slices.ContainsFunc(f.Directives, func(d Directive) bool { return d.Name == directive })
}

// systemFunctions are those that the driver defines.
//
//nolint:gochecknoglobals // constant set of names
var systemFunctions = map[string]bool{"vprintf": true, "__assertfail": true, "malloc": true, "free": true}

// isSystem reports whether the driver defines a function of that name.
func isSystem(name string) bool { return systemFunctions[name] }

// before reports whether a place is earlier in the text.
func (p Pos) before(other Pos) bool {
	return p.Line < other.Line || p.Line == other.Line && p.Column < other.Column
}
