package api_test

import (
	"encoding/json"
	"fmt"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every method of every exported type may be called on a nil pointer and on the zero value, and every function, and every method of an
// open value, with nil and zero arguments: none panics, and none waits for ever. The types and functions are in no list: a program is
// written that has those that the packages export.
func TestCallsWithNilAndZeroValuesReturn(t *testing.T) {
	folder, err := filepath.Abs(filepath.Join("testdata", "receivers"))
	require.NoError(t, err)
	made := t.TempDir()
	put := func(name string, content []byte) string {
		path := filepath.Join(made, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(folder, "types.go"): put("types.go", typesFile(load(t)))},
	})
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), "go", "run", "-ldflags=-s -w", "-overlay", put("overlay.json", overlay), "./testdata/receivers")
	command.Stderr = os.Stderr
	out, err := command.Output()
	require.NoError(t, err, "%s", out)
	assert.Empty(t, string(out), "return a typed error, a zero result, or do nothing")
}

// withoutFunctions are packages for users whose functions take more than the values of users: elementary takes the writer of a kernel,
// and the others a test, which they fail.
var withoutFunctions = []string{"compute/kernel/elementary", "cudadrv/drivertest", "vramtest"}

// typesFile is the Go file with the exported types and functions of the packages for users.
func typesFile(packages map[string]*types.Package) []byte {
	imports, list, functions := "", "", ""
	for i, path := range forUsers {
		scope, count := packages[path].Scope(), 0
		for _, name := range scope.Names() {
			f, ok := scope.Lookup(name).(*types.Func)
			if ok && f.Exported() && !slices.Contains(withoutFunctions, path) {
				count++
				functions += fmt.Sprintf("\t\t{%q, p%d.%s%s},\n", path+"."+name, i, name, arguments(f.Type()))
			}
			o, ok := scope.Lookup(name).(*types.TypeName)
			if !ok || !o.Exported() || types.IsInterface(o.Type()) {
				continue
			}
			count++
			list += fmt.Sprintf("\t\treflect.TypeFor[p%d.%s%s](),\n", i, name, arguments(o.Type()))
		}
		if count > 0 {
			imports += fmt.Sprintf("\tp%d %q\n", i, strings.TrimSuffix(module+"/"+path, "/"))
		}
	}
	const text = "package main\n\nimport (\n\t\"reflect\"\n%s)\n\nfunc exported() []reflect.Type {\n\treturn []reflect.Type{\n%s\t}\n}\n\n" +
		"func functions() []function {\n\treturn []function{\n%s\t}\n}\n"
	return fmt.Appendf(nil, text, imports, list, functions)
}

// arguments returns type arguments for a generic type or function, as "[float32]": the first ones that its constraints allow.
func arguments(of types.Type) string {
	generic, ok := of.(interface{ TypeParams() *types.TypeParamList })
	if !ok || generic.TypeParams().Len() == 0 {
		return ""
	}
	var names []string
	for p := range generic.TypeParams().TypeParams() {
		candidates := []types.BasicKind{types.Float32, types.Int, types.String}
		i := slices.IndexFunc(candidates, func(k types.BasicKind) bool {
			constraint, ok := p.Constraint().Underlying().(*types.Interface)
			return ok && types.Satisfies(types.Typ[k], constraint)
		})
		names = append(names, types.Typ[candidates[max(i, 0)]].Name())
	}
	return "[" + strings.Join(names, ", ") + "]"
}
