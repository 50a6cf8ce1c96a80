package ptx

import "slices"

// checker checks a module.
type checker struct {
	*declarations

	only  map[*Function]bool // the functions whose bodies are checked; nil: all
	forms *formTable
}

// enter makes a function the current one, until leave.
func (c *checker) enter(f *Function) *body {
	c.function = f
	b := &body{visible{c.declarations, c.codeOf(f), map[*Variable]bool{}}, c.forms}
	for _, list := range [][]*Variable{c.module.Variables, f.Results, f.Params, b.code.Variables} {
		for _, v := range list {
			b.variables[v] = true
		}
	}
	return b
}

func (c *checker) leave() { c.function = nil }

// The limits of a launch, in all architectures of the table.
const (
	maxParamBytes      = 4352 // .param of an entry before PTX 8.1 and sm_70 with it; later 32764
	maxParamBytesLater = 32764
	maxBlockThreads    = 1024
)

// checkFunction looks at the parameters, the directives and the body of a function.
func (c *checker) checkFunction(f *Function) {
	b := c.enter(f)
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
		b.checkBody(f)
	}
}

// clusterNeeds is the version and architecture for directives about clusters of blocks.
//
//nolint:gochecknoglobals // constant
var clusterNeeds = needs{version: Version{7, 8}, sm: 90}

func (c *declarations) checkDirectives(f *Function) {
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
func (c *declarations) checkCluster(d Directive) {
	switch {
	case !c.has(clusterNeeds):
		c.report(d.Pos, "directive .%s needs PTX %v and sm_%d", d.Name, clusterNeeds.version, clusterNeeds.sm)
	case d.Name != "maxclusterrank" && !slices.Equal(d.Values, []int{1}) && !slices.Equal(d.Values, []int{1, 1, 1}):
		c.reportLacking(d.Pos, "directive .%s: clusters of blocks are not supported", d.Name)
	}
}

// checkLimit is about a directive with numbers of threads, blocks or registers.
func (c *declarations) checkLimit(f *Function, d Directive) {
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
