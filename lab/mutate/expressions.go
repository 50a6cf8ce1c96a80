package mutate

import (
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

// expression finds the mutants of an expression that is part of any other.
func (s *finder) expression(x ast.Expr) {
	switch x := x.(type) {
	case *ast.BinaryExpr:
		s.binary(x)
	case *ast.CompositeLit:
		s.table(x)
	case *ast.BasicLit:
		s.plusOne(x)
	}
}

func hasLiteral(x ast.Expr) (found bool) {
	ast.Inspect(x, func(n ast.Node) bool {
		_, literal := n.(*ast.BasicLit)
		found = found || literal
		return !found
	})
	return found
}

func (s *finder) binary(x *ast.BinaryExpr) {
	if s.pkg.info.Types[x].Value != nil {
		if hasLiteral(x) {
			s.plusOne(x)
		}
		return
	}
	if x.Op == token.LAND || x.Op == token.LOR {
		s.condition(x.X)
		s.condition(x.Y)
		return
	}
	basic, _ := s.typeOf(x.X).Underlying().(*types.Basic)
	r, ok := replacements()[x.Op]
	if !ok || r.kind == Arithmetic && basic != nil && basic.Info()&types.IsString != 0 {
		return
	}
	w := s.around(x, r.helper+"("+number+", ", ")")
	op, length := s.offset(x.OpPos), len(x.Op.String())
	w.token = [2]int{op, op + length}
	s.add(r.kind, x.OpPos, x.OpPos+token.Pos(length), r.by, w)
	if r.kind == Boundary && s.pure(x) {
		s.overflow(x)
	}
}

// overflow moves the second operand of a difference, a shift or a quotient to the other side of a comparison.
func (s *finder) overflow(x *ast.BinaryExpr) {
	opposite := map[token.Token]string{token.SUB: "+", token.SHR: "<<", token.QUO: "*"}
	move := func(side, other ast.Expr) (kept, moved string, ok bool) {
		part, _ := ast.Unparen(side).(*ast.BinaryExpr)
		if part == nil || s.pkg.info.Types[part].Value != nil {
			return "", "", false
		}
		basic, _ := s.typeOf(part).Underlying().(*types.Basic)
		by := opposite[part.Op]
		if by == "" || basic == nil || basic.Info()&types.IsInteger == 0 {
			return "", "", false
		}
		return s.of(part.X), "(" + s.of(other) + ")" + by + "(" + s.of(part.Y) + ")", true
	}
	changed := ""
	if kept, moved, ok := move(x.Y, x.X); ok {
		changed = moved + " " + x.Op.String() + " " + kept
	} else if kept, moved, ok := move(x.X, x.Y); ok {
		changed = kept + " " + x.Op.String() + " " + moved
	}
	if changed != "" {
		s.add(Overflow, x.Pos(), x.End(), changed, s.around(x, "mutantPick("+number+", ", ", "+changed+")"))
	}
}

// replacement is the mistake that an operator of the language has, and the helper that makes it.
type replacement struct {
	kind   Operator
	helper string
	by     string
}

func replacements() map[token.Token]replacement {
	return map[token.Token]replacement{
		token.LSS: {Boundary, "mutantLess", "<="},
		token.LEQ: {Boundary, "mutantLessEqual", "<"},
		token.GTR: {Boundary, "mutantGreater", ">="},
		token.GEQ: {Boundary, "mutantGreaterEqual", ">"},
		token.ADD: {Arithmetic, "mutantAdd", "-"},
		token.SUB: {Arithmetic, "mutantSub", "+"},
	}
}

// condition negates an expression that decides a branch. Operands of && and || are negated, not the whole.
func (s *finder) condition(x ast.Expr) {
	x = ast.Unparen(x)
	b, _ := x.(*ast.BinaryExpr)
	if b != nil && (b.Op == token.LAND || b.Op == token.LOR) {
		return // its operands
	}
	if tv := s.pkg.info.Types[x]; x == nil || !tv.IsValue() || tv.Value != nil || !isBool(s.typeOf(x)) {
		return
	}
	s.negate(x)
	if b != nil && b.Op == token.NEQ && isError(s.typeOf(b.X)) && s.pkg.info.Types[b.Y].IsNil() {
		s.add(IgnoreError, x.Pos(), x.End(), "false", s.around(x, "((", ") && !mutantOn("+number+"))"))
	}
}

func (s *finder) negate(x ast.Expr) {
	s.add(Negate, x.Pos(), x.End(), negated(s.of(x), x), s.around(x, "(mutantOn("+number+") != (", "))"))
}

// negated writes the opposite of a condition.
func negated(text string, x ast.Expr) string {
	switch x := x.(type) {
	case *ast.UnaryExpr:
		return text[1:]
	case *ast.Ident, *ast.CallExpr, *ast.SelectorExpr, *ast.IndexExpr:
		return "!" + text
	case *ast.BinaryExpr:
		opposite := map[token.Token]string{
			token.EQL: "!=", token.NEQ: "==", token.LSS: ">=", token.GEQ: "<", token.GTR: "<=", token.LEQ: ">",
		}
		if by := opposite[x.Op]; by != "" {
			at := int(x.OpPos - x.Pos())
			return text[:at] + by + text[at+len(x.Op.String()):]
		}
	}
	return "!(" + text + ")"
}

func isBool(t types.Type) bool {
	return types.Identical(types.Default(t), types.Typ[types.Bool])
}

func isError(t types.Type) bool {
	return types.Identical(t, types.Universe.Lookup("error").Type())
}

// plusOne changes an integer constant that is no part of a table.
func (s *finder) plusOne(x ast.Expr) {
	if !s.tabled[x] {
		s.increase(PlusOne, x)
	}
}

// increase adds one to an integer constant. Durations are left out: a nanosecond makes no difference.
func (s *finder) increase(op Operator, x ast.Expr) {
	tv := s.pkg.info.Types[x]
	if tv.Value == nil || tv.Value.Kind() != constant.Int {
		return
	}
	basic, _ := tv.Type.Underlying().(*types.Basic)
	if basic == nil || basic.Info()&types.IsInteger == 0 {
		return
	}
	of := s.typeText(types.Default(tv.Type))
	if of == "" || of == "time.Duration" {
		return
	}
	s.add(op, x.Pos(), x.End(), "("+s.of(x)+"+1)", s.around(x, "mutantPlus["+of+"]("+number+", ", ")"))
}

// table changes the constants of a composite literal, named ones too.
func (s *finder) table(x *ast.CompositeLit) {
	for _, element := range x.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
		}
		tv := s.pkg.info.Types[element]
		s.tabled[element] = true
		switch {
		case tv.Value == nil:
		case tv.Value.Kind() == constant.Bool && isBool(tv.Type):
			s.add(Table, element.Pos(), element.End(), "!"+s.of(element), s.around(element, "(mutantOn("+number+") != (", "))"))
		default:
			s.increase(Table, element)
		}
	}
}

// alwaysSwap has a CompareAndSwap of an atomic value store the new one without a look at the old one.
func (s *finder) alwaysSwap(call *ast.CallExpr) {
	of, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || of.Sel.Name != "CompareAndSwap" || len(call.Args) != 2 || !s.pure(of.X) {
		return
	}
	f, ok := s.pkg.info.Uses[of.Sel].(*types.Func)
	if !ok || f.Pkg() == nil || f.Pkg().Path() != "sync/atomic" {
		return
	}
	typed := ""
	if types.IsInterface(f.Signature().Params().At(0).Type()) {
		typed = "[any]" // the arguments may have another type
	}
	store := s.of(of.X) + ".Store"
	w := s.around(call, "mutantSwap"+typed+"("+number+", "+store+", ", "")
	w.token = [2]int{s.offset(call.Lparen), s.offset(call.Lparen) + 1}
	s.add(AlwaysSwap, call.Pos(), call.End(), store+"("+s.of(call.Args[1])+")", w)
}

// call swaps neighbouring arguments of one type that have no effects.
func (s *finder) call(call *ast.CallExpr) {
	s.alwaysSwap(call)
	sig, ok := s.typeOf(call.Fun).(*types.Signature)
	if !ok || s.pkg.info.Types[call.Fun].IsBuiltin() {
		return // min and max commute
	}
	for i := range len(call.Args) - 1 {
		a, b := call.Args[i], call.Args[i+1]
		if i+1 >= sig.Params().Len() || call.Ellipsis.IsValid() {
			return
		}
		first, second := s.pkg.info.Types[a], s.pkg.info.Types[b]
		if first.IsNil() || second.IsNil() || !types.Identical(first.Type, second.Type) || s.of(a) == s.of(b) ||
			!types.Identical(sig.Params().At(i).Type(), sig.Params().At(i+1).Type()) || !s.pure(a) || !s.pure(b) {
			continue
		}
		of := ""
		if first.Value != nil && second.Value != nil {
			if of = s.typeText(types.Default(first.Type)); of == "" {
				continue
			}
			of = "[" + of + "]"
		}
		s.add(SwapArgs, a.Pos(), b.End(), s.of(b)+", "+s.of(a),
			s.around(a, "mutantPick"+of+"("+number+", ", ", "+s.of(b)+")"), s.around(b, "mutantPick"+of+"("+number+", ", ", "+s.of(a)+")"))
	}
}

// pure reports whether an expression may be evaluated twice.
func (s *finder) pure(x ast.Expr) bool {
	pure := true
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if tv := s.pkg.info.Types[n.Fun]; !tv.IsType() && !tv.IsBuiltin() {
				pure = false
			}
		case *ast.FuncLit, *ast.CompositeLit:
			pure = false
		case *ast.UnaryExpr:
			pure = pure && n.Op != token.ARROW
		}
		return pure
	})
	return pure
}
