package archtest

import (
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/token"
	"go/types"
	"regexp"
	"strings"
)

// checkLocks checks the packages that an allocation or a free executes: all up to the root, except the drivers, whose simulated
// device may lock, and files of checked builds, which catch mistakes in tests.
func checkLocks(t *tree) []finding {
	layers := houseLayers()
	root, _, _ := berth(layers, rootDir)
	var found []finding
	for _, s := range t.shipped() {
		level, folder, ok := berth(layers, s.dir)
		if !ok || level > root || folder == "cudadrv" || checkedOnly(s) {
			continue
		}
		for _, n := range uses(s, "sync", "Mutex", "RWMutex", "Cond", "NewCond", "Map", "Pool", "Locker") {
			found = append(found, finding{t.place(n), "a lock of the package sync on the way of an allocation"})
		}
	}
	return found
}

// checkAtomics looks for an atomic that is stored a value of its own load.
func checkAtomics(t *tree) []finding {
	var found []finding
	for _, s := range t.shipped() {
		ast.Inspect(s.file, func(n ast.Node) bool {
			store, of := methodOf(n, "Store")
			if store == nil {
				return true
			}
			for _, value := range store.Args {
				ast.Inspect(value, func(n ast.Node) bool {
					if load, other := methodOf(n, "Load"); load != nil && len(load.Args) == 0 && other == of {
						found = append(found, finding{t.place(n), of + " is loaded to be stored: another goroutine's change is lost"})
					}
					return true
				})
			}
			return true
		})
	}
	return found
}

// methodOf returns a call of a method of that name, and the text of the value that it is called on; nil for another node.
func methodOf(n ast.Node, name string) (call *ast.CallExpr, of string) {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return nil, ""
	}
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || method.Sel.Name != name {
		return nil, ""
	}
	return call, types.ExprString(method.X)
}

// checkedOnly reports whether a file is built for the race detector or with the tag invariants only.
func checkedOnly(s source) bool {
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			if c.Pos() < s.file.Package && c.Text == "//go:build race || invariants" {
				return true
			}
		}
	}
	return false
}

func checkGlobals(t *tree) []finding {
	var found []finding
	for _, s := range t.shipped() {
		for _, decl := range s.file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.Name == "init" && !registers(s, decl) {
					found = append(found, finding{t.place(decl), "an init function"})
				}
			case *ast.GenDecl:
				if decl.Tok != token.VAR || t.markedConstant(s, decl) || embeds(decl.Doc) || checkedOnly(s) {
					continue
				}
				for _, spec := range decl.Specs {
					found = append(found, t.checkVariables(s, spec)...)
				}
			}
		}
	}
	return found
}

// registers reports whether an init function only gives a driver its name, as cudadrv.Register does: that starts nothing.
func registers(s source, init *ast.FuncDecl) bool {
	if !within(s.dir, "cudadrv") || len(init.Body.List) != 1 {
		return false
	}
	statement, ok := init.Body.List[0].(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := statement.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := fun.X.(*ast.Ident)
	return ok && of.Name == "cudadrv" && fun.Sel.Name == "Register"
}

func (t *tree) checkVariables(s source, spec ast.Spec) []finding {
	vars, ok := spec.(*ast.ValueSpec)
	if !ok || t.markedConstant(s, spec) || embeds(vars.Doc) {
		return nil
	}
	var found []finding
	for i, name := range vars.Names {
		if name.Name == "_" || i < len(vars.Values) && (isSentinel(name.Name, vars.Values[i]) || isExpression(vars.Values[i])) {
			continue
		}
		found = append(found, finding{t.place(name), fmt.Sprintf(
			"the package variable %s is no sentinel error, no embedded file and not marked %s", name.Name, constantMark())})
	}
	return found
}

// isExpression reports whether a value is a regular expression of a literal, which is a constant to the linter, too.
func isExpression(value ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return false
	}
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || function.Sel.Name != "MustCompile" {
		return false
	}
	from, ok := function.X.(*ast.Ident)
	_, literal := call.Args[0].(*ast.BasicLit)
	return ok && literal && from.Name == "regexp"
}

// embeds reports whether a go:embed directive fills the variable.
func embeds(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if strings.HasPrefix(c.Text, "//go:embed ") {
			return true
		}
	}
	return false
}

// isSentinel reports whether a variable is an error to compare with: a new error, an error type's value without fields, or
// another package's sentinel.
func isSentinel(name string, value ast.Expr) bool {
	errorName := regexp.MustCompile(`^[Ee]rr[A-Z]`)
	if !errorName.MatchString(name) {
		return false
	}
	switch value := value.(type) {
	case *ast.Ident:
		return errorName.MatchString(value.Name)
	case *ast.SelectorExpr:
		return errorName.MatchString(value.Sel.Name)
	case *ast.UnaryExpr:
		literal, ok := value.X.(*ast.CompositeLit)
		if !ok || len(literal.Elts) > 0 {
			return false
		}
		of, ok := literal.Type.(*ast.Ident)
		return ok && strings.HasSuffix(of.Name, "Error")
	case *ast.CallExpr:
		fun, ok := value.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		x, ok := fun.X.(*ast.Ident)
		return ok && (x.Name == "errors" && fun.Sel.Name == "New" || x.Name == "fmt" && fun.Sel.Name == "Errorf" ||
			x.Name == "recovered" && fun.Sel.Name == "Planted")
	}
	return false
}

// constantMark finds an author's statement that nobody writes a variable: "constant table of ..."; "identity, never written" if
// only its address matters; "made on first use" if a process has one and importing makes none; "process is watched" for tests
// that see hidden panics.
func constantMark() *regexp.Regexp {
	return regexp.MustCompile(`^//nolint:gochecknoglobals // .*([Cc]onstant|never written|made on first use|process is watched)`)
}

// markedConstant reports whether a comment on the node's first line, or on the line before it, has the mark. Go has no constant
// arrays or structs, so the rule relies on the author's statement to the linter.
func (t *tree) markedConstant(s source, n ast.Node) bool {
	first := t.fset.Position(n.Pos()).Line
	for _, group := range s.file.Comments {
		for _, c := range group.List {
			line := t.fset.Position(c.Pos()).Line
			if (line == first || line == first-1) && constantMark().MatchString(c.Text) {
				return true
			}
		}
	}
	return false
}

// needsTag reports whether a file is built only with the tag.
func needsTag(file *ast.File, tag string) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if c.Pos() > file.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			return err == nil && demands(expr, tag)
		}
	}
	return false
}

// demands reports whether the expression is false whenever the tag is missing.
func demands(expr constraint.Expr, tag string) bool {
	switch expr := expr.(type) {
	case *constraint.TagExpr:
		return expr.Tag == tag
	case *constraint.AndExpr:
		return demands(expr.X, tag) || demands(expr.Y, tag)
	case *constraint.OrExpr:
		return demands(expr.X, tag) && demands(expr.Y, tag)
	}
	return false // not X may hold without the tag
}
