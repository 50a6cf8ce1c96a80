package ops

import (
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
)

// derivative returns a gradient that is one expression: of the gradient g of the result and of the operand x, or of the result
// y where PyTorch takes that. Where there is no derivative it has PyTorch's choice, and zeros, infinities and NaN come out as
// they do there.
func (k *key) derivative() expr.Expr {
	g, x := k.input(0), k.input(1)
	y, none := x, expr.Number(0)
	switch k.op { //nolint:exhaustive // the others are elsewhere
	case opAbsBackward: // the sign of 0 and of NaN is 0
		return g.Mul(expr.Select(x.Gt(none), expr.Number(1), expr.Select(x.Lt(none), expr.Number(-1), none)))
	case opSqrtBackward:
		return g.Div(y.Mul(expr.Number(2)))
	case opRsqrtBackward:
		return g.Mul(expr.Number(-0.5)).Mul(y).Mul(y).Mul(y) // the power of y alone may be no number
	case opClampBackward:
		if x.Type.Kind() != tensor.Floating {
			x = x.Cast(tensor.Float64) // which has infinities
		}
		within := x.Ge(expr.Number(k.number(0))).And(x.Le(expr.Number(k.number(1))))
		return expr.Select(within, g, none)
	case opWhereBackward: // of the condition
		return k.summed(expr.Select(x, g, none))
	case opElseBackward: // likewise
		return k.summed(expr.Select(x, none, g))
	case opSumBackward: // of one element for each row, as g of the others below
		return g
	case opMaxBackward:
		return shared(g, x.Eq(x.Max()))
	}
	return shared(g, x.Eq(x.Min())) // opMinBackward
}

// shared returns a gradient that chosen elements of a row share evenly. Of a row with NaN none is chosen: its gradient is NaN.
// Their number is not converted to a type of 16 bits, which may not have it.
func shared(g, chosen expr.Expr) expr.Expr {
	g = g.Cast(accumulator(g.Type))
	return g.Div(chosen.Sum()).Mul(expr.Select(chosen, expr.Number(1), expr.Number(0)))
}
