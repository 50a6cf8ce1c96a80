package ptx

// checkModule looks at everything that stands outside of bodies, and at the functions that the checker is for.
func (c *checker) checkModule() {
	m := c.module
	c.checkTarget()
	if m.AddressSize != 0 && m.AddressSize != 64 {
		c.reportLacking(Pos{}, "addresses of %d bits are not supported", m.AddressSize)
	}
	c.checkFiles()
	c.prototypes = map[string][]*Function{}
	for _, f := range m.Functions {
		c.prototypes[f.Name] = append(c.prototypes[f.Name], f)
	}
	c.checkVariables()
	c.checkPrototypes()
	for _, f := range m.Functions {
		if c.only == nil || c.only[f] {
			c.checkFunction(f)
		}
	}
}

// checkFiles reports two files of one index.
func (c *checker) checkFiles() {
	seen := map[int]bool{}
	for _, f := range c.module.Files {
		if seen[f.Index] {
			c.report(f.Pos, "file %d is named twice", f.Index)
		}
		seen[f.Index] = true
	}
}

// checkIdentifier reports a name that would not be read as one: only trees by hand have such names.
func (c *checker) checkIdentifier(pos Pos, name string) {
	l := newLexer(name)
	if t := l.next(); t.kind != tokenName || t.text != name || name == "_" || specialByName[name] == WarpSize {
		c.report(pos, "%q is no name", name)
	}
}

// isStored reports whether registers or memory can have the type: other types are for instructions only.
func isStored(t Type) bool {
	return t != NoType && t != BF16 && t != BF16x2 && t != TF32 && t.Class() != Opaque
}

// checkB128 reports the type of 128 bits in a module that is too old for it.
func (c *checker) checkB128(pos Pos, t Type) {
	if least := (Version{8, 3}); t == B128 && c.module.Version.Before(least) {
		c.report(pos, "type .b128 needs PTX %v, the module has %v", least, c.module.Version)
	}
}

// checkConstants reports .const variables that are more than the memory for them.
func (c *checker) checkConstants() {
	size := 0
	add := func(v *Variable) {
		if v.Space != Const || size > maxConstBytes {
			return
		}
		if size = v.after(size); size > maxConstBytes {
			c.report(v.Pos, "variable %s: the .const variables have more than %d bytes", v.Name, maxConstBytes)
		}
	}
	for _, v := range c.module.Variables {
		add(v)
	}
	for _, f := range c.module.Functions {
		if f.Body != nil && (c.only == nil || c.only[f]) {
			for _, v := range c.codeOf(f).Variables {
				add(v)
			}
		}
	}
}

// after is the end of the variable where it follows so many bytes of others. It does not wrap around.
func (v *Variable) after(size int) int {
	if v.Bytes() > maxVariableBytes || v.Alignment() > maxVariableBytes {
		return maxVariableBytes
	}
	align := v.Alignment()
	return (size+align-1)/align*align + v.Bytes()
}

// codeOf is the body of a function in a row, made once.
func (c *checker) codeOf(f *Function) *Code {
	if code, ok := c.codes[f]; ok {
		return code
	}
	code := f.Code()
	c.codes[f] = code
	return code
}

// checkVariables looks at the variables of the module. One that is declared elsewhere may be declared several times,
// and defined once.
func (c *checker) checkVariables() {
	first := map[string]*Variable{}
	defined := map[string]bool{}
	for _, v := range c.module.Variables {
		c.checkIdentifier(v.Pos, v.Name)
		c.checkVariable(v)
		if v.Space == Local || v.Space == Param {
			c.report(v.Pos, "variable %s: a module has no .%v variable", v.Name, v.Space)
		}
		earlier := first[v.Name]
		switch {
		case earlier == nil:
			first[v.Name] = v
		case earlier.Linkage != Extern && v.Linkage != Extern:
			c.report(v.Pos, "%s is declared twice", v.Name)
		case !earlier.isLike(v):
			c.report(v.Pos, "%s is declared before as .%v, with %d bytes", v.Name, earlier.Type, earlier.Bytes())
		case earlier.Linkage == Extern && v.Linkage == Internal:
			c.report(v.Pos, "%s is declared before as .extern, and defined for this module alone", v.Name)
		}
		if v.Linkage != Extern {
			if defined[v.Name] && earlier.Linkage == Extern {
				c.report(v.Pos, "%s is declared twice", v.Name)
			}
			defined[v.Name] = true
		}
	}
	c.checkConstants()
	c.symbols = first
}

// isLike reports whether two declarations are of one variable: an array without a length is like each.
func (v *Variable) isLike(other *Variable) bool {
	if v.Type != other.Type || v.Vector != other.Vector || len(v.Dims) != len(other.Dims) {
		return false
	}
	for n := range v.Dims {
		if v.Dims[n] != other.Dims[n] && v.Dims[n] != Unsized && other.Dims[n] != Unsized {
			return false
		}
	}
	return true
}

// names is the set of names of parameters and results, which a body may not declare again.
func (f *Function) names() *declaredNames {
	names := &declaredNames{singles: map[string]bool{}, ranges: map[string]int{}}
	for _, list := range [][]*Variable{f.Results, f.Params} {
		for _, v := range list {
			names.singles[v.Name] = true
		}
	}
	return names
}

// systemFunctions are those that the driver defines.
//
//nolint:gochecknoglobals // constant set of names
var systemFunctions = map[string]bool{"vprintf": true, "__assertfail": true, "malloc": true, "free": true}

// isSystem reports whether the driver defines a function of that name.
func isSystem(name string) bool { return systemFunctions[name] }
