package ptx

import "math/bits"

// The limits of a launch, in all architectures of the table.
const (
	maxParamBytes      = 4352 // .param of an entry before PTX 8.1 and sm_70 with it; later 32764
	maxParamBytesLater = 32764
	maxBlockThreads    = 1024
)

func (c *checker) checkModule() {
	m := c.module
	c.checkTarget()
	if m.AddressSize != 0 && m.AddressSize != 64 {
		c.report(Pos{}, "addresses of %d bits are not supported", m.AddressSize)
	}
	names := map[string]bool{}
	for _, v := range m.Variables {
		c.checkUnique(names, v.Pos, v.Name)
		c.checkVariable(v)
	}
	bodies := map[string]bool{}
	for _, f := range m.Functions {
		if names[f.Name] {
			c.report(f.Pos, "%s is declared before as a variable", f.Name)
		}
		if f.Body != nil {
			c.checkUnique(bodies, f.Pos, f.Name)
		} else {
			c.checkIdentifier(f.Pos, f.Name)
		}
		c.checkFunction(f)
	}
}

func (c *checker) checkTarget() {
	m := c.module
	version := c.targetVersion(m.Target)
	last, known := lastMinors[m.Version.Major]
	switch {
	case m.Version.Before(oldest.version):
		c.report(m.VersionPos, "PTX %v is older than %v, with which the table of instructions begins", m.Version, oldest.version)
	case !known || m.Version.Minor > last:
		c.report(m.VersionPos, "PTX %v is not known", m.Version)
	}
	switch {
	case version == Version{}:
		c.report(m.TargetPos, "architecture %v is not known", m.Target.architecture())
	case m.Target.SM < oldest.sm:
		c.report(m.TargetPos, "architecture sm_%d is older than sm_%d, with which the table of instructions begins", m.Target.SM, oldest.sm)
	case m.Version.Before(version):
		c.report(m.TargetPos, "architecture %v needs PTX %v, the module has %v", m.Target.architecture(), version, m.Version)
	}
}

// targetVersion is the version that knows an architecture first; zero of one that is not known.
func (c *checker) targetVersion(t Target) Version {
	version, ok := targetVersions[t.SM]
	if t.Variant == "" || !ok {
		return version
	}
	first, ok := variantVersions[t.architecture()]
	if !ok && t.Variant == "f" && t.SM >= firstFamily {
		first, ok = familyVersion, true
	}
	switch {
	case !ok:
		return Version{}
	case first.Before(version):
		return version
	}
	return first
}

// checkUnique reports a name that was declared before in the same scope, or is none.
func (c *checker) checkUnique(names map[string]bool, pos Pos, name string) {
	c.checkIdentifier(pos, name)
	if names[name] {
		c.report(pos, "%s is declared twice", name)
	}
	names[name] = true
}

// checkIdentifier reports a name that would not be read as one: only trees by hand have such names.
func (c *checker) checkIdentifier(pos Pos, name string) {
	l := newLexer(name)
	if t := l.next(); t.kind != tokenName || t.text != name || name == "_" {
		c.report(pos, "%q is no name", name)
	}
}

// isStored reports whether a type can be that of a register or of memory: others are types of instructions only.
func isStored(t Type) bool { return t != NoType && t != BF16 && t != BF16x2 && t != TF32 }

func (c *checker) checkVariable(v *Variable) {
	switch {
	case !isStored(v.Type) || v.Type == Pred:
		c.report(v.Pos, "variable %s: no memory has the type .%v", v.Name, v.Type)
	case v.Align < 0 || bits.OnesCount(uint(v.Align)) > 1:
		c.report(v.Pos, "variable %s: an alignment of %d bytes is no power of two", v.Name, v.Align)
	}
	for n, dim := range v.Dims {
		if dim == Unsized && (n > 0 || v.Linkage != Extern && v.Init == nil && v.Space != Param) {
			c.report(v.Pos, "variable %s: only an .extern array has no length", v.Name)
		}
	}
	if v.Init != nil {
		c.checkInitialiser(v)
	}
}

// checkInitialiser looks at the values of a variable of the module.
func (c *checker) checkInitialiser(v *Variable) {
	if v.Space != Global && v.Space != Const || v.Linkage == Extern {
		c.report(v.Pos, "variable %s: only .global and .const variables that the module defines have an initial value", v.Name)
		return
	}
	count := 0
	v.Init.each(func(o *Operand) {
		if o.Kind == OperandVector {
			return
		}
		count++
		if wrong := c.initialValue(v, o); wrong != "" {
			c.report(v.Pos, "variable %s: initial value %v %s", v.Name, o, wrong)
		}
	})
	if size := v.Bytes(); size > 0 && v.Type.Bytes()*count > size {
		c.report(v.Pos, "variable %s: %d initial values, more than its elements", v.Name, count)
	}
}

// initialValue says how a value does not fit the variable, or "".
func (c *checker) initialValue(v *Variable, o *Operand) string {
	switch o.Kind { //nolint:exhaustive // the kinds of constants
	case OperandName:
		return "is not declared"
	case OperandVariable, OperandFunction:
		if v.Type.Bits() != 64 {
			return "is an address, of 64 bits"
		}
		return ""
	}
	return constantMisfit(v.Type, o)
}

func (c *checker) checkFunction(f *Function) {
	c.enter(f)
	defer c.leave()
	names := map[string]bool{}
	size := 0
	for _, list := range [][]*Variable{f.Results, f.Params} {
		for _, v := range list {
			c.checkUnique(names, v.Pos, v.Name)
			c.checkVariable(v)
			if v.Space != Param {
				c.report(v.Pos, "%s is in the space .%v, and not .param", v.Name, v.Space)
			}
			align := v.Alignment()
			size = (size+align-1)/align*align + v.Bytes()
		}
	}
	limit := maxParamBytes
	if !c.module.Version.Before(Version{8, 1}) && c.module.Target.SM >= 70 {
		limit = maxParamBytesLater
	}
	if f.Entry && size > limit {
		c.report(f.Pos, "the parameters have %d bytes, at most %d", size, limit)
	}
	c.checkDirectives(f)
	if f.Body != nil {
		c.checkBody(f)
	}
}

func (c *checker) checkDirectives(f *Function) {
	for _, d := range f.Directives {
		if d.Name != "pragma" && d.Name != "noreturn" && !f.Entry {
			c.report(d.Pos, "directive .%s belongs to an .entry", d.Name)
		}
		threads := 1
		for _, value := range d.Values {
			if value == 0 {
				c.report(d.Pos, "directive .%s has the value 0", d.Name)
			}
			threads *= min(value, maxBlockThreads+1)
		}
		if (d.Name == "maxntid" || d.Name == "reqntid") && threads > maxBlockThreads {
			c.report(d.Pos, "directive .%s asks for more than %d threads", d.Name, maxBlockThreads)
		}
	}
}
