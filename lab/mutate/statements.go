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
	case *ast.RangeStmt:
		s.ends(n)
	case *ast.ReturnStmt:
		s.returned(n)
	}
}

func (s *finder) list(list []ast.Stmt) {
	for _, n := range list {
		if op := s.droppable(n); op != "" {
			s.add(op, n.Pos(), n.End(), "", s.around(n, "if !mutantOn("+number+") { ", " }"))
		}
		s.step(n)
	}
	taken := make([]bool, len(list)) // pairs must not overlap
	for _, kind := range []struct {
		op      Operator
		mistake func(a, b ast.Stmt) bool
	}{
		{SwapAtomics, func(a, b ast.Stmt) bool { return s.atomic(a) && s.atomic(b) }},
		{SwapSteps, s.swapped},
	} {
		for i := range len(list) - 1 {
			if a, b := list[i], list[i+1]; !taken[i] && !taken[i+1] && kind.mistake(a, b) {
				s.swap(kind.op, a, b)
				taken[i], taken[i+1] = true, true
			}
		}
	}
}

// swap changes the order of two statements.
func (s *finder) swap(op Operator, a, b ast.Stmt) {
	s.add(op, a.Pos(), b.End(), s.of(b)+"; "+s.of(a), wrap{
		begin: s.offset(a.Pos()), end: s.offset(b.End()),
		before: "if mutantOn(" + number + ") { " + s.of(b) + "; " + s.of(a) + " } else { ", after: " }",
	})
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

// step finds the mutants that replace a whole statement of a list.
func (s *finder) step(n ast.Stmt) {
	instead := func(op Operator, text string) {
		s.add(op, n.Pos(), n.End(), text, s.around(n, "if mutantOn("+number+") { "+text+" } else { ", " }"))
	}
	switch n := n.(type) {
	case *ast.DeferStmt:
		instead(CallNow, s.of(n.Call))
	case *ast.BranchStmt:
		switch {
		case n.Label != nil || s.loops[n] == nil:
		case n.Tok == token.BREAK:
			instead(OtherJump, "continue")
		case n.Tok == token.CONTINUE && !endless(s.loops[n]):
			instead(OtherJump, "break")
		}
	case *ast.ExprStmt:
		call, ok := n.X.(*ast.CallExpr)
		if !ok || !s.atomic(n) || len(call.Args) != 1 {
			break
		}
		if of, ok := call.Fun.(*ast.SelectorExpr); ok && of.Sel.Name == "Add" && s.pure(of.X) {
			x := s.of(of.X)
			instead(SplitAdd, x+".Store("+x+".Load() + ("+s.of(call.Args[0])+"))")
		}
	}
}

// loopsOf returns the innermost loop of each jump in a function.
func loopsOf(body *ast.BlockStmt) map[*ast.BranchStmt]ast.Stmt {
	all := map[*ast.BranchStmt]ast.Stmt{}
	var within func(part, loop ast.Stmt)
	within = func(part, loop ast.Stmt) {
		ast.Inspect(part, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ForStmt:
				within(n.Body, n)
				return false
			case *ast.RangeStmt:
				within(n.Body, n)
				return false
			case *ast.FuncLit:
				within(n.Body, nil)
				return false
			case *ast.BranchStmt:
				all[n] = loop
			}
			return true
		})
	}
	within(body, nil)
	return all
}

// endless reports whether a loop has no condition: a function may end with it, if nothing breaks it.
func endless(loop ast.Stmt) bool {
	n, ok := loop.(*ast.ForStmt)
	return ok && n.Cond == nil
}

// ends leaves out the first or the last of several.
func (s *finder) ends(n *ast.RangeStmt) {
	switch of := s.typeOf(n.X).Underlying().(type) {
	case *types.Slice:
		if blank, ok := n.Key.(*ast.Ident); n.Key == nil || ok && blank.Name == "_" {
			s.add(SkipEnd, n.X.Pos(), n.X.End(), s.of(n.X)+"[1:]", s.around(n.X, "mutantTail("+number+", ", ")"))
		}
		s.add(SkipEnd, n.X.Pos(), n.X.End(), s.of(n.X)+"[:len-1]", s.around(n.X, "mutantHead("+number+", ", ")"))
	case *types.Basic:
		if of.Info()&types.IsInteger != 0 && s.pkg.info.Types[n.X].Value == nil {
			s.add(SkipEnd, n.X.Pos(), n.X.End(), s.of(n.X)+" - 1", s.around(n.X, "mutantFewer("+number+", ", ")"))
		}
	}
}

// swapped reports whether it is a mistake that two neighbours change places: a call and another step, or a refusal and a step that must not happen
// then. Assignments to variables alone mostly commute.
func (s *finder) swapped(a, b ast.Stmt) bool {
	return s.calls(a) && (s.calls(b) || assigns(b)) || assigns(a) && s.calls(b) ||
		leaves(a) && (s.calls(b) || assigns(b)) || leaves(b) && (s.calls(a) || assigns(a))
}

// calls reports whether a statement is a call.
func (s *finder) calls(n ast.Stmt) bool {
	x, ok := n.(*ast.ExprStmt)
	if !ok {
		return false
	}
	call, ok := x.X.(*ast.CallExpr)
	return ok && !s.says(call)
}

// assigns reports whether a statement changes something that exists.
func assigns(n ast.Stmt) bool {
	switch n := n.(type) {
	case *ast.IncDecStmt:
		return true
	case *ast.AssignStmt:
		return n.Tok != token.DEFINE
	}
	return false
}

// leaves reports whether a statement may return.
func leaves(n ast.Stmt) bool {
	x, ok := n.(*ast.IfStmt)
	if !ok || x.Else != nil || len(x.Body.List) == 0 {
		return false
	}
	_, ok = x.Body.List[len(x.Body.List)-1].(*ast.ReturnStmt)
	return ok
}
