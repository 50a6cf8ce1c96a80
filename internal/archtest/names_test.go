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

// named matches a name of the module as stack traces and pages write it: "internal/pool/core.(*Core).climb".
var named = regexp.MustCompile("`([a-z][a-z0-9/]*)\\.((?:\\(\\*?[A-Za-z]\\w*\\)\\.|[A-Za-z]\\w*\\.)?[A-Za-z]\\w*)`")

// declared returns the names that packages declare, qualified with the folder: types, functions, "(*Core).climb", variables,
// constants, and fields and methods of interfaces as "Core.climb".
func declared(t *tree) map[string]bool {
	all := map[string]bool{}
	for _, s := range t.shipped() {
		add := func(name string) { all[shown(s.dir)+"."+name] = true }
		for _, decl := range s.file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name.Name)
					continue
				}
				receiver, pointer := receiverOf(d.Recv.List[0].Type)
				add(receiver + "." + d.Name.Name)
				if pointer {
					add("(*" + receiver + ")." + d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addSpec(spec, add)
				}
			}
		}
	}
	return all
}

func addSpec(spec ast.Spec, add func(string)) {
	switch spec := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range spec.Names {
			add(name.Name)
		}
	case *ast.TypeSpec:
		add(spec.Name.Name)
		var members *ast.FieldList
		switch of := spec.Type.(type) {
		case *ast.StructType:
			members = of.Fields
		case *ast.InterfaceType:
			members = of.Methods
		default:
			return
		}
		for _, member := range members.List {
			for _, name := range member.Names {
				add(spec.Name.Name + "." + name.Name)
			}
		}
	}
}

// receiverOf returns the name of a method's type, without type parameters.
func receiverOf(x ast.Expr) (name string, pointer bool) {
	for {
		switch of := x.(type) {
		case *ast.StarExpr:
			x, pointer = of.X, true
		case *ast.IndexExpr:
			x = of.X
		case *ast.IndexListExpr:
			x = of.X
		case *ast.Ident:
			return of.Name, pointer
		default:
			return "", pointer
		}
	}
}

// Every function and type that the pages name as package.name exists.
func TestPagesNameWhatThereIs(t *testing.T) {
	house := wholeHouse(t)
	names := declared(house)
	for _, page := range []string{"architecture.md", "glossary.md"} {
		text, err := os.ReadFile(filepath.Join("../../docs", page))
		require.NoError(t, err)
		missing, count := missingNames(string(text), house, names)
		assert.Greater(t, count, 20, page)
		for _, name := range missing {
			assert.Fail(t, name+": the code has no such name", page)
		}
	}
}

// Names of every kind are found, and names of other modules are ignored.
func TestMissingNamesAreFound(t *testing.T) {
	house, err := loadTree(fstest.MapFS{
		"go.mod": {Data: []byte("module example.org/house\n")},
		"doc.go": {Data: []byte("package vram\n\nfunc Open() {}\n\nconst Most = 1\n")},
		"a/b.go": {Data: []byte("package a\n\ntype T[K any] struct{ Field int }\n\nfunc (t *T[K]) run() {}\n\ntype I interface{ Do() }\n")},
	})
	require.NoError(t, err)
	page := "`vram.Open`, `vram.Most`, `a.T`, `a.T.Field`, `a.(*T).run`, `a.T.run`, `a.I.Do`; `a.(*T).fly`, `vram.Close`, `a/gone.T`; `no/such.Name`, `fmt.Println`"
	missing, count := missingNames(page, house, declared(house))
	assert.Equal(t, []string{"a.(*T).fly", "vram.Close", "a/gone.T"}, missing)
	assert.Equal(t, 10, count)
}

// missingNames returns the names of a page that no package has, and the number of all its names.
func missingNames(page string, t *tree, names map[string]bool) (missing []string, count int) {
	for _, match := range named.FindAllStringSubmatch(page, -1) {
		dir := match[1]
		if dir == "vram" {
			dir = rootDir
		}
		top, _, _ := strings.Cut(dir, "/")
		if dir != rootDir && !slices.ContainsFunc(t.sources, func(s source) bool { return within(s.dir, top) }) {
			continue // of another module; a deleted package is missing with its names
		}
		count++
		name := shown(dir) + "." + match[2]
		if !names[name] && !names[strings.Replace(name, "(*", "(", 1)] {
			missing = append(missing, name)
		}
	}
	return missing, count
}
