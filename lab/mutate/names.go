package mutate

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// namer looks for the mutants that use another variable, field or constant of the same type: the wrong one of two.
type namer struct {
	*finder
	written map[ast.Expr]bool // assigned to, or its address is taken
	methods map[ast.Expr]bool // a method is called on it
	parts   map[*ast.Ident]bool
}

// otherNames finds them in a function or in a variable's declaration.
func (s *finder) otherNames(root ast.Node) {
	n := namer{s, map[ast.Expr]bool{}, map[ast.Expr]bool{}, map[*ast.Ident]bool{}}
	var visit func(x ast.Node) bool
	visit = func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.AssignStmt:
			for _, left := range x.Lhs {
				n.written[ast.Unparen(left)] = true
			}
		case *ast.IncDecStmt:
			n.written[ast.Unparen(x.X)] = true
		case *ast.RangeStmt:
			n.written[x.Key], n.written[x.Value] = true, true
		case *ast.UnaryExpr:
			if x.Op == token.AND {
				n.written[ast.Unparen(x.X)] = true
			}
		case *ast.CallExpr:
			if s.says(x) || s.makes(x) {
				return false
			}
			if of, ok := x.Fun.(*ast.SelectorExpr); ok {
				n.methods[of.X] = true
			}
		case *ast.KeyValueExpr:
			ast.Inspect(x.Value, visit) // the key of an array must be constant
			return false
		case *ast.GenDecl:
			return x.Tok == token.VAR
		case *ast.ArrayType, *ast.StructType, *ast.FuncType, *ast.InterfaceType, *ast.MapType, *ast.ChanType:
			return false
		case *ast.SelectorExpr:
			n.parts[x.Sel] = true
			n.selector(x)
		case *ast.Ident:
			n.ident(x)
		}
		return true
	}
	ast.Inspect(root, visit)
}

// selector takes the next field of the same struct and type, or the next constant of the same package and type.
func (n namer) selector(x *ast.SelectorExpr) {
	selection := n.pkg.info.Selections[x]
	if selection == nil {
		n.constant(x, x.Sel)
		return
	}
	field, ok := selection.Obj().(*types.Var)
	if selection.Kind() != types.FieldVal || !ok || len(selection.Index()) != 1 || !n.pure(x.X) {
		return
	}
	of := selection.Recv()
	if pointer, ok := of.Underlying().(*types.Pointer); ok {
		of = pointer.Elem()
	}
	whole, ok := of.Underlying().(*types.Struct)
	if !ok {
		return
	}
	at := selection.Index()[0]
	for i := range whole.NumFields() {
		other := whole.Field((at + 1 + i) % whole.NumFields())
		if other == field || other.Embedded() || !types.Identical(other.Type(), field.Type()) || !other.Exported() && other.Pkg() != n.pkg.types {
			continue
		}
		changed := n.of(x.X) + "." + other.Name()
		switch {
		case n.written[x] && simple(field.Type()):
			n.add(OtherName, x.Pos(), x.End(), changed, n.around(x, "(*mutantPick("+number+", &", ", &"+changed+"))"))
		case n.methods[x] && isAtomic(field.Type()):
			n.add(OtherName, x.Pos(), x.End(), changed, n.around(x, "mutantPick("+number+", &", ", &"+changed+")"))
		case simple(field.Type()):
			n.add(OtherName, x.Pos(), x.End(), changed, n.around(x, "mutantPick("+number+", ", ", "+changed+")"))
		}
		return
	}
}

// ident takes the variable of the same type that is declared last before it, or the next constant of the same type.
func (n namer) ident(x *ast.Ident) {
	if n.parts[x] || n.written[x] || n.methods[x] {
		return
	}
	v, ok := n.pkg.info.Uses[x].(*types.Var)
	if !ok {
		n.constant(x, x)
		return
	}
	if v.IsField() || v.Parent() == nil || v.Pkg() != n.pkg.types || !simple(v.Type()) {
		return
	}
	if v.Parent() == n.pkg.types.Scope() {
		n.packaged(x, v)
		return
	}
	var nearest types.Object
	for scope := n.pkg.types.Scope().Innermost(x.Pos()); scope != nil && scope != n.pkg.types.Scope(); scope = scope.Parent() {
		for _, name := range scope.Names() {
			other, ok := scope.Lookup(name).(*types.Var)
			if ok && other != v && name != "_" && name != v.Name() && other.Pos() < x.Pos() && types.Identical(other.Type(), v.Type()) &&
				(nearest == nil || other.Pos() > nearest.Pos()) {
				if _, found := n.pkg.types.Scope().Innermost(x.Pos()).LookupParent(name, x.Pos()); found == other {
					nearest = other
				}
			}
		}
	}
	if nearest != nil {
		n.add(OtherName, x.Pos(), x.End(), nearest.Name(), n.around(x, "mutantPick("+number+", ", ", "+nearest.Name()+")"))
	}
}

// constant takes another constant of a named type, or another error, of its package.
func (n namer) constant(x ast.Expr, id *ast.Ident) {
	switch of := n.pkg.info.Uses[id].(type) {
	case *types.Const:
		if _, named := of.Type().(*types.Named); named && of.Pkg() != nil && of.Parent() == of.Pkg().Scope() {
			n.packaged(x, of)
		}
	case *types.Var:
		if of.Pkg() != nil && of.Parent() == of.Pkg().Scope() {
			n.packaged(x, of)
		}
	}
}

// packaged takes the next constant of a type, or the next error, in a package's order of declarations.
func (n namer) packaged(x ast.Expr, of types.Object) {
	_, constant := of.(*types.Const)
	if n.written[x] || n.methods[x] || !constant && !isError(of.Type()) {
		return
	}
	var all []types.Object
	for _, name := range of.Pkg().Scope().Names() {
		other := of.Pkg().Scope().Lookup(name)
		_, is := other.(*types.Const)
		if is == constant && types.Identical(other.Type(), of.Type()) && (of.Pkg() == n.pkg.types || other.Exported()) {
			all = append(all, other)
		}
	}
	slices.SortFunc(all, func(a, b types.Object) int { return int(a.Pos()) - int(b.Pos()) })
	other := all[(slices.Index(all, of)+1)%len(all)]
	if other == of {
		return
	}
	changed := other.Name()
	if selector, ok := x.(*ast.SelectorExpr); ok {
		changed = n.of(selector.X) + "." + changed
	}
	typed := ""
	if constant {
		if typed = n.typeText(of.Type()); typed == "" {
			return
		}
		typed = "[" + typed + "]"
	}
	n.add(OtherName, x.Pos(), x.End(), changed, n.around(x, "mutantPick"+typed+"("+number+", ", ", "+changed+")"))
}

// simple reports whether a value of the type can be passed on without a copy of something that others change.
func simple(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Basic, *types.Pointer, *types.Slice, *types.Map, *types.Chan, *types.Interface:
		return true
	}
	return false
}

func isAtomic(t types.Type) bool {
	named, ok := t.(*types.Named)
	return ok && named.Obj().Pkg() != nil && named.Obj().Pkg().Path() == "sync/atomic"
}
