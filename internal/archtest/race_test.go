package archtest

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A raceList says in the words of the Makefile what `make race` runs.
type raceList struct {
	starts *regexp.Regexp // matches a line that starts a goroutine
	slow   []string       // packages of which the short form runs tests with Goroutines in their names
	tests  []string       // beginnings of the names of tests that it omits
}

// raceListOf reads a Makefile.
func raceListOf(makefile string) (raceList, error) {
	makefile = strings.ReplaceAll(makefile, "\\\n", " ")
	value := func(variable string) string {
		found := regexp.MustCompile(`(?m)^` + variable + ` +:= (.+)$`).FindStringSubmatch(makefile)
		if found == nil {
			return ""
		}
		return found[1]
	}
	starts, err := regexp.Compile(`(?m)` + value("STARTS"))
	return raceList{starts, strings.Fields(value("SLOW_UNDER_RACE")), strings.Fields(value("SLOW_TESTS"))}, err
}

// goroutine returns the first node in n that starts a goroutine, nil if none does.
func goroutine(n ast.Node) (start ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			start = n
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Go" {
				start = n
			}
		}
		return start == nil
	})
	return start
}

// checkRaced requires that make race runs each package and test that starts goroutines. The list is of a Makefile, and read returns the text of a
// source.
func checkRaced(t *tree, list raceList, read func(path string) string) []finding {
	var found []finding
	missing := slices.Clone(list.tests)
	for _, s := range t.sources {
		if start := goroutine(s.file); start != nil && !list.starts.MatchString(read(s.path)) {
			found = append(found, finding{t.place(start), "STARTS in the Makefile does not match what starts this goroutine"})
		}
		for _, decl := range s.file.Decls {
			test, ok := decl.(*ast.FuncDecl)
			if !ok || !s.test || !strings.HasPrefix(test.Name.Name, "Test") {
				continue
			}
			name := test.Name.Name
			matches := func(begin string) bool { return strings.HasPrefix(name, begin) }
			slow := slices.ContainsFunc(list.tests, matches)
			missing = slices.DeleteFunc(missing, matches)
			start := goroutine(test)
			switch program := within(s.dir, "examples") || within(s.dir, "cmd"); {
			case start == nil:
			case slow:
				found = append(found, finding{t.place(start), "a test of SLOW_TESTS in the Makefile with goroutines"})
			case slices.Contains(list.slow, s.dir) && !program && !strings.Contains(name, "Goroutines"):
				found = append(found, finding{t.place(start), "a test with goroutines without Goroutines in its name"})
			}
		}
	}
	for _, dir := range list.slow {
		if !t.has(dir) {
			found = append(found, finding{dir, "SLOW_UNDER_RACE in the Makefile names a package that does not exist"})
		}
	}
	for _, name := range missing {
		found = append(found, finding{name, "SLOW_TESTS in the Makefile names a test that does not exist"})
	}
	return found
}

func TestWhatMakeRaceRuns(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	require.NoError(t, err)
	list, err := raceListOf(string(makefile))
	require.NoError(t, err)
	require.NotEmpty(t, list.slow)
	require.NotEmpty(t, list.tests)
	for _, f := range checkRaced(wholeHouse(t), list, func(path string) string {
		text, err := os.ReadFile(filepath.Join("../..", path))
		require.NoError(t, err)
		return string(text)
	}) {
		t.Errorf("%s: %s", f.place, f.what)
	}
}

func TestFaultsInWhatMakeRaceRuns(t *testing.T) {
	files := fstest.MapFS{
		"go.mod":      {Data: []byte("module example.org/house\n")},
		"a/a.go":      {Data: []byte("package a\n\nfunc one() {\n\tgo one()\n}\n")},
		"b/b.go":      {Data: []byte("package b\n\nfunc one() {\n\tif true { go one() }\n}\n")},
		"c/c.go":      {Data: []byte("package c\n\nfunc one() { w.Go(one) }\n")},
		"d/d.go":      {Data: []byte("package d\n")},
		"d/d_test.go": {Data: []byte("package d\n\nfunc TestOne() {\n\tgo one()\n}\nfunc TestTwo() { w.Go(one) }\nfunc TestGoroutines() { w.Go(one) }\n")},
		"e/e_test.go": {Data: []byte("package e\n\nfunc TestLong() { w.Go(one) }\n")},
	}
	house, err := loadTree(files)
	require.NoError(t, err)
	list, err := raceListOf("STARTS     := ^[[:space:]]*go |[.]Go[(]\nSLOW_UNDER_RACE := d \\\n\tx\nSLOW_TESTS := TestLo TestGone\n")
	require.NoError(t, err)
	assert.Equal(t, []finding{
		{"b/b.go:4", "STARTS in the Makefile does not match what starts this goroutine"},
		{"d/d_test.go:4", "a test with goroutines without Goroutines in its name"},
		{"d/d_test.go:6", "a test with goroutines without Goroutines in its name"},
		{"e/e_test.go:3", "a test of SLOW_TESTS in the Makefile with goroutines"},
		{"x", "SLOW_UNDER_RACE in the Makefile names a package that does not exist"},
		{"TestGone", "SLOW_TESTS in the Makefile names a test that does not exist"},
	}, checkRaced(house, list, func(path string) string { return string(files[path].Data) }))
	_, err = raceListOf("STARTS := (\n")
	require.Error(t, err)
}
