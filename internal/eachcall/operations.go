package eachcall

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// isText reports whether methods of that name make texts and errors, and no driver calls.
func isText(name string) bool {
	return strings.HasPrefix(name, "Marshal") || strings.HasPrefix(name, "Unmarshal") || name == "Unwrap"
}

// Operations asserts that each exported function and method of a package that returns an error is either called in a file of
// tests, whose operations Run tries, or has a reason in the list; and that the list has no others. names is the list of promised
// names, api/vram.txt, and pkg the package's name there. Methods are named as Context.Launch.
func Operations(t *testing.T, names, pkg, tests string, reasons map[string]string) {
	t.Helper()
	text, err := os.ReadFile(names) //nolint:gosec // of this module
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), tests, nil, 0)
	require.NoError(t, err)
	called := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok { // a call, or a method as a value that Run calls
			called[s.Sel.Name] = true
		}
		if i, ok := n.(*ast.Ident); ok { // in the package's own tests
			called[i.Name] = true
		}
		return true
	})
	// A function or method whose last result is an error.
	operation := regexp.MustCompile(`^pkg (\S+), (?:func (\w+)|method \(\*?(\w+)\) (\w+))(?:\[.*?\])?\(.*\berror\)?$`)
	found := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		m := operation.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil || m[1] != pkg {
			continue
		}
		name, full := m[2], m[2]
		if m[4] != "" {
			name, full = m[4], m[3]+"."+m[4]
		}
		found[full] = true
		if isText(name) {
			continue
		}
		_, excused := reasons[full]
		switch {
		case !called[name] && !excused:
			assert.Fail(t, "an operation is not tried", "%s: call it in %s, or give a reason", full, tests)
		case called[name] && excused:
			assert.Fail(t, "an operation is tried", "%s has a reason not to be", full)
		}
	}
	require.NotEmpty(t, found, "operations of %s in %s", pkg, names)
	for _, full := range slices.Sorted(maps.Keys(reasons)) {
		assert.True(t, found[full], "%s has a reason, and is no operation", full)
	}
}
