package mutate

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/go-vram/vram/lab/trial"
)

// Mutants returns the mutants of all packages, in the order of the source.
func (p *Program) Mutants() (all []*Mutant) {
	for _, of := range p.packages {
		for _, f := range of.files {
			if !ast.IsGenerated(f.tree) {
				all = append(all, find(f)...)
			}
		}
	}
	count := map[string]int{}
	for _, m := range all {
		key := m.Key()
		m.Nth = count[key]
		count[key]++
	}
	return all
}

// finder collects the mutants of a file.
type finder struct {
	*source
	found    []*Mutant
	function string
	hash     string
	results  *types.Tuple // of the innermost function
	loops    map[*ast.BranchStmt]ast.Stmt
	tabled   map[ast.Expr]bool // constants that plusOne leaves alone
}

func find(f *source) []*Mutant {
	s := &finder{source: f, tabled: map[ast.Expr]bool{}}
	for _, decl := range f.tree.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			s.enter(d)
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				s.function, s.hash = "", hashOf(f.of(d))
				s.walk(d)
			}
		}
	}
	return s.found
}

// enter looks for the mutants of a function. Functions that only make texts have none: tests do not, and need not, hold each word.
func (s *finder) enter(d *ast.FuncDecl) {
	if d.Body == nil || d.Name.Name == "init" || texts(d.Name.Name) {
		return
	}
	f, ok := s.pkg.info.Defs[d.Name].(*types.Func)
	if !ok {
		return
	}
	s.function, s.hash = trial.FunctionName(d), hashOf(s.of(d))
	s.results = f.Signature().Results()
	s.loops = loopsOf(d.Body)
	s.returnEarly(d)
	s.walk(d.Body)
	s.otherNames(d.Body)
}

// texts reports whether a function of that name only makes text for people.
func texts(name string) bool {
	return slices.Contains([]string{"String", "GoString", "Error", "LogValue", "Format", "Describe", "describe"}, name)
}

// walk visits a node and all nodes in it.
func (s *finder) walk(root ast.Node) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			outer := s.results
			if sig, ok := s.typeOf(n).(*types.Signature); ok {
				s.results = sig.Results()
			}
			s.walk(n.Body)
			s.results = outer
			return false
		case *ast.GenDecl:
			return n.Tok == token.VAR
		case *ast.ArrayType, *ast.StructType, *ast.FuncType, *ast.InterfaceType, *ast.MapType, *ast.ChanType:
			return false // its constants are part of a type
		case *ast.CallExpr:
			if s.says(n) || s.makes(n) {
				return false
			}
			s.call(n)
		case *ast.KeyValueExpr:
			s.walk(n.Value) // the key of an array must be constant
			return false
		case ast.Stmt:
			s.statement(n)
		case ast.Expr:
			s.expression(n)
			if tv := s.pkg.info.Types[n]; tv.Value != nil {
				return false // the whole constant is changed, not a part
			}
		}
		return true
	})
}

// says reports whether a call makes a text for people, or an error with one, or chooses the line that a failed test names, or crashes.
func (s *finder) says(call *ast.CallExpr) bool {
	switch of := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		return of.Name == "panic"
	case *ast.SelectorExpr:
		f, ok := s.pkg.info.Uses[of.Sel].(*types.Func)
		if !ok || f.Pkg() == nil {
			return false
		}
		return slices.Contains([]string{"fmt", "log", "log/slog", "errors"}, f.Pkg().Path()) && f.Name() != "Is" && f.Name() != "As" ||
			slices.Contains([]string{"Debug", "Info", "Warn", "Helper"}, f.Name()) || texts(f.Name())
	}
	return false
}

// makes reports whether a call makes a slice, map or channel: a capacity that is larger by one makes no difference.
func (s *finder) makes(call *ast.CallExpr) bool {
	id, ok := call.Fun.(*ast.Ident)
	return ok && id.Name == "make" && s.pkg.info.Types[id].IsBuiltin()
}

func (s *finder) typeOf(x ast.Expr) types.Type {
	if t := s.pkg.info.TypeOf(x); t != nil {
		return t
	}
	return types.Typ[types.Invalid]
}

// add adds a mutant that replaces a range by another text.
func (s *finder) add(op Operator, begin, end token.Pos, replacement string, wraps ...wrap) {
	m := &Mutant{
		Package: s.pkg.dir, Function: s.function, Operator: op, Hash: s.hash,
		Line: s.file.Line(begin), File: s.shown(), file: s.source, wraps: wraps,
	}
	m.describe(s.offset(begin), s.offset(end), replacement)
	s.found = append(s.found, m)
}

// shown returns the file's path from the root.
func (f *source) shown() string {
	return strings.TrimPrefix(f.pkg.dir+f.path[strings.LastIndexAny(f.path, `/\`):], "./")
}

// around wraps a node.
func (s *finder) around(n ast.Node, before, after string) wrap {
	return wrap{begin: s.offset(n.Pos()), end: s.offset(n.End()), before: before, after: after}
}

// typeText writes a type as the file can name it; "" if it cannot.
func (s *finder) typeText(t types.Type) string {
	named := true
	text := types.TypeString(t, func(p *types.Package) string {
		if p == s.pkg.types {
			return ""
		}
		for _, spec := range s.tree.Imports {
			if strings.Trim(spec.Path.Value, `"`) == p.Path() {
				if spec.Name != nil {
					return spec.Name.Name
				}
				return p.Name()
			}
		}
		named = false
		return ""
	})
	if !named {
		return ""
	}
	return text
}

// returnEarly leaves a function before its first statement, with zero values.
func (s *finder) returnEarly(d *ast.FuncDecl) {
	if len(d.Body.List) == 0 {
		return
	}
	var zero []string
	if d.Type.Results != nil {
		for _, field := range d.Type.Results.List {
			if !plain(s.typeOf(field.Type)) {
				return
			}
			for range max(1, len(field.Names)) {
				zero = append(zero, fmt.Sprintf("*new(%s)", s.of(field.Type)))
			}
		}
	}
	if first, ok := d.Body.List[0].(*ast.ReturnStmt); ok && allZero(s, first) {
		return
	}
	text := strings.TrimSpace("return " + strings.Join(zero, ", "))
	at := s.offset(d.Body.Lbrace) + 1
	s.add(ReturnEarly, d.Body.Lbrace+1, d.Body.Lbrace+1, " "+text+";",
		wrap{begin: at, end: at, before: " if mutantOn(" + number + ") { " + text + " };"})
}

// plain reports whether callers take the zero value of a type without a crash.
func plain(t types.Type) bool {
	switch of := t.Underlying().(type) {
	case *types.Basic, *types.Slice, *types.Map:
		return true
	case *types.Interface:
		return types.Identical(t, types.Universe.Lookup("error").Type())
	case *types.Struct:
		return of.NumFields() > 0
	}
	return false
}

// allZero reports whether a function consists of the return of constant zero values.
func allZero(s *finder, r *ast.ReturnStmt) bool {
	return !slices.ContainsFunc(r.Results, func(x ast.Expr) bool {
		return !s.pkg.info.Types[x].IsNil() && !s.zero(x)
	})
}
