package ptx

import (
	"strconv"
	"strings"
)

func (p *parser) openScope() { p.scope = newScope(p.scope) }

// closeScope resolves the labels of the scope; operands that are still open wait for labels outside.
func (p *parser) closeScope() {
	inner := p.scope
	p.scope = inner.outer
	for _, o := range inner.pending {
		if label, ok := inner.labels[o.Name]; ok && o.Kind == OperandName && o.isPlain() {
			*o = Operand{Kind: OperandLabel, Label: label}
			continue
		}
		p.resolveLater(o)
	}
}

func (p *parser) resolveLater(o *Operand) { p.scope.pending = append(p.scope.pending, o) }

// The first declaration of a name counts; Check reports others.

func (s *scope) declareRegisters(r RegisterRange, t Type) {
	key := r.Name
	if r.Count > 0 {
		key += "<"
	}
	if _, ok := s.registers[key]; !ok {
		s.registers[key] = declared{r, t, map[int]*Register{}}
	}
}

func (s *scope) declareVariable(v *Variable) {
	if _, ok := s.variables[v.Name]; !ok {
		s.variables[v.Name] = v
	}
}

func (s *scope) declareLabel(l *Label) {
	if _, ok := s.labels[l.Name]; !ok {
		s.labels[l.Name] = l
	}
}

// resolve turns a name into the register or the variable that it stands for, as far as it is declared already.
func (p *parser) resolve(o *Operand) {
	if o.Name == "" || o.Kind != OperandName && o.Kind != OperandAddress {
		return
	}
	if special, ok := specialByName[o.Name]; ok && o.Kind == OperandName && o.isPlain() {
		*o = Operand{Kind: OperandSpecial, Special: special}
		return
	}
	for s := p.scope; s != nil; s = s.outer {
		if r := p.register(s, o.Name); r != nil && o.resolveRegister(r) {
			return
		}
		if v, ok := s.variables[o.Name]; ok && o.resolveVariable(v) {
			return
		}
	}
	p.resolveLater(o)
}

// isPlain reports whether the operand is a name and nothing more.
func (o *Operand) isPlain() bool { return !o.Negated && !o.Generic && o.Offset == 0 }

func (o *Operand) resolveRegister(r *Register) bool {
	switch {
	case o.Kind == OperandAddress:
	case o.Generic || o.Offset != 0:
		return false
	default:
		o.Kind = OperandRegister
	}
	o.Register, o.Name = r, ""
	return true
}

func (o *Operand) resolveVariable(v *Variable) bool {
	if o.Negated {
		return false
	}
	if o.Kind == OperandName {
		o.Kind = OperandVariable
	}
	o.Variable, o.Name = v, ""
	return true
}

// resolveFunction turns a name that is still open at the end of the module into a variable of the module or a function.
func (p *parser) resolveFunction(o *Operand) {
	if o.Kind != OperandName || o.Name == "" {
		return
	}
	if v, ok := p.scope.variables[o.Name]; ok && o.resolveVariable(v) {
		return
	}
	if o.isPlain() && p.module.Function(o.Name) != nil {
		*o = Operand{Kind: OperandFunction, Name: o.Name}
	}
}

// register finds a register that the scope declares, alone or in a range, and gives it an index in the function.
func (p *parser) register(s *scope, name string) *Register {
	d, ok := s.registers[name]
	number := 0
	if !ok {
		prefix := strings.TrimRight(name, "0123456789")
		// A range's name may end in digits itself, and a register's number begins with 0 only where it is 0.
		for ; len(prefix) < len(name); prefix = name[:len(prefix)+1] {
			digits := name[len(prefix):]
			n, err := strconv.Atoi(digits)
			if d, ok = s.registers[prefix+"<"]; ok && err == nil && n < d.Count && (digits == "0" || digits[0] != '0') {
				number = n
				break
			}
			ok = false
		}
	}
	if !ok || p.function == nil {
		return nil
	}
	r := d.used[number]
	if r == nil {
		r = &Register{Name: name, Type: d.typ, Index: len(p.function.Registers)}
		d.used[number] = r
		p.function.Registers = append(p.function.Registers, r)
	}
	return r
}
