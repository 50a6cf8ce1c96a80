package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// A core is a package that decides and performs nothing: its results are effects.
type core struct {
	dir    string
	atomic bool // it has words that goroutines share
}

func houseCores() []core {
	return []core{
		{dir: "internal/heap"},
		{dir: "internal/pressure"},
		{dir: "internal/pool/core"},
		{dir: "compute/ptx"},
		{dir: "internal/stream/claims", atomic: true}, // bills
		{dir: "internal/stream/core", atomic: true},   // magazines
		{dir: "cudadrv/hazard/internal/core"},
		{dir: "compute/tensor/layout"},
		{dir: "compute/kernel/tune"},
		{dir: "fleet/core"},
	}
}

// checkCores requires purity of each core and of every package of the module that it reaches, except cudadrv, for its types,
// and cudadrv/site, for places that no core reads.
func checkCores(t *tree) []finding {
	var found []finding
	for _, c := range houseCores() {
		if !t.has(c.dir) {
			found = append(found, finding{c.dir, "there is no such core; the table of cores (houseCores) has gone stale"})
			continue
		}
		isPure := func(dir string) bool {
			return dir == c.dir || !within(dir, "actors") && !within(dir, "futures") && !within(dir, "cudadrv")
		}
		chains := t.reach(c.dir, func(dir string) bool { return !isPure(dir) })
		for _, dir := range slices.Sorted(maps.Keys(chains)) {
			switch {
			case dir == "cudadrv", dir == "cudadrv/site":
			case !isPure(dir):
				found = append(found, finding{c.dir, "the core reaches " + dir + ": " + strings.Join(chains[dir], " > ")})
			default:
				found = append(found, t.checkPure(c, dir)...)
			}
		}
	}
	return found
}

// checkPure checks one package of a core, or one that the core reaches.
func (t *tree) checkPure(c core, dir string) []finding {
	worldly := []string{"context", "sync", "os", "net", "log", "math/rand", "crypto/rand"}
	if !c.atomic {
		worldly = append(worldly, "sync/atomic")
	}
	var found []finding
	for _, s := range t.shipped() {
		if s.dir != dir {
			continue
		}
		for _, spec := range s.file.Imports {
			p := importPath(spec)
			if p == "sync/atomic" && c.atomic || p == "sync" && makesTables(s.file) {
				continue
			}
			if slices.ContainsFunc(worldly, func(w string) bool { return within(p, w) }) {
				found = append(found, finding{t.place(spec), fmt.Sprintf("the core %s uses %s", c.dir, p)})
			}
		}
		for _, n := range uses(s, "time", "Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick",
			"NewTimer", "NewTicker", "Timer", "Ticker") {
			found = append(found, finding{t.place(n), "the core " + c.dir + " looks at the clock; time comes inside its input"})
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := concurrency(n); what != "" {
				found = append(found, finding{t.place(n), "the core " + c.dir + " has " + what})
			}
			return true
		})
	}
	return found
}

// makesTables reports whether a file uses sync only for values that are made once and never change.
func makesTables(file *ast.File) bool {
	tables := true
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && x.Name == "sync" && s.Sel.Name != "OnceValue" && s.Sel.Name != "OnceValues" {
				tables = false
			}
		}
		return tables
	})
	return tables
}

// concurrency describes a node that starts a goroutine or uses a channel.
func concurrency(n ast.Node) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a go statement"
	case *ast.ChanType:
		return "a channel"
	case *ast.SelectStmt:
		return "a select statement"
	case *ast.SendStmt:
		return "a send"
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			return "a receive"
		}
	}
	return ""
}
