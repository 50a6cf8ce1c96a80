package expr

import (
	"slices"

	"github.com/go-vram/vram/compute/tensor"
)

// Cast converts to a type.
func (e Expr) Cast(to tensor.Type) Expr {
	switch {
	case e.Err() != nil || e.Type == to:
		return e
	case !to.Valid():
		return wrong(OpCast, e.Type, to)
	case e.Type == 0:
		return e.rounded(to)
	}
	return made(OpCast, to, e)
}

// Bitcast converts the bits of a float32 to an int32 and of an int32 to a float32; likewise float64 and int64.
func (e Expr) Bitcast() Expr {
	e = e.Typed()
	if e.Err() != nil {
		return e
	}
	to := map[tensor.Type]tensor.Type{
		tensor.Float32: tensor.Int32, tensor.Int32: tensor.Float32, tensor.Float64: tensor.Int64, tensor.Int64: tensor.Float64,
	}[e.Type]
	if to == 0 {
		return wrong(OpBitcast, e.Type)
	}
	return made(OpBitcast, to, e)
}

// same is an operation of one operand on the types of some kinds, with a result of the type.
func (e Expr) same(op Op, kinds ...tensor.Kind) Expr {
	e = e.Typed()
	if e.Err() != nil {
		return e
	}
	if slices.Contains(kinds, e.Type.Kind()) {
		return made(op, e.Type, e)
	}
	return wrong(op, e.Type)
}

// function is a function of a floating-point number.
func (e Expr) function(op Op) Expr {
	e = floating(e)
	if e.Err() != nil {
		return e
	}
	return made(op, e.Type, e)
}

// float32s is a function that exists for float32 and the types of 16 bits.
func (e Expr) float32s(op Op) Expr {
	if e.Err() == nil && e.Type == tensor.Float64 {
		return wrong(op, e.Type)
	}
	return e.function(op)
}

// Neg is -x.
func (e Expr) Neg() Expr { return e.same(OpNeg, tensor.Signed, tensor.Unsigned, tensor.Floating) }

// Abs is the absolute value; of the lowest integer it is that integer.
func (e Expr) Abs() Expr { return e.same(OpAbs, tensor.Signed, tensor.Unsigned, tensor.Floating) }

// Not is the negation of a bool, and of each bit of an integer.
func (e Expr) Not() Expr { return e.same(OpNot, tensor.Boolean, tensor.Signed, tensor.Unsigned) }

// Floor rounds down.
func (e Expr) Floor() Expr { return e.function(OpFloor) }

// Ceil rounds up.
func (e Expr) Ceil() Expr { return e.function(OpCeil) }

// Round rounds to the nearest integer, of two to the even one.
func (e Expr) Round() Expr { return e.function(OpRound) }

// Trunc rounds to zero.
func (e Expr) Trunc() Expr { return e.function(OpTrunc) }

// Sqrt is the square root, rounded correctly.
func (e Expr) Sqrt() Expr { return e.function(OpSqrt) }

// Rsqrt is 1/sqrt(x). The errors of this and the functions below are in package elementary.
func (e Expr) Rsqrt() Expr { return e.function(OpRsqrt) }

// Exp is e to the power of x. It and the functions below do not exist for float64.
func (e Expr) Exp() Expr { return e.float32s(OpExp) }

// Exp2 is 2 to the power of x.
func (e Expr) Exp2() Expr { return e.float32s(OpExp2) }

// Expm1 is exp(x)-1.
func (e Expr) Expm1() Expr { return e.float32s(OpExpm1) }

// Log is the natural logarithm.
func (e Expr) Log() Expr { return e.float32s(OpLog) }

// Log2 is the logarithm to the base of 2.
func (e Expr) Log2() Expr { return e.float32s(OpLog2) }

// Log1p is log(1+x).
func (e Expr) Log1p() Expr { return e.float32s(OpLog1p) }

// Sin is the sine.
func (e Expr) Sin() Expr { return e.float32s(OpSin) }

// Cos is the cosine.
func (e Expr) Cos() Expr { return e.float32s(OpCos) }

// Tanh is the hyperbolic tangent.
func (e Expr) Tanh() Expr { return e.float32s(OpTanh) }

// Erf is the error function.
func (e Expr) Erf() Expr { return e.float32s(OpErf) }

// Pow is x to the power of y, with the special cases of C.
func (e Expr) Pow(y Expr) Expr {
	of := floatingOf(e, y)
	if e.Err() == nil && y.Err() == nil && of == tensor.Float64 {
		return wrong(OpPow, of)
	}
	return made(OpPow, of, e.typed(of).Cast(of), y.typed(of).Cast(of))
}

// IsNaN says of a floating-point number whether it is none.
func (e Expr) IsNaN() Expr { return made(OpIsNaN, tensor.Bool, floating(e)) }

// typeOf is the type of an expression that may be wrong.
func typeOf(e Expr) tensor.Type {
	if e.Node == nil {
		return 0
	}
	return e.Type
}

// arithmetic is an operation on two numbers.
func (e Expr) arithmetic(op Op, y Expr) Expr {
	a, b := promoted(e, y)
	if a.Err() == nil && b.Err() == nil && a.Type == tensor.Bool {
		return wrong(op, a.Type, b.Type)
	}
	return made(op, typeOf(a), a, b)
}

// Add is x+y.
func (e Expr) Add(y Expr) Expr { return e.arithmetic(OpAdd, y) }

// Sub is x-y.
func (e Expr) Sub(y Expr) Expr { return e.arithmetic(OpSub, y) }

// Mul is x*y.
func (e Expr) Mul(y Expr) Expr { return e.arithmetic(OpMul, y) }

// Div is x/y, of floating-point numbers.
func (e Expr) Div(y Expr) Expr {
	of := floatingOf(e, y)
	return made(OpDiv, of, e.typed(of).Cast(of), y.typed(of).Cast(of))
}

// isNumber reports whether the expression is a Number that has not met another operand.
func (e Expr) isNumber() bool { return e.Err() == nil && e.Type == 0 }

// Minimum is the lesser of x and y.
func (e Expr) Minimum(y Expr) Expr { return e.extremum(OpMinimum, y) }

// Maximum is the greater of x and y.
func (e Expr) Maximum(y Expr) Expr { return e.extremum(OpMaximum, y) }

// extremum returns the smaller or greater operand. A Number becomes the nearest integer if the other operand is one.
func (e Expr) extremum(op Op, y Expr) Expr { return e.within(y).arithmetic(op, y.within(e)) }

// within is a Number for extremum. Others stay as they are.
func (e Expr) within(other Expr) Expr {
	switch {
	case !e.isNumber() || other.Err() != nil || other.Type == 0:
	case other.Type.Kind() != tensor.Floating && numberType(other.Type, e.number) == other.Type:
		return e.rounded(other.Type)
	}
	return e
}

// bitwise is an operation on bools or on the bits of integers.
func (e Expr) bitwise(op Op, y Expr) Expr {
	a, b := promoted(e, y)
	if a.Err() == nil && b.Err() == nil && a.Type.Kind() == tensor.Floating {
		return wrong(op, a.Type, b.Type)
	}
	return made(op, typeOf(a), a, b)
}

// And is the conjunction of bools, and of each bit of integers.
func (e Expr) And(y Expr) Expr { return e.bitwise(OpAnd, y) }

// Or is the disjunction.
func (e Expr) Or(y Expr) Expr { return e.bitwise(OpOr, y) }

// Xor is the exclusive or.
func (e Expr) Xor(y Expr) Expr { return e.bitwise(OpXor, y) }

// comparison makes a bool. A Number is rounded to the floating-point type of the other operand, whose elements may be equal to
// it so. One that the other operand's type of integers does not have is compared as int64.
func (e Expr) comparison(op Op, y Expr) Expr {
	a, b := promoted(e.beside(y), y.beside(e))
	return made(op, tensor.Bool, a, b)
}

// beside converts a Number that is compared with another operand. Other expressions stay as they are.
func (e Expr) beside(other Expr) Expr {
	switch {
	case !e.isNumber() || other.Err() != nil || other.Type == 0:
	case other.Type.Kind() == tensor.Floating:
		return e.rounded(other.Type)
	case numberType(other.Type, e.number) != tensor.Float32 && nearest(other.Type, e.number) != e.number:
		return e.typed(tensor.Int64)
	}
	return e
}

// Eq is x == y.
func (e Expr) Eq(y Expr) Expr { return e.comparison(OpEq, y) }

// Ne is x != y.
func (e Expr) Ne(y Expr) Expr { return e.comparison(OpNe, y) }

// Lt is x < y.
func (e Expr) Lt(y Expr) Expr { return e.comparison(OpLt, y) }

// Le is x <= y.
func (e Expr) Le(y Expr) Expr { return e.comparison(OpLe, y) }

// Gt is x > y.
func (e Expr) Gt(y Expr) Expr { return e.comparison(OpGt, y) }

// Ge is x >= y.
func (e Expr) Ge(y Expr) Expr { return e.comparison(OpGe, y) }

// Select is a where the condition is true, and b where it is false. A number is true unless it is 0.
func Select(condition, a, b Expr) Expr {
	a, b = promoted(a, b)
	return made(OpSelect, typeOf(a), condition.Typed().Cast(tensor.Bool), a, b)
}

// Fma is a*b+c, rounded once, of floating-point numbers.
func Fma(a, b, c Expr) Expr {
	of := floatingOf(a, b, c)
	return made(OpFma, of, a.typed(of).Cast(of), b.typed(of).Cast(of), c.typed(of).Cast(of))
}

// floatingOf is the type to which operands that must be floating-point numbers are converted, and which Numbers take with them:
// a type of integers may not represent a Number.
func floatingOf(operands ...Expr) tensor.Type {
	of := tensor.Float32
	met := false
	for _, e := range operands {
		switch {
		case e.Err() != nil || e.Type.Kind() != tensor.Floating:
		case met:
			of = Promote(of, e.Type)
		default:
			of, met = e.Type, true
		}
	}
	return of
}
