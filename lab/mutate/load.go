package mutate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-vram/vram/lab/trial"
)

// Program is packages with their types.
type Program struct {
	root     string // a folder of the go command's workspace
	packages []*pkg
	importer types.Importer
	fset     *token.FileSet
}

// pkg is a package whose source is changed.
type pkg struct {
	dir   string // from the root
	path  string // that others import
	name  string
	files []*source
	types *types.Package
	info  *types.Info
}

// source is a file.
type source struct {
	pkg  *pkg
	path string // absolute
	text string
	tree *ast.File
	file *token.File
}

// listed is a package as the go command prints it.
type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles                       []string
	DepOnly, Standard             bool
}

// Load reads the packages that patterns of the go command name, from a folder on. Packages that use C, and generated files, are
// left out.
func Load(ctx context.Context, root string, patterns ...string) (*Program, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"list", "-export", "-deps", "-json=ImportPath,Name,Dir,Export,GoFiles,DepOnly,Standard", "--",
		"cmp", "os", "strconv", "syscall",
	}, patterns...) // helpers imports these
	said, err := trial.Go(ctx, root, args...)
	if err != nil {
		return nil, err
	}
	var all []listed
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(said)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("mutate: go list: %w", err)
		}
		exports[l.ImportPath] = l.Export
		if !l.DepOnly && !l.Standard && len(l.GoFiles) > 0 {
			all = append(all, l)
		}
	}
	p := &Program{root: root, fset: token.NewFileSet()}
	p.importer = importer.ForCompiler(p.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s has no export data", path)
		}
		return os.Open(exports[path])
	})
	slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	for _, l := range all {
		of, err := p.read(l)
		if err != nil {
			return nil, err
		}
		p.packages = append(p.packages, of)
	}
	return p, nil
}

// read parses and checks a package.
func (p *Program) read(l listed) (*pkg, error) {
	dir, err := filepath.Rel(p.root, l.Dir)
	if err != nil {
		return nil, err
	}
	of := &pkg{dir: filepath.ToSlash(dir), path: l.ImportPath, name: l.Name}
	for _, name := range l.GoFiles {
		path := filepath.Join(l.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(p.fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		of.files = append(of.files, &source{of, path, string(text), tree, p.fset.File(tree.Pos())})
	}
	of.info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	trees := make([]*ast.File, len(of.files))
	for i, f := range of.files {
		trees[i] = f.tree
	}
	of.types, err = (&types.Config{Importer: p.importer}).Check(of.path, p.fset, trees, of.info)
	if err != nil {
		return nil, fmt.Errorf("mutate: %w", err)
	}
	return of, nil
}

// offset returns the place of a node in its file.
func (f *source) offset(at token.Pos) int { return f.file.Offset(at) }

// of returns the text of a node.
func (f *source) of(n ast.Node) string { return f.text[f.offset(n.Pos()):f.offset(n.End())] }
