package ptx

import "slices"

// The limits of a launch, in all architectures of the table.
const (
	maxParamBytes      = 4352 // .param of an entry before PTX 8.1 and sm_70 with it; later 32764
	maxParamBytesLater = 32764
	maxBlockThreads    = 1024
)

// checkPrototypes looks at the declarations and the definition of each function together.
func (c *checker) checkPrototypes() {
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

// has reports whether the function has a directive.
func (f *Function) has(directive string) bool {
	return slices.ContainsFunc(f.Directives, func(d Directive) bool { return d.Name == directive })
}

// checkUndefined reports a function without a body: only an .extern one may lack it, unless it is called.
func (c *checker) checkUndefined(f *Function) {
	switch {
	case f.Entry:
		c.report(f.Pos, "entry %s has no body", f.Name)
	case f.Linkage != Extern && !isSystem(f.Name):
		c.report(f.Pos, "function %s has no body", f.Name)
	}
}

// declaredBefore reports whether a function is declared at a place of the text. A tree that a program made has no places.
func (c *checker) declaredBefore(name string, at Pos) bool {
	return slices.ContainsFunc(c.prototypes[name], func(f *Function) bool { return f.Pos == Pos{} || !at.before(f.Pos) })
}

// checkFunction looks at the parameters, the directives and the body of a function.
func (c *checker) checkFunction(f *Function) {
	c.enter(f)
	defer c.leave()
	names := map[string]bool{}
	size := 0
	for _, list := range [][]*Variable{f.Results, f.Params} {
		for _, v := range list {
			c.checkIdentifier(v.Pos, v.Name)
			if names[v.Name] {
				c.report(v.Pos, "%s is declared twice", v.Name)
			}
			names[v.Name] = true
			c.checkParam(f, v)
			size = min(v.after(size), maxVariableBytes)
		}
	}
	limit := maxParamBytes
	if !c.module.Version.Before(Version{8, 1}) && c.module.Target.SM >= 70 {
		limit = maxParamBytesLater
	}
	switch {
	case f.Entry && size > limit:
		c.report(f.Pos, "the parameters have %d bytes, at most %d", size, limit)
	case len(f.Results) > 1:
		c.report(f.Pos, "%d results, and a function has one", len(f.Results))
	case f.Linkage == Extern && f.Body != nil:
		c.report(f.Pos, "a function that is .extern has a body")
	}
	c.checkDirectives(f)
	if f.Body != nil {
		c.checkBody(f)
	}
}

// clusterNeeds is the version and architecture for directives about clusters of blocks.
//
//nolint:gochecknoglobals // constant
var clusterNeeds = needs{version: Version{7, 8}, sm: 90}

func (c *checker) checkDirectives(f *Function) {
	for _, d := range f.Directives {
		switch d.Name {
		case "pragma":
		case "noreturn":
			if f.Entry || len(f.Results) > 0 {
				c.report(d.Pos, "directive .noreturn belongs to a .func without results")
			}
		case "maxnctapersm":
			c.report(d.Pos, "directive .maxnctapersm does not exist since PTX 2.1")
		case "reqnctapercluster", "maxclusterrank", "explicitcluster", "blocksareclusters":
			c.checkCluster(d)
		default:
			c.checkLimit(f, d)
		}
	}
	for _, pair := range [][2]string{{"maxntid", "reqntid"}, {"reqnctapercluster", "maxclusterrank"}} {
		if f.has(pair[0]) && f.has(pair[1]) {
			c.report(f.Pos, "directives .%s and .%s exclude each other", pair[0], pair[1])
		}
	}
}

// checkCluster is about a directive on clusters: of more than one block they are not supported.
func (c *checker) checkCluster(d Directive) {
	switch {
	case !c.has(clusterNeeds):
		c.report(d.Pos, "directive .%s needs PTX %v and sm_%d", d.Name, clusterNeeds.version, clusterNeeds.sm)
	case d.Name != "maxclusterrank" && !slices.Equal(d.Values, []int{1}) && !slices.Equal(d.Values, []int{1, 1, 1}):
		c.reportLacking(d.Pos, "directive .%s: clusters of blocks are not supported", d.Name)
	}
}

// checkLimit is about a directive with numbers of threads, blocks or registers.
func (c *checker) checkLimit(f *Function, d Directive) {
	if !f.Entry {
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
