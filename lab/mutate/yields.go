package mutate

import (
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// yielding is the file that each package with yields gets.
//
//go:embed yielding.go.txt
var yielding string

// Yields returns the files that have atomic variables or locks, by absolute paths, with yields before and after each use of one, and texts, such as
// the texts of a Schemata, which replace the source of these packages.
func (p *Program) Yields(texts map[string]string) (map[string]string, error) {
	all := map[string]string{}
	maps.Copy(all, texts)
	for _, of := range p.packages {
		if err := p.yields(of, texts, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// yields adds the changed files of a package to all.
func (p *Program) yields(of *pkg, texts, all map[string]string) error {
	folder := filepath.Dir(of.files[0].path)
	now := map[string]string{}
	for _, f := range of.files {
		now[f.path] = f.text
		if text, ok := texts[f.path]; ok {
			now[f.path] = text
		}
	}
	if path := filepath.Join(folder, overlayFile); texts[path] != "" {
		now[path] = texts[path]
	}
	fset := token.NewFileSet()
	trees := map[string]*ast.File{}
	var files []*ast.File
	for path, text := range now {
		tree, err := parser.ParseFile(fset, path, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		trees[path] = tree
		files = append(files, tree)
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	if _, err := (&types.Config{Importer: p.importer}).Check(of.path, fset, files, info); err != nil {
		return fmt.Errorf("mutate: %w", err)
	}
	changed := false
	for path, tree := range trees {
		if text := withYields(fset, tree, info, now[path]); text != now[path] {
			all[path], changed = text, true
		}
	}
	if changed {
		all[filepath.Join(folder, "yields_overlay.go")] = strings.Replace(yielding, "package yielding", "package "+of.name, 1)
	}
	return nil
}

// withYields returns the text of a file with yields: x.Store(y.Load()) becomes yieldBefore(&x).Store(yieldAfter(yieldBefore(&y).Load())). Lines
// stay where they are.
func withYields(fset *token.FileSet, tree *ast.File, info *types.Info, text string) string {
	type insertion struct {
		at   int
		text string
	}
	var all []insertion
	around := func(n ast.Node, before string) {
		all = append(all, insertion{fset.Position(n.Pos()).Offset, before}, insertion{fset.Position(n.End()).Offset, ")"})
	}
	statements := map[*ast.CallExpr]bool{} // calls that a statement needs as they are
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			statements[n.Call] = true
		case *ast.GoStmt:
			statements[n.Call] = true
		case *ast.CallExpr:
			if of, ok := n.Fun.(*ast.SelectorExpr); ok && usesAtomic(info, of) && of.Sel.Name == "Load" && !statements[n] {
				around(n, "yieldAfter(")
			}
		case *ast.ExprStmt:
			if call, ok := n.X.(*ast.CallExpr); ok && unlocks(info, call) {
				all = append(all, insertion{fset.Position(n.End()).Offset, "; yieldSometimes()"})
			}
		case *ast.SelectorExpr:
			if !usesAtomic(info, n) && !usesLock(info, n) {
				break
			}
			if _, pointer := info.Types[n.X].Type.Underlying().(*types.Pointer); pointer {
				around(n.X, "yieldBefore(")
			} else {
				around(n.X, "yieldBefore(&")
			}
		}
		return true
	})
	slices.Reverse(all) // of two that begin at one place the inner one is found later, and goes in first
	slices.SortStableFunc(all, func(a, b insertion) int { return b.at - a.at })
	for _, i := range all {
		text = text[:i.at] + i.text + text[i.at:]
	}
	return text
}

// usesAtomic reports whether a selector is a method of an atomic variable.
func usesAtomic(info *types.Info, of *ast.SelectorExpr) bool {
	return methodOf(info, of, "sync/atomic")
}

// usesLock reports whether a selector locks or unlocks.
func usesLock(info *types.Info, of *ast.SelectorExpr) bool {
	return methodOf(info, of, "sync") && slices.Contains([]string{"Lock", "Unlock", "RLock", "RUnlock"}, of.Sel.Name)
}

// unlocks reports whether a call unlocks.
func unlocks(info *types.Info, call *ast.CallExpr) bool {
	of, ok := call.Fun.(*ast.SelectorExpr)
	return ok && usesLock(info, of) && strings.HasSuffix(of.Sel.Name, "Unlock")
}

// methodOf reports whether a selector is a method of a type in a package.
func methodOf(info *types.Info, of *ast.SelectorExpr, path string) bool {
	s := info.Selections[of]
	return s != nil && s.Kind() != types.FieldVal && s.Obj().Pkg() != nil && s.Obj().Pkg().Path() == path
}
