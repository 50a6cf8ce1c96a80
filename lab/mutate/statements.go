package mutate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// statement finds the mutants of a statement. Only one in a list can be dropped: others are part of an if or a for.
func (s *finder) statement(n ast.Stmt) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		s.list(n.List)
	case *ast.CaseClause:
		for _, x := range n.List {
			s.condition(x) // of a switch without a tag; other cases are seldom bools
		}
		s.list(n.Body)
	case *ast.CommClause:
		s.list(n.Body)
	case *ast.IfStmt:
		s.condition(n.Cond)
	case *ast.ForStmt:
		s.condition(n.Cond)
	case *ast.ReturnStmt:
		s.returned(n)
	}
}

func (s *finder) list(list []ast.Stmt) {
	for _, n := range list {
		if op := s.droppable(n); op != "" {
			s.add(op, n.Pos(), n.End(), "", s.around(n, "if !mutantOn("+number+") { ", " }"))
		}
	}
	for i := 0; i+1 < len(list); i++ {
		a, b := list[i], list[i+1]
		if !s.atomic(a) || !s.atomic(b) {
			continue
		}
		w := wrap{
			begin: s.offset(a.Pos()), end: s.offset(b.End()),
			before: "if mutantOn(" + number + ") { " + s.of(b) + "; " + s.of(a) + " } else { ", after: " }",
		}
		s.add(SwapAtomics, a.Pos(), b.End(), s.of(b)+"; "+s.of(a), w)
		i++ // pairs must not overlap
	}
}

// droppable returns the operator that drops a statement; "" if none does.
func (s *finder) droppable(n ast.Stmt) Operator {
	switch n := n.(type) {
	case *ast.DeferStmt:
		return DropDefer
	case *ast.IncDecStmt:
		return DropCount
	case *ast.SendStmt, *ast.GoStmt:
		return DropCall
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !s.says(call) {
			return s.dropped(call)
		}
	case *ast.AssignStmt:
		return s.assigned(n)
	}
	return ""
}

func (s *finder) dropped(call *ast.CallExpr) Operator {
	name := ""
	switch of := ast.Unparen(call.Fun).(type) {
	case *ast.Ident:
		name = of.Name
	case *ast.SelectorExpr:
		name = of.Sel.Name
	}
	if s.pkg.info.Types[call.Fun].IsBuiltin() && (name == "delete" || name == "copy" || name == "clear") {
		return DropUpdate
	}
	for _, prefix := range []string{"free", "close", "destroy", "release", "unlock", "done", "stop", "cancel", "unmap"} {
		if strings.HasPrefix(strings.ToLower(name), prefix) {
			return DropRelease
		}
	}
	return DropCall
}

func (s *finder) assigned(n *ast.AssignStmt) Operator {
	blank := true
	update := false
	for _, x := range n.Lhs {
		if id, ok := x.(*ast.Ident); !ok || id.Name != "_" {
			blank = false
		}
		if _, ok := x.(*ast.IndexExpr); ok {
			update = true
		}
	}
	if call, ok := n.Rhs[0].(*ast.CallExpr); ok && s.pkg.info.Types[call.Fun].IsBuiltin() && strings.HasPrefix(s.of(call), "append(") {
		update = true
	}
	switch {
	case n.Tok == token.DEFINE || blank:
		return ""
	case update:
		return DropUpdate
	case n.Tok != token.ASSIGN:
		return DropCount
	default:
		return DropAssign
	}
}

// atomic reports whether a statement that declares nothing has an atomic operation.
func (s *finder) atomic(n ast.Stmt) (found bool) {
	if assign, ok := n.(*ast.AssignStmt); ok && assign.Tok == token.DEFINE {
		return false
	}
	switch n.(type) {
	case *ast.AssignStmt, *ast.ExprStmt:
	default:
		return false
	}
	ast.Inspect(n, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			f, ok := s.pkg.info.Uses[sel.Sel].(*types.Func)
			found = found || ok && f.Pkg() != nil && f.Pkg().Path() == "sync/atomic"
		}
		return !found
	})
	return found
}

// returned negates returned bools and drops returned errors.
func (s *finder) returned(n *ast.ReturnStmt) {
	if s.results == nil || len(n.Results) != s.results.Len() {
		return
	}
	fails := false
	for i, x := range n.Results {
		fails = fails || s.fails(x, s.results.At(i).Type())
	}
	for i, x := range n.Results {
		if fails && s.zero(x) && (i < len(n.Results)-1 || !isBool(s.typeOf(x))) {
			s.tabled[x] = true // callers do not look at it
			continue
		}
		want := s.results.At(i).Type()
		tv := s.pkg.info.Types[x]
		switch {
		case types.Identical(want, types.Typ[types.Bool]) && tv.Value != nil:
			s.add(Negate, x.Pos(), x.End(), "!"+s.of(x), s.around(x, "(mutantOn("+number+") != (", "))"))
		case types.Identical(want, types.Typ[types.Bool]):
			s.condition(x)
		case isError(want) && !tv.IsNil():
			s.add(DropError, x.Pos(), x.End(), "nil", s.around(x, "mutantNil("+number+", ", ")"))
		}
	}
}

// fails reports whether a result says that the others have no meaning: an error, false, or a nil that is no error.
func (s *finder) fails(x ast.Expr, result types.Type) bool {
	tv := s.pkg.info.Types[x]
	switch {
	case tv.Value != nil:
		return tv.Value.ExactString() == "false"
	case tv.IsNil():
		return !isError(result)
	}
	return types.AssignableTo(tv.Type, types.Universe.Lookup("error").Type())
}

func (s *finder) zero(x ast.Expr) bool {
	tv := s.pkg.info.Types[x]
	return tv.Value != nil && slices.Contains([]string{"0", "false", `""`}, tv.Value.ExactString())
}
