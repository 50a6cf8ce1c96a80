package expr

import (
	"math"

	"github.com/go-vram/vram/compute/tensor"
)

// Relu is x where it is greater than 0, else 0.
func (e Expr) Relu() Expr { return e.Maximum(Number(0)) }

// Square is x*x.
func (e Expr) Square() Expr { return e.Mul(e) }

// Sigmoid is 1/(1+exp(-x)).
func (e Expr) Sigmoid() Expr { return Number(1).Div(e.neg().Exp().Add(Number(1))) }

func (e Expr) neg() Expr { return floating(e).Neg() }

// Silu is x*sigmoid(x).
func (e Expr) Silu() Expr { return e.Div(e.neg().Exp().Add(Number(1))) }

// Gelu is x/2*(1+erf(x/sqrt(2))).
func (e Expr) Gelu() Expr {
	return e.Mul(Number(0.5)).Mul(e.Mul(Number(1 / math.Sqrt2)).Erf().Add(Number(1)))
}

// GeluTanh is x/2*(1+tanh(sqrt(2/π)*(x+0.044715*x³))).
func (e Expr) GeluTanh() Expr {
	e = floating(e) // before it is squared
	inner := e.Mul(Number(math.Sqrt(2 / math.Pi))).Mul(Fma(e.Square(), Number(0.044715), Number(1)))
	return e.Mul(Number(0.5)).Mul(inner.Tanh().Add(Number(1)))
}

// Sum is the sum of a row. A row without elements has 0.
func (e Expr) Sum() Expr { return e.accumulated(OpSum) }

// Prod is the product of a row.
func (e Expr) Prod() Expr { return e.accumulated(OpProd) }

// accumulated is a sum or product: int64 of integers.
func (e Expr) accumulated(op Op) Expr {
	e = e.Typed()
	if e.Err() == nil && e.Type.Kind() != tensor.Floating {
		e = e.Cast(tensor.Int64)
	}
	return made(op, typeOf(e), e)
}

// Max is the greatest element of a row, and the lowest number of the type, -Inf for floating-point types, of a row without
// elements.
func (e Expr) Max() Expr { return e.Typed().extreme(OpMax) }

// Min is the least element of a row.
func (e Expr) Min() Expr { return e.Typed().extreme(OpMin) }

func (e Expr) extreme(op Op) Expr {
	if e.Err() == nil && e.Type == tensor.Bool {
		return wrong(op, e.Type)
	}
	return made(op, typeOf(e), e)
}

// ArgMax is the index in the row of the greatest element, of the first one of several. Its type is int64.
func (e Expr) ArgMax() Expr { return e.arg(OpArgMax) }

// ArgMin is the index in the row of the least element, of the first one of several.
func (e Expr) ArgMin() Expr { return e.arg(OpArgMin) }

func (e Expr) arg(op Op) Expr {
	if e = e.Typed().extreme(op); e.Err() != nil {
		return e
	}
	return made(op, tensor.Int64, e.Args[0])
}

// Mean is the mean of a row: the sum over the number of elements.
func (e Expr) Mean() Expr {
	sum := floating(e).Sum()
	return sum.per(Count(countType(typeOf(sum))))
}

// per is a sum over a number of elements, in the type of the sum. The number is not converted to it: types of 16 bits have no
// more than 257 or 2049 consecutive whole numbers, and float16 none above 65504.
func (e Expr) per(count Expr) Expr { return made(OpDiv, typeOf(e), e, count) }

// countType returns the type of the number of elements for sums of a type: the type in which they are computed.
func countType(of tensor.Type) tensor.Type {
	if of == tensor.Float64 {
		return of
	}
	return tensor.Float32
}

// sample is an element of a row, the same one for all of it. Of a row without elements it is -Inf.
func (e Expr) sample() Expr { return made(OpSample, typeOf(e), e) }

// nearSample is how near to a sample, relative to that, a mean counts as it: more than sums of equal elements err, and so
// little that the squares of the distances from it lose nothing.
const nearSample = 0x1p-16

// center is a number near the mean of a row: the mean as it is summed up, or an element where they are near to each other or
// the sum is infinite. So the distances of equal elements from it are 0, however large they are.
func (e Expr) center() Expr {
	mean, sample := e.Mean(), e.sample()
	far := mean.Sub(sample).Abs().Gt(sample.Abs().Mul(Number(nearSample)))
	return Select(far.And(mean.Abs().Lt(Number(math.Inf(1)))), mean, sample)
}

// Moments are the mean of a row, and its variance over the number of elements less correction: 0 or 1. Of equal elements they
// are such an element and 0, also where their sum is infinite, unlike Mean.
func (e Expr) Moments(correction float64) (mean, variance Expr) {
	x := floating(e)
	if x.Err() != nil {
		return x, x
	}
	d := x.Sub(x.center())
	// The sum of squares less the square of the mean, which is 0 but for the rounding of center. An infinite one stays.
	spread := Fma(d.Sum().Neg(), d.Mean(), d.Square().Sum()).Maximum(Number(0))
	count := Count(countType(x.Type)).Sub(Number(correction)).Maximum(Number(0))
	return x.center().Add(d.Mean()), spread.per(count)
}

// Var is the variance of Moments.
func (e Expr) Var(correction float64) Expr {
	_, variance := e.Moments(correction)
	return variance
}

// Norm is the Euclidean norm of a row.
func (e Expr) Norm() Expr { return floating(e).Square().Sum().Sqrt() }

// Exponentials are the maximum of a row and the sum of exp(x-maximum), computed in one pass. Where the maximum is infinite, or
// NaN, the sum is 0 or NaN, so that x-maximum-log(sum) is NaN: the logarithm of a softmax as PyTorch has it.
func (e Expr) Exponentials() (maximum, sum Expr) {
	x := floating(e)
	if x.Err() == nil && x.Type == tensor.Float64 {
		return wrong(OpRunningMax, x.Type), wrong(OpRunningSum, x.Type)
	}
	return made(OpRunningMax, typeOf(x), x), made(OpRunningSum, typeOf(x), x)
}

// LogSumExp is log(sum(exp(x))) of a row, without overflow.
func (e Expr) LogSumExp() Expr {
	m, s := e.Exponentials()
	return Select(m.Abs().Eq(Number(math.Inf(1))), m, m.Add(s.Log()))
}

// Softmax is exp(x)/sum(exp(x)) for each element of a row, without overflow.
func (e Expr) Softmax() Expr {
	x := floating(e)
	m, s := x.Exponentials()
	return x.Sub(m).float32s(OpExpBelow).Mul(Number(1).Div(s))
}

// LogSoftmax is the logarithm of Softmax.
func (e Expr) LogSoftmax() Expr {
	x := floating(e)
	m, s := x.Exponentials()
	return x.Sub(m).Sub(s.Log())
}

// LayerNorm is (x-mean)/sqrt(variance+epsilon) for each element of a row, with the mean and the variance of Moments. Multiply
// by a weight and add a bias as wanted.
func (e Expr) LayerNorm(epsilon float64) Expr {
	x := floating(e)
	if x.Err() != nil {
		return x
	}
	d, factor := x.Sub(x.center()), x.Var(0).Add(Number(epsilon)).Rsqrt()
	return Fma(d, factor, d.Mean().Neg().Mul(factor))
}

// RMSNorm is x/sqrt(mean(x²)+epsilon) for each element of a row.
func (e Expr) RMSNorm(epsilon float64) Expr {
	x := floating(e)
	return x.Mul(x.Square().Mean().Add(Number(epsilon)).Rsqrt())
}
