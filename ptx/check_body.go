package ptx

import (
	"strconv"
	"strings"
)

// checkBody looks at the declarations and instructions of a function, and at its end.
func (c *checker) checkBody(f *Function) {
	c.checkBlock(f.Body)
	if !c.ends() {
		c.report(f.Pos, "the body does not end in ret, exit, trap or bra")
	}
}

// ends reports whether no thread runs past the last instruction.
func (c *checker) ends() bool {
	count := len(c.code.Instructions)
	if count == 0 {
		return false
	}
	for _, i := range c.code.Instructions {
		for n := range i.Operands {
			if l := i.Operands[n].Label; l != nil && c.code.Targets[l] == count {
				return false
			}
		}
	}
	last := c.code.Instructions[count-1]
	leaves := last.Op == OpRet || last.Op == OpExit || last.Op == OpBra || last.Op == OpTrap
	return leaves && last.Guard.Kind == OperandNone || c.isNoreturn(last)
}

// isNoreturn reports whether the instruction calls a function that never comes back.
func (c *checker) isNoreturn(i *Instruction) bool {
	target, _, _ := i.call()
	if target == nil || target.Kind != OperandFunction || i.Guard.Kind != OperandNone {
		return false
	}
	f := c.module.Function(target.Name)
	if f == nil {
		return false
	}
	for _, d := range f.Directives {
		if d.Name == "noreturn" {
			return true
		}
	}
	return false
}

func (c *checker) checkBlock(b *Block) {
	names := &declaredNames{singles: map[string]bool{}, ranges: map[string]int{}}
	for _, s := range b.Statements {
		switch s := s.(type) {
		case *Block:
			c.checkBlock(s)
		case *RegisterDeclaration:
			c.checkRegisters(names, s)
		case *Variable:
			c.checkName(names, s.Pos, s.Name)
			c.checkVariable(s)
			if s.Space == Const || s.Space == Global && s.Linkage != Internal {
				c.report(s.Pos, "variable %s: a body declares no .%v variable of this kind", s.Name, s.Space)
			}
		case *Label:
			c.checkName(names, s.Pos, s.Name)
		case *Instruction:
			c.instruction = s
			c.checkInstruction(s)
			c.instruction = nil
		case *Location, *Pragma:
		}
	}
}

func (c *checker) checkRegisters(names *declaredNames, d *RegisterDeclaration) {
	if !isStored(d.Type) {
		c.report(d.Pos, "no register has the type .%v", d.Type)
	}
	for _, r := range d.Ranges {
		if r.Count == 0 {
			c.checkName(names, d.Pos, r.Name)
			continue
		}
		c.checkIdentifier(d.Pos, r.Name)
		if names.addRange(r.Name, r.Count) {
			c.report(d.Pos, "registers %s<%d> are declared twice", r.Name, r.Count)
		}
	}
}

func (c *checker) checkName(names *declaredNames, pos Pos, name string) {
	c.checkIdentifier(pos, name)
	if names.add(name) {
		c.report(pos, "%s is declared twice", name)
	}
}

// declaredNames are the names of a scope.
type declaredNames struct {
	singles map[string]bool
	ranges  map[string]int // the number of registers by their prefix
}

// add declares a name and reports whether it was there.
func (d *declaredNames) add(name string) bool {
	prefix := strings.TrimRight(name, "0123456789")
	number, err := strconv.Atoi(name[len(prefix):])
	there := d.singles[name] || err == nil && number < d.ranges[prefix]
	d.singles[name] = true
	return there
}

// addRange declares registers and reports whether one of them was there.
func (d *declaredNames) addRange(prefix string, count int) bool {
	there := d.ranges[prefix] > 0
	for name := range d.singles {
		digits, ok := strings.CutPrefix(name, prefix)
		number, err := strconv.Atoi(digits)
		there = there || ok && err == nil && number < count
	}
	d.ranges[prefix] = max(count, d.ranges[prefix])
	return there
}
