package ptx

import (
	"strconv"
	"strings"
)

// checkBody looks at the declarations and instructions of a function, and at its end.
func (c *body) checkBody(f *Function) {
	c.checkBlock(f.Body, f.names())
	c.checkShared(f)
	if !c.ends(c.code) {
		c.report(f.Pos, "the body does not end in ret, exit, trap or bra")
	}
}

// maxSharedBytes is the shared memory of a block of an architecture that sharedLimits does not name.
const maxSharedBytes = 228 << 10

// checkShared reports a body whose shared memory is more than a block of the architecture has: its own variables, and
// variables of the module that it names. It also reports too much local memory of a thread, which the driver refuses at
// the launch.
func (c *body) checkShared(f *Function) {
	limit, known := sharedLimits[c.module.Target.SM]
	if !known {
		limit = maxSharedBytes
	}
	size, local, seen := 0, 0, map[*Variable]bool{}
	add := func(v *Variable) {
		if v == nil || seen[v] {
			return
		}
		seen[v] = true
		switch {
		case v.Space == Shared && size <= limit:
			if size = v.after(size); size > limit {
				c.report(f.Pos, "the shared memory has more than the %d bytes of sm_%d", limit, c.module.Target.SM)
			}
		case v.Space == Local && local <= maxLocalBytes:
			if local = v.after(local); local > maxLocalBytes {
				c.reportLacking(f.Pos, "the local memory has more than the %d bytes of a thread", maxLocalBytes)
			}
		}
	}
	for _, i := range c.code.Instructions {
		for n := range i.Operands {
			add(i.Operands[n].Variable)
		}
	}
	for _, v := range c.code.Variables {
		add(v)
	}
}

// checkBlock looks at the statements of a scope in which some names are taken.
func (c *body) checkBlock(b *Block, names *declaredNames) {
	for _, s := range b.Statements {
		switch s := s.(type) {
		case *Block:
			c.checkBlock(s, &declaredNames{singles: map[string]bool{}, ranges: map[string]int{}})
		case *RegisterDeclaration:
			c.checkRegisters(names, s)
		case *Variable:
			c.checkName(names, s.Pos, s.Name)
			if s.Space == Param {
				c.checkParam(nil, s)
			} else {
				c.checkVariable(s)
			}
			if s.Space == Const || s.Space == Global && s.Linkage != Internal {
				c.reportLacking(s.Pos, "variable %s: a body declares no .%v variable of this kind", s.Name, s.Space)
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

func (c *body) checkRegisters(names *declaredNames, d *RegisterDeclaration) {
	if !isStored(d.Type) {
		c.report(d.Pos, "no register has the type .%v", d.Type)
	}
	c.checkB128(d.Pos, d.Type)
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

func (c *body) checkName(names *declaredNames, pos Pos, name string) {
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

// names returns the set of names of parameters and results, which a body may not declare again.
func (f *Function) names() *declaredNames {
	names := &declaredNames{singles: map[string]bool{}, ranges: map[string]int{}}
	for _, list := range [][]*Variable{f.Results, f.Params} {
		for _, v := range list {
			names.singles[v.Name] = true
		}
	}
	return names
}
