package ptx

import (
	"errors"
	"fmt"
	"slices"
)

// Build returns the module with the kernel; see the function Build.
func (k *Kernel) Build() (*Module, error) { return Build(k) }

// Build returns a module with kernels. Its version is 7.0 and its architecture sm_70, or those that the instructions need. The
// error joins a *CheckError for each mistake: its File and Line are those that added the instruction, or began the kernel.
func Build(kernels ...*Kernel) (*Module, error) {
	m := &Module{Version: Version{7, 0}, Target: Target{SM: 70}, AddressSize: 64}
	c := newChecker(m)
	c.places, c.begun = map[*Instruction]place{}, map[*Function]place{}
	var mistakes []error
	for n, k := range kernels {
		if k == nil {
			mistakes = append(mistakes, &CheckError{Message: fmt.Sprintf("kernel %d is nil", n)})
			continue
		}
		mistakes = append(mistakes, k.mistakes...)
		f := k.function(c)
		m.Functions = append(m.Functions, f)
		c.begun[f] = k.begun
		c.raise(f)
	}
	c.checkModule()
	if err := errors.Join(append(mistakes, c.findings...)...); err != nil {
		return nil, err
	}
	return m, nil
}

// function returns the kernel as it is now. Its instructions are copies, so that each module has its own.
func (k *Kernel) function(c *checker) *Function {
	f := &Function{
		Linkage: Visible, Entry: true, Name: k.name, Params: k.params, Directives: k.directives,
		Registers: k.registers, Body: &Block{Statements: []Statement{}},
	}
	add := func(s Statement) { f.Body.Statements = append(f.Body.Statements, s) }
	for _, r := range registerTypes {
		if count := k.counts[r.typ]; count > 0 {
			add(&RegisterDeclaration{Type: r.typ, Ranges: []RegisterRange{{Name: r.prefix, Count: count}}})
		}
	}
	externs := map[*Variable]*Variable{}
	for _, v := range k.variables {
		if v.Linkage == Extern {
			externs[v] = c.module.extern(v)
			continue
		}
		add(v)
	}
	for _, s := range k.statements {
		if i, ok := s.(*Instruction); ok {
			replaced := i.with(externs)
			c.places[replaced] = k.places[i]
			s = replaced
		}
		add(s)
	}
	if !c.ends(f.Code()) {
		add(&Instruction{Op: OpRet})
	}
	return f
}

// extern returns the module's variable of the same name, which is the variable itself where the module had none.
func (m *Module) extern(v *Variable) *Variable {
	if own := m.Variable(v.Name); own != nil {
		return own
	}
	m.Variables = append(m.Variables, v)
	return v
}

// with returns a copy of the instruction in which some variables are replaced.
func (i *Instruction) with(others map[*Variable]*Variable) *Instruction {
	replaced := *i
	replaced.Operands = replaceVariables(i.Operands, others)
	return &replaced
}

func replaceVariables(operands []Operand, others map[*Variable]*Variable) []Operand {
	operands = slices.Clone(operands)
	for n := range operands {
		o := &operands[n]
		o.Elements = replaceVariables(o.Elements, others)
		if other, ok := others[o.Variable]; ok {
			o.Variable = other
		}
	}
	return operands
}

// raise lifts the version and the architecture of the module to those that the instructions of a function need.
func (c *checker) raise(f *Function) {
	b := c.enter(f)
	defer c.leave()
	least := needs{version: c.module.Version, sm: c.module.Target.SM, variant: c.module.Target.Variant}
	for _, i := range b.code.Instructions {
		if forms := b.fitting(i, nil); len(forms) > 0 {
			least = least.and(forms[0].needsOf(i))
		}
	}
	least.version = least.and(needs{version: targetVersion(Target{SM: least.sm, Variant: least.variant})}).version
	c.module.Version, c.module.Target.SM, c.module.Target.Variant = least.version, least.sm, least.variant
}
