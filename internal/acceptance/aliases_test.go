package acceptance_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// listed finds the methods in the documentation of an alias, with their signatures.
var listed = regexp.MustCompile(`\[streams\.(\w+)\.(\w+)\](\(.*?): `)

// promised finds the methods of a type in the list of exported names.
var promised = regexp.MustCompile(`(?m)^pkg vram, method \(\*?(\w+)\) (\w+)(\(.*)$`)

// go doc finds no methods of an alias in the package that has the alias. So the documentation of
// each alias lists all of them, with the signatures of the list of exported names.
func TestAliasesListTheirMethods(t *testing.T) {
	t.Parallel()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, inModule("stream.go"), nil, parser.ParseComments)
	require.NoError(t, err)
	root, err := doc.NewFromFiles(files, []*ast.File{parsed}, "github.com/go-vram/vram")
	require.NoError(t, err)
	names, err := os.ReadFile(inModule("api", "vram.txt"))
	require.NoError(t, err)
	aliasCount := 0
	for _, alias := range root.Types {
		if !listed.MatchString(alias.Doc) {
			continue
		}
		aliasCount++
		has, want := map[string]string{}, map[string]string{}
		for _, m := range listed.FindAllStringSubmatch(strings.Join(strings.Fields(alias.Doc), " "), -1) {
			if m[1] == alias.Name {
				has[m[2]] = unnamed(t, m[3])
			}
		}
		for _, m := range promised.FindAllStringSubmatch(string(names), -1) {
			if m[1] == alias.Name {
				want[m[2]] = unnamed(t, m[3])
			}
		}
		assert.NotEmpty(t, want)
		assert.Equal(t, want, has, "the documentation of %s", alias.Name)
	}
	assert.Equal(t, 4, aliasCount)
}

// unnamed returns a signature without the names of its parameters.
func unnamed(t *testing.T, signature string) string {
	t.Helper()
	expression, err := parser.ParseExpr("func" + signature)
	require.NoError(t, err, signature)
	function := expression.(*ast.FuncType)
	for _, f := range function.Params.List {
		f.Names = nil
	}
	return types.ExprString(function)
}
