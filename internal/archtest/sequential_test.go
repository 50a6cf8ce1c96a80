package archtest

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sequentialDirs returns the folders that a Makefile names as without goroutines.
func sequentialDirs(makefile string) []string { return namedDirs(makefile, "SEQUENTIAL") }

// namedDirs returns the folders in a variable of a Makefile.
func namedDirs(makefile, variable string) []string {
	makefile = strings.ReplaceAll(makefile, "\\\n", " ")
	value := func(variable string) string {
		found := regexp.MustCompile(`(?m)^` + variable + ` +:= (.+)$`).FindStringSubmatch(makefile)
		if found == nil {
			return ""
		}
		return found[1]
	}
	return strings.Fields(strings.ReplaceAll(value(variable), "$(LAB)", value("LAB")))
}

// checkSequential requires that packages and their tests have one goroutine, so that the race detector could find nothing.
func checkSequential(t *tree, dirs []string) []finding {
	shared := []string{"context", "sync", "sync/atomic", "testing/synctest", "unsafe"}
	var found []finding
	for _, dir := range dirs {
		if !t.has(dir) {
			found = append(found, finding{dir, "there is no such package; SEQUENTIAL in the Makefile has gone stale"})
		}
	}
	for _, s := range t.sources {
		if !slices.Contains(dirs, s.dir) {
			continue
		}
		for _, spec := range s.file.Imports {
			if p := importPath(spec); slices.Contains(shared, p) {
				found = append(found, finding{t.place(spec), "a package that the race detector does not see uses " + p})
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if what := concurrency(n); what != "" {
				found = append(found, finding{t.place(n), "a package that the race detector does not see has " + what})
			}
			return true
		})
	}
	return found
}

// checkNamedGoroutines requires that the name of a test with goroutines says so, where make race runs the tests with such names alone.
func checkNamedGoroutines(t *tree, dirs []string) []finding {
	var found []finding
	for _, s := range t.sources {
		if !slices.Contains(dirs, s.dir) || within(s.dir, "examples") || within(s.dir, "lab") {
			continue
		}
		for _, decl := range s.file.Decls {
			test, ok := decl.(*ast.FuncDecl)
			if !ok || !strings.HasPrefix(test.Name.Name, "Test") || strings.Contains(test.Name.Name, "Goroutines") {
				continue
			}
			ast.Inspect(test, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					found = append(found, finding{t.place(n), "a test with goroutines without Goroutines in its name"})
				case *ast.SelectorExpr:
					if n.Sel.Name == "Go" {
						found = append(found, finding{t.place(n), "a test with goroutines without Goroutines in its name"})
					}
				}
				return true
			})
		}
	}
	return found
}

// TestSequentialPackages checks the packages that make race omits.
func TestSequentialPackages(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	dirs := sequentialDirs(string(makefile))
	require.NotEmpty(t, dirs)
	house := wholeHouse(t)
	slow := namedDirs(string(makefile), "SLOW_UNDER_RACE")
	require.NotEmpty(t, slow)
	programs := namedDirs(string(makefile), "PLAIN_PROGRAMS")
	require.NotEmpty(t, programs)
	for _, f := range slices.Concat(checkSequential(house, dirs), checkSequential(house, programs), checkNamedGoroutines(house, slow)) {
		t.Errorf("%s: %s", f.place, f.what)
	}

	house, err = loadTree(fstest.MapFS{
		"go.mod":      {Data: []byte("module example.org/house\n")},
		"a/a.go":      {Data: []byte("package a\n\nfunc one() {}\n")},
		"a/a_test.go": {Data: []byte("package a\n\nimport \"sync\"\n\nfunc two() {\n\tgo one()\n}\n")},
		"b/b.go":      {Data: []byte("package b\n\nimport \"sync\"\n")},
		"d/d_test.go": {Data: []byte("package d\n\nfunc TestOne() { go one() }\nfunc TestTwo() { w.Go(one) }\nfunc TestGoroutines() { go one() }\n")},
	})
	require.NoError(t, err)
	assert.Equal(t, []finding{
		{"c", "there is no such package; SEQUENTIAL in the Makefile has gone stale"},
		{"a/a_test.go:3", "a package that the race detector does not see uses sync"},
		{"a/a_test.go:6", "a package that the race detector does not see has a go statement"},
	}, checkSequential(house, sequentialDirs("X := b\nLAB   := c\nSEQUENTIAL := a \\\n\t$(LAB)\n")))
	assert.Empty(t, sequentialDirs("X := b\n"))
	assert.Equal(t, []finding{
		{"d/d_test.go:3", "a test with goroutines without Goroutines in its name"},
		{"d/d_test.go:4", "a test with goroutines without Goroutines in its name"},
	}, checkNamedGoroutines(house, []string{"b", "d"}))
}
