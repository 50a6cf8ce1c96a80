package ptx

import "slices"

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
	c.checkConstants()
	c.checkPrototypes()
	for _, f := range m.Functions {
		if c.only == nil || c.only[f] {
			c.checkFunction(f)
		}
	}
}

// checkFiles reports two files of one index.
func (c *declarations) checkFiles() {
	seen := map[int]bool{}
	for _, f := range c.module.Files {
		if seen[f.Index] {
			c.report(f.Pos, "file %d is named twice", f.Index)
		}
		seen[f.Index] = true
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

// checkVariables looks at the variables of the module. One that is declared elsewhere may be declared several times,
// and defined once.
func (c *declarations) checkVariables() {
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

// checkPrototypes looks at the declarations and the definition of each function together.
func (c *declarations) checkPrototypes() {
	for _, f := range c.module.Functions {
		c.checkIdentifier(f.Pos, f.Name)
		if c.symbols[f.Name] != nil {
			c.report(f.Pos, "%s is declared as a variable, too", f.Name)
		}
		for _, earlier := range c.prototypes[f.Name] {
			if earlier == f {
				break
			}
			if wrong := conflict(earlier, f); wrong != "" {
				c.report(f.Pos, "%s %s", f.Name, wrong)
				break
			}
		}
	}
	for _, f := range c.module.Functions {
		if all := c.prototypes[f.Name]; all[0] == f && !slices.ContainsFunc(all, func(f *Function) bool { return f.Body != nil }) {
			c.checkUndefined(f)
		}
	}
}

// conflict says how a later declaration or definition does not fit an earlier one, or "".
func conflict(earlier, later *Function) string {
	switch {
	case earlier.Body != nil:
		return "is declared twice"
	case earlier.Entry != later.Entry:
		return "is declared before as an .entry or a .func, and is the other"
	case later.Linkage != earlier.Linkage && (later.Linkage != Internal || earlier.Linkage == Extern):
		return "has not the linkage of its first declaration"
	case earlier.has("noreturn") != later.has("noreturn"):
		return "is .noreturn in one declaration alone"
	}
	for _, lists := range [][2][]*Variable{{earlier.Results, later.Results}, {earlier.Params, later.Params}} {
		if len(lists[0]) != len(lists[1]) {
			return "has not as many parameters and results as in its first declaration"
		}
		for n, v := range lists[0] {
			if other := lists[1][n]; v.Type != other.Type || !slices.Equal(v.Dims, other.Dims) || v.Alignment() != other.Alignment() {
				return "has not the parameters and results of its first declaration"
			}
		}
	}
	return ""
}

// checkUndefined reports a function without a body: only an .extern one may lack it, unless it is called.
func (c *declarations) checkUndefined(f *Function) {
	switch {
	case f.Entry:
		c.report(f.Pos, "entry %s has no body", f.Name)
	case f.Linkage != Extern && !isSystem(f.Name):
		c.report(f.Pos, "function %s has no body", f.Name)
	}
}
