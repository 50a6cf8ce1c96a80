package elementary

import "github.com/go-vram/vram/compute/kernel/internal/code"

// on computes a function on the host.
func on(build func(code.Machine, code.Value) code.Value, x float32) float32 {
	return build(code.Evaluator{}, code.F32(x)).AsFloat32()
}

// Exp is a kernel's result for exp(x), and so on for the other functions.
func Exp(x float32) float32 { return on(BuildExp, x) }

// ExpBelow is Exp for an x that is not positive.
func ExpBelow(x float32) float32 { return on(BuildExpBelow, x) }

// Exp2 is 2^x.
func Exp2(x float32) float32 { return on(BuildExp2, x) }

// Expm1 is exp(x)-1.
func Expm1(x float32) float32 { return on(BuildExpm1, x) }

// Log is the natural logarithm.
func Log(x float32) float32 { return on(BuildLog, x) }

// Log2 is the logarithm to the base of 2.
func Log2(x float32) float32 { return on(BuildLog2, x) }

// Log1p is log(1+x).
func Log1p(x float32) float32 { return on(BuildLog1p, x) }

// Sin is the sine.
func Sin(x float32) float32 { return on(BuildSin, x) }

// Cos is the cosine.
func Cos(x float32) float32 { return on(BuildCos, x) }

// Tanh is the hyperbolic tangent.
func Tanh(x float32) float32 { return on(BuildTanh, x) }

// Erf is the error function.
func Erf(x float32) float32 { return on(BuildErf, x) }

// Rsqrt is 1/sqrt(x).
func Rsqrt(x float32) float32 { return on(BuildRsqrt, x) }

// Pow is x to the power of y.
func Pow(x, y float32) float32 {
	return BuildPow(code.Evaluator{}, code.F32(x), code.F32(y)).AsFloat32()
}
