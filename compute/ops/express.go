package ops

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
)

//nolint:gochecknoglobals // constant table of operations
var ofOne = map[operation]func(x expr.Expr) expr.Expr{
	opNeg: expr.Expr.Neg, opAbs: expr.Expr.Abs, opSqrt: expr.Expr.Sqrt, opRsqrt: expr.Expr.Rsqrt, opExp: expr.Expr.Exp, opLog: expr.Expr.Log,
	opTanh: expr.Expr.Tanh, opSigmoid: expr.Expr.Sigmoid, opRelu: expr.Expr.Relu, opGelu: expr.Expr.Gelu, opGeluTanh: expr.Expr.GeluTanh,
	opSilu: expr.Expr.Silu, opSum: expr.Expr.Sum, opMean: expr.Expr.Mean, opMax: chosen(expr.Expr.Max), opMin: chosen(expr.Expr.Min),
	opArgMax:  func(x expr.Expr) expr.Expr { return asNumber(x).ArgMax() },
	opSoftmax: expr.Expr.Softmax, opLogSoftmax: expr.Expr.LogSoftmax, opNegBackward: expr.Expr.Neg,
}

//nolint:gochecknoglobals // constant table of operations
var ofTwo = map[operation]func(x, y expr.Expr) expr.Expr{
	opAdd: unlessBools(expr.Expr.Add, expr.Expr.Or), opSub: expr.Expr.Sub, opMul: unlessBools(expr.Expr.Mul, expr.Expr.And), opDiv: expr.Expr.Div,
	opEq: expr.Expr.Eq, opNe: expr.Expr.Ne, opLt: expr.Expr.Lt, opLe: expr.Expr.Le, opGt: expr.Expr.Gt, opGe: expr.Expr.Ge,
	opMulBackward: expr.Expr.Mul, opDivBackward: expr.Expr.Div, opExpBackward: expr.Expr.Mul, opLogBackward: expr.Expr.Div, opMeanBackward: expr.Expr.Div,
}

// chosen chooses an element; of bools as of the numbers 0 and 1.
func chosen(choose func(expr.Expr) expr.Expr) func(expr.Expr) expr.Expr {
	return func(x expr.Expr) expr.Expr {
		if x.Type == tensor.Bool {
			return choose(asNumber(x)).Cast(tensor.Bool)
		}
		return choose(x)
	}
}

// asNumber is 0 or 1 for a bool.
func asNumber(x expr.Expr) expr.Expr {
	if x.Type == tensor.Bool {
		return x.Cast(tensor.Uint8)
	}
	return x
}

func unlessBools(do, ofBools func(x, y expr.Expr) expr.Expr) func(x, y expr.Expr) expr.Expr {
	return func(x, y expr.Expr) expr.Expr {
		if x.Type == tensor.Bool && y.Type == tensor.Bool {
			return ofBools(x, y)
		}
		return do(x, y)
	}
}

// expressions returns the outputs.
func (k *key) expressions() []expr.Expr {
	if do := ofOne[k.op]; do != nil {
		return one(do(k.input(0)))
	}
	if do := ofTwo[k.op]; do != nil {
		return one(k.summed(do(k.input(0), k.input(1))))
	}
	switch {
	case k.op <= opArange:
		return one(k.other())
	case k.op <= opCrossEntropy:
		return one(k.row())
	case k.op == opLayerNormResidual:
		return k.residual()
	case k.op == opMoments:
		x := k.input(0)
		x = x.Cast(accumulator(x.Type))
		mean, variance := x.Moments(0)
		return []expr.Expr{mean, variance.Add(expr.Number(k.number(0))).Rsqrt()}
	case k.op == opRMSFactor:
		x := k.input(0)
		return one(k.rmsFactor(x.Cast(accumulator(x.Type))))
	case k.op == opNegatedBackward:
		return one(k.summed(k.input(0).Neg()))
	case k.op >= opNegBackward && k.op <= opMinBackward:
		return one(k.derivative())
	case k.op == opAdamW:
		return k.adamW()
	}
	return one(k.gradient())
}

func one(e expr.Expr) []expr.Expr { return []expr.Expr{e} }

// other are element-wise operations with constants, or of three operands.
func (k *key) other() expr.Expr {
	switch k.op { //nolint:exhaustive // the others are elsewhere
	case opClamp:
		x := k.input(0)
		if low := k.number(0); !math.IsInf(low, -1) {
			x = x.Maximum(expr.Number(low))
		}
		if high := k.number(1); !math.IsInf(high, 1) {
			x = x.Minimum(expr.Number(high))
		}
		return x
	case opWhere:
		return expr.Select(k.input(0), k.input(1), k.input(2))
	case opFill: // with zeros
		return expr.Const(false)
	case opArange:
		at := expr.Index(-1)
		if k.with == 0 { // of integers
			return at.Mul(expr.Const(int64(k.number(1)))).Add(expr.Const(int64(k.number(0))))
		}
		return expr.Fma(at.Cast(tensor.Float64), expr.Const(k.number(1)), expr.Const(k.number(0)))
	}
	return k.input(0)
}

// row are operations of rows.
func (k *key) row() expr.Expr {
	x := k.input(0)
	switch k.op { //nolint:exhaustive // of rows
	case opLayerNorm:
		return k.weighted(x.LayerNorm(k.number(0)), 1)
	case opRMSNorm:
		return k.weighted(x.RMSNorm(k.number(0)), 1)
	}
	// The logit of the class, and whether there is such a class: no row has another element that is one.
	x = x.Cast(accumulator(x.Type))
	is := k.input(2).Eq(k.input(1))
	picked := expr.Select(is, x, expr.Number(0)).Sum()
	greatest, total := x.Exponentials()
	// Of large logits the distance is small: the logarithm of the sum of exponentials would have its error.
	loss := expr.Select(is.Sum().Eq(expr.Number(0)), expr.Number(math.NaN()), total.Log().Sub(picked.Sub(greatest)))
	return k.unlessIgnored(k.input(1).Max(), loss) // all elements of the row have its class
}

// weighted returns a norm times the weight, plus the bias, which are the operands from a number on.
func (k *key) weighted(y expr.Expr, next int) expr.Expr {
	if k.with&withWeight != 0 {
		y = y.Mul(k.input(next))
		next++
	}
	if k.with&withBias != 0 {
		y = y.Add(k.input(next))
	}
	return y
}

// unlessIgnored returns 0 where the class of a row is the one that is ignored.
func (k *key) unlessIgnored(class, e expr.Expr) expr.Expr {
	if k.with&withIgnored == 0 {
		return e
	}
	return expr.Select(class.Eq(expr.Const(int64(k.numbers[0]))), expr.Number(0), e) //nolint:gosec // the same bits
}

// gradient are operations that go back.
func (k *key) gradient() expr.Expr {
	g, x := k.input(0), k.input(1)
	one := expr.Number(1)
	switch k.op { //nolint:exhaustive // of gradients of elements
	case opReluBackward:
		return expr.Select(x.Le(expr.Number(0)), expr.Number(0), g)
	case opGeluBackward:
		density := x.Square().Mul(expr.Number(-0.5)).Exp().Mul(expr.Number(1 / math.Sqrt(2*math.Pi)))
		below := x.Mul(expr.Number(1 / math.Sqrt2)).Erf().Add(one).Mul(expr.Number(0.5))
		return g.Mul(below.Add(x.Mul(density)))
	case opGeluTanhBackward:
		const cubic = 0.044715
		twice := 2 * math.Sqrt(2/math.Pi)
		// (1+tanh(u))/2 is sigmoid(2u), and (1-tanh(u)²)/4 is sigmoid(2u)*sigmoid(-2u), of which nothing cancels out. That
		// product is 0 of a large x, and is taken before the derivative of 2u, which is bounded: of a finite x nothing is
		// infinite times 0.
		square := x.Square().Minimum(expr.Number(1e30))
		inner := x.Mul(expr.Fma(square, expr.Number(twice*cubic), expr.Number(twice)))
		below := inner.Sigmoid()
		density := x.Mul(below.Mul(inner.Neg().Sigmoid()))
		return g.Mul(expr.Fma(density, expr.Fma(square, expr.Number(twice*3*cubic), expr.Number(twice)), below))
	case opSiluBackward:
		s := x.Sigmoid()
		return g.Mul(s).Mul(expr.Fma(x, one.Sub(s), one))
	case opSigmoidBackward: // of the result
		return g.Mul(x).Mul(one.Sub(x))
	case opTanhBackward: // of the result
		return g.Mul(one.Sub(x.Square()))
	case opDivisorBackward: // of dividend and divisor
		y := k.input(2)
		return k.summed(g.Neg().Mul(x.Div(y).Div(y)))
	}
	return k.gradientOfRows(g, x)
}

// gradientOfRows are operations on rows that go back.
func (k *key) gradientOfRows(g, x expr.Expr) expr.Expr {
	weighted := g
	if k.with&withWeight != 0 {
		weighted = g.Mul(k.input(2))
	}
	switch k.op { //nolint:exhaustive // of gradients of rows
	case opSoftmaxBackward: // of the result: the difference of g and the sum may be no number where the products with the result are
		return expr.Fma(g, x, x.Mul(g.Mul(x).Sum().Neg()))
	case opLogSoftmaxBackward: // of the result
		return g.Sub(x.Exp().Mul(g.Sum()))
	case opCrossEntropyBackward: // of logits, classes of rows, and the numbers of classes
		is := k.input(3).Eq(k.input(2))
		one := expr.Select(is, expr.Number(1), expr.Number(0))
		none := is.Sum().Eq(expr.Number(0))
		return k.unlessIgnored(k.input(2), expr.Select(none, expr.Number(math.NaN()), g.Mul(x.Softmax().Sub(one))))
	case opLayerNormBackward, opLayerNormResidualBackward:
		hat := x.LayerNorm(k.number(0))
		rest := weighted.Sub(weighted.Mean()).Sub(hat.Mul(weighted.Mul(hat).Mean()))
		rest = rest.Mul(x.Var(0).Add(expr.Number(k.number(0))).Rsqrt())
		if k.op == opLayerNormBackward {
			return rest
		}
		return rest.Add(k.input(2 + int(k.with&withWeight)))
	case opWeightBackward: // of mean and factor
		return k.summed(g.Mul(x.Sub(k.input(2)).Mul(k.input(3))))
	case opRMSNormBackward:
		x = x.Cast(accumulator(x.Type))
		factor := k.rmsFactor(x)
		hat := x.Mul(factor)
		return weighted.Sub(hat.Mul(weighted.Mul(hat).Mean())).Mul(factor)
	}
	return k.summed(g.Mul(x.Mul(k.input(2)))) // opRMSWeightBackward, of the factor
}

// rmsFactor returns the factor of RMS norm for the elements of a row.
func (k *key) rmsFactor(x expr.Expr) expr.Expr {
	return x.Square().Mean().Add(expr.Number(k.number(0))).Rsqrt()
}

// adamW returns the parameter and its two moments.
func (k *key) adamW() []expr.Expr {
	of := accumulator(k.in[0])
	var in [maxInputs]expr.Expr
	for i := range in {
		in[i] = k.input(i).Cast(of)
	}
	p, g, m, v, rate, step := in[0], in[1], in[2], in[3], in[4], in[5]
	beta1, beta2, epsilon, decay := k.number(0), k.number(1), k.number(2), k.number(3)
	n := expr.Number
	m = m.Mul(n(beta1)).Add(g.Mul(n(1 - beta1)))
	v = v.Mul(n(beta2)).Add(g.Square().Mul(n(1 - beta2)))
	correction := func(beta float64) expr.Expr { return step.Mul(n(math.Log(beta))).Expm1().Neg() } // 1-beta^step
	direction := m.Div(correction(beta1)).Div(v.Div(correction(beta2)).Sqrt().Add(n(epsilon)))
	p = p.Mul(n(1).Sub(rate.Mul(n(decay)))).Sub(rate.Mul(direction))
	return []expr.Expr{p.Cast(k.in[0]), m.Cast(k.in[2]), v.Cast(k.in[3])}
}
