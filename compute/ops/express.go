package ops

import (
	"math"

	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
)

// operation is which one it is.
type operation uint8

const (
	opAdd operation = iota + 1
	opSub
	opMul
	opDiv
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe

	opNeg
	opAbs
	opSqrt
	opRsqrt
	opExp
	opLog
	opTanh
	opSigmoid
	opRelu
	opGelu
	opGeluTanh
	opSilu
	opClamp
	opWhere

	opCopy
	opFill
	opArange

	opSum
	opMean
	opMax
	opMin
	opArgMax
	opSoftmax
	opLogSoftmax
	opLayerNorm
	opRMSNorm
	opCrossEntropy

	opReluBackward
	opGeluBackward
	opGeluTanhBackward
	opMulBackward
	opSoftmaxBackward
	opCrossEntropyBackward
	opMoments
	opLayerNormBackward
	opWeightBackward
	opNegatedBackward
	opDivBackward
	opDivisorBackward
	opSiluBackward
	opSigmoidBackward
	opTanhBackward
	opLogSoftmaxBackward
	opRMSFactor
	opRMSNormBackward
	opRMSWeightBackward

	opNegBackward
	opAbsBackward
	opSqrtBackward
	opRsqrtBackward
	opExpBackward
	opLogBackward
	opClampBackward
	opWhereBackward
	opElseBackward
	opSumBackward
	opMeanBackward
	opMaxBackward
	opMinBackward

	opAdamW
	opMatmul

	// Names alone, of operations that are others.
	opAddBackward
	opMatmulBackward
	opCast
	opTransposeCopy
	opSumTo

	opConcat
	opGather
	opGatherBackward
	opScatterAdd
	opEmbedding
	opEmbeddingBackward
	opUniform
	opNormal
	operations
)

// String returns the name.
func (op operation) String() string {
	names := [operations]string{
		opAdd: "add", opSub: "sub", opMul: "mul", opDiv: "div", opEq: "eq", opNe: "ne", opLt: "lt", opLe: "le", opGt: "gt", opGe: "ge",
		opNeg: "neg", opAbs: "abs", opSqrt: "sqrt", opRsqrt: "rsqrt", opExp: "exp", opLog: "log", opTanh: "tanh", opSigmoid: "sigmoid",
		opRelu: "relu", opGelu: "gelu", opGeluTanh: "gelu by tanh", opSilu: "silu", opClamp: "clamp", opWhere: "where",
		opCopy: "copy", opFill: "fill", opArange: "arange",
		opSum: "sum", opMean: "mean", opMax: "max", opMin: "min", opArgMax: "argmax", opSoftmax: "softmax", opLogSoftmax: "log softmax",
		opLayerNorm: "layer norm", opRMSNorm: "RMS norm", opCrossEntropy: "cross entropy",
		opReluBackward: "relu backward", opGeluBackward: "gelu backward", opGeluTanhBackward: "gelu by tanh backward",
		opMulBackward: "mul backward", opSoftmaxBackward: "softmax backward", opCrossEntropyBackward: "cross entropy backward",
		opMoments: "moments of layer norm", opLayerNormBackward: "layer norm backward", opWeightBackward: "layer norm's weight backward",
		opNegatedBackward: "sub backward", opDivBackward: "div backward", opDivisorBackward: "div backward", opSiluBackward: "silu backward",
		opSigmoidBackward: "sigmoid backward", opTanhBackward: "tanh backward", opLogSoftmaxBackward: "log softmax backward",
		opRMSFactor: "factors of RMS norm", opRMSNormBackward: "RMS norm backward", opRMSWeightBackward: "RMS norm's weight backward",
		opNegBackward: "neg backward", opAbsBackward: "abs backward", opSqrtBackward: "sqrt backward", opRsqrtBackward: "rsqrt backward",
		opExpBackward: "exp backward", opLogBackward: "log backward", opClampBackward: "clamp backward", opWhereBackward: "where backward",
		opElseBackward: "where backward", opSumBackward: "sum backward", opMeanBackward: "mean backward", opMaxBackward: "max backward",
		opMinBackward: "min backward",
		opAdamW:       "AdamW", opMatmul: "matmul", opAddBackward: "add backward", opMatmulBackward: "matmul backward",
		opCast: "cast", opTransposeCopy: "transpose copy", opSumTo: "sum to",
		opConcat: "concat", opGather: "gather", opGatherBackward: "gather backward", opScatterAdd: "scatter-add", opEmbedding: "embedding",
		opEmbeddingBackward: "embedding backward", opUniform: "uniform", opNormal: "normal",
	}
	return names[op%operations]
}

// converts reports whether the output may have any type.
func (op operation) converts() bool { return op == opCopy || op == opArange }

func (k *key) input(i int) expr.Expr { return expr.Input(i, k.in[i]) }

func (k *key) number(i int) float64 { return math.Float64frombits(k.numbers[i]) }

// expressions returns the outputs.
func (k *key) expressions() []expr.Expr {
	switch {
	case k.op <= opGe:
		return one(binary(k.op, k.input(0), k.input(1)))
	case k.op <= opSilu:
		return one(unary(k.op, k.input(0)))
	case k.op <= opArange:
		return one(k.other())
	case k.op <= opArgMax:
		return one(reduced(k.op, k.input(0)))
	case k.op <= opCrossEntropy:
		return one(k.row())
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

// accumulator returns the type in which a type is summed.
func accumulator(of tensor.Type) tensor.Type {
	if of == tensor.Float64 {
		return of
	}
	return tensor.Float32
}

func binary(op operation, x, y expr.Expr) expr.Expr {
	bools := x.Err() == nil && y.Err() == nil && x.Type == tensor.Bool && y.Type == tensor.Bool
	switch op { //nolint:exhaustive // of two operands
	case opAdd:
		if bools {
			return x.Or(y)
		}
		return x.Add(y)
	case opSub:
		return x.Sub(y)
	case opMul:
		if bools {
			return x.And(y)
		}
		return x.Mul(y)
	case opDiv:
		return x.Div(y)
	case opEq:
		return x.Eq(y)
	case opNe:
		return x.Ne(y)
	case opLt:
		return x.Lt(y)
	case opLe:
		return x.Le(y)
	case opGt:
		return x.Gt(y)
	}
	return x.Ge(y)
}

func unary(op operation, x expr.Expr) expr.Expr {
	switch op { //nolint:exhaustive // of one operand
	case opNeg:
		return x.Neg()
	case opAbs:
		return x.Abs()
	case opSqrt:
		return x.Sqrt()
	case opRsqrt:
		return x.Rsqrt()
	case opExp:
		return x.Exp()
	case opLog:
		return x.Log()
	case opTanh:
		return x.Tanh()
	case opSigmoid:
		return x.Sigmoid()
	case opRelu:
		return x.Relu()
	case opGelu:
		return x.Gelu()
	case opGeluTanh:
		return x.GeluTanh()
	}
	return x.Silu()
}

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

// reduced returns a value of a row.
func reduced(op operation, x expr.Expr) expr.Expr {
	bools := x.Err() == nil && x.Type == tensor.Bool
	if bools && op != opSum && op != opMean {
		x = x.Cast(tensor.Uint8)
	}
	switch op { //nolint:exhaustive // of reductions
	case opSum:
		return x.Sum()
	case opMean:
		return x.Mean()
	case opMax:
		x = x.Max()
	case opMin:
		x = x.Min()
	default:
		return x.ArgMax()
	}
	if bools {
		return x.Cast(tensor.Bool)
	}
	return x
}

// row are operations of rows.
func (k *key) row() expr.Expr {
	x := k.input(0)
	switch k.op { //nolint:exhaustive // of rows
	case opSoftmax:
		return x.Softmax()
	case opLogSoftmax:
		return x.LogSoftmax()
	case opLayerNorm, opRMSNorm:
		var y expr.Expr
		if k.op == opLayerNorm {
			y = x.LayerNorm(k.number(0))
		} else {
			y = x.RMSNorm(k.number(0))
		}
		next := 1
		if k.with&withWeight != 0 {
			y = y.Mul(k.input(next))
			next++
		}
		if k.with&withBias != 0 {
			y = y.Add(k.input(next))
		}
		return y
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
	case opMulBackward:
		return k.summed(g.Mul(x))
	case opDivBackward:
		return k.summed(g.Div(x))
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
	case opLayerNormBackward:
		hat := x.LayerNorm(k.number(0))
		rest := weighted.Sub(weighted.Mean()).Sub(hat.Mul(weighted.Mul(hat).Mean()))
		return rest.Mul(x.Var(0).Add(expr.Number(k.number(0))).Rsqrt())
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

// summed returns the sum over the axes, if there are any.
func (k *key) summed(e expr.Expr) expr.Expr {
	if k.axes == 0 {
		return e
	}
	return e.Sum()
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
