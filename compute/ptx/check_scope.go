package ptx

import "slices"

// visible is the labels, variables and functions that operands of a function may name.
type visible struct {
	*declarations

	code      *Code
	variables map[*Variable]bool
}

// owns reports whether the register is one of the function.
func (c *visible) owns(r *Register) bool {
	return r != nil && r.Index >= 0 && r.Index < len(c.function.Registers) && c.function.Registers[r.Index] == r
}

// isLater reports whether a variable of the module is declared after the current function.
func (c *visible) isLater(v *Variable) bool {
	return c.symbols[v.Name] == v && c.function.Pos != Pos{} && c.function.Pos.before(v.Pos)
}

// isParam reports whether the variable is a parameter of the function itself.
func (c *visible) isParam(v *Variable) bool {
	return slices.Contains(c.function.Params, v)
}

// fits reports whether a register of a type may stand where an instruction wants another; a wider one only where the
// table allows it.
func fits(want, have Type, wider bool) bool {
	untyped := want.Class() == Untyped || have.Class() == Untyped
	integers := want.IsInteger() && have.IsInteger()
	switch {
	case want == have:
		return true
	case want.Bits() == have.Bits():
		return untyped || integers
	}
	if !wider || want.Bits() > have.Bits() {
		return false
	}
	switch want.Class() { //nolint:exhaustive // no other type has as few bits as a predicate
	case Untyped:
		return have.Class() != NoClass
	case Signed, Unsigned:
		return have.Class() == Untyped || have.IsInteger()
	case Float: // bfloat16 and TF32 have registers of their own width alone
		return have.Class() == Untyped && isStored(want)
	}
	return false
}
