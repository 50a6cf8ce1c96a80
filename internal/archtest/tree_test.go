package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// rootDir is the folder of the module's root package.
const rootDir = "."

// source is one Go file.
type source struct {
	path      string // from the module's root, with slashes
	dir       string // the folder of its package, rootDir for the root
	test      bool   // the name ends in _test.go
	lineCount int
	file      *ast.File
}

// tree is the source on disk: the module at its root, and the modules of go.work below it.
type tree struct {
	module  string // the path of the module at the root
	fset    *token.FileSet
	sources []source // in the order of their paths
}

// loadTree parses every Go file of the module at the root of fsys and of the modules of its go.work, except in testdata,
// vendor, hidden folders and other modules.
func loadTree(fsys fs.FS) (*tree, error) {
	gomod, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("the module's root: %w", err)
	}
	work, err := fs.ReadFile(fsys, "go.work")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	members := membersOf(string(work))
	t := &tree{fset: token.NewFileSet()}
	for line := range strings.Lines(string(gomod)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			t.module = strings.TrimSpace(name)
		}
	}
	if t.module == "" {
		return nil, fmt.Errorf("go.mod names no module")
	}
	err = fs.WalkDir(fsys, rootDir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if p != rootDir && isForeign(fsys, p, members) {
				return fs.SkipDir
			}
			return nil
		case path.Ext(p) != ".go":
			return nil
		}
		return t.add(fsys, p)
	})
	return t, err
}

// loadHouse parses this repository once for all tests, which only read it.
var loadHouse = sync.OnceValues(func() (*tree, error) { return loadTree(os.DirFS("../..")) })

// wholeHouse returns the tree of this repository.
func wholeHouse(t *testing.T) *tree {
	t.Helper()
	house, err := loadHouse()
	require.NoError(t, err)
	return house
}

// membersOf returns the folders that a go.work uses, one per line.
func membersOf(work string) (dirs []string) {
	for line := range strings.Lines(work) {
		fields := strings.Fields(line)
		if len(fields) > 0 && fields[0] != "//" && strings.HasPrefix(fields[len(fields)-1], ".") {
			dirs = append(dirs, path.Clean(fields[len(fields)-1]))
		}
	}
	return dirs
}

// isForeign reports whether the go command omits the folder from the modules' packages.
func isForeign(fsys fs.FS, dir string, members []string) bool {
	name := path.Base(dir)
	if name == "testdata" || name == "vendor" || name[0] == '.' || name[0] == '_' {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(dir, "go.mod"))
	return err == nil && !slices.Contains(members, dir)
}

func (t *tree) add(fsys fs.FS, p string) error {
	text, err := fs.ReadFile(fsys, p)
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(t.fset, p, text, parser.ParseComments)
	if err != nil {
		return err
	}
	t.sources = append(t.sources, source{
		path:      p,
		dir:       path.Dir(p),
		test:      strings.HasSuffix(p, "_test.go"),
		lineCount: bytes.Count(text, []byte("\n")),
		file:      file,
	})
	return nil
}

// shipped returns the files without tests.
func (t *tree) shipped() []source {
	return slices.DeleteFunc(slices.Clone(t.sources), func(s source) bool { return s.test })
}

// has reports whether the folder holds a package with shipped files.
func (t *tree) has(dir string) bool {
	return slices.ContainsFunc(t.shipped(), func(s source) bool { return s.dir == dir })
}

// place returns the file and line of a node.
func (t *tree) place(n ast.Node) string {
	at := t.fset.Position(n.Pos())
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

// houseDir turns an import path into a folder of this module.
func (t *tree) houseDir(importPath string) (dir string, ours bool) {
	if importPath == t.module {
		return rootDir, true
	}
	return strings.CutPrefix(importPath, t.module+"/")
}

// house returns the folders of this module that a file imports, with the place of each.
func (t *tree) house(s source) map[string]*ast.ImportSpec {
	dirs := map[string]*ast.ImportSpec{}
	for _, spec := range s.file.Imports {
		if dir, ours := t.houseDir(importPath(spec)); ours {
			dirs[dir] = spec
		}
	}
	return dirs
}

// reach returns the chain of imports from the folder start to each folder that it reaches, start included. It follows shipped
// files only, and does not continue at a folder for which stop is true.
func (t *tree) reach(start string, stop func(dir string) bool) map[string][]string {
	chains := map[string][]string{start: {start}}
	for todo := []string{start}; len(todo) > 0; todo = todo[1:] {
		from := todo[0]
		if stop(from) {
			continue
		}
		for _, s := range t.shipped() {
			if s.dir != from {
				continue
			}
			for dir := range t.house(s) {
				if chains[dir] == nil {
					chains[dir] = append(slices.Clone(chains[from]), dir)
					todo = append(todo, dir)
				}
			}
		}
	}
	return chains
}

func importPath(spec *ast.ImportSpec) string {
	p, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value // the parser refuses such a file
	}
	return p
}

// within reports whether the folder is parent or below it.
func within(dir, parent string) bool {
	return dir == parent || strings.HasPrefix(dir, parent+"/")
}

// uses returns the uses of the named members of the package at path in a file, under any local name. A dot import hides its
// uses and counts as one itself.
func uses(s source, path string, members ...string) []ast.Node {
	var found []ast.Node
	for _, spec := range s.file.Imports {
		if importPath(spec) != path {
			continue
		}
		local := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == "." {
			found = append(found, spec)
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok && slices.Contains(members, sel.Sel.Name) {
				if x, ok := sel.X.(*ast.Ident); ok && x.Name == local && x.Obj == nil {
					found = append(found, sel)
				}
			}
			return true
		})
	}
	return found
}
