// Package expr describes the computation of a kernel: expressions over the elements of tensors, and reductions of them. It
// computes nothing and touches no device; package kernel makes kernels from expressions.
//
//	x, b := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32)
//	y := x.Mul(b).Add(x).Relu() // relu(x*b+x)
//	softmax := x.Sub(x.Max()).Exp() // and so on
//
// # Words
//
// An Expr is an operation on other expressions, an input, or a constant. It is immutable, and may be used any number of times:
// an expression that is used several times is computed once. Expr methods do not fail. An expression of types that lack the
// operation is invalid, as is each expression made of it, and Err returns the reason.
//
// # Types
//
// The operands of an operation are first converted to one type (Promote): of two families the higher one of boolean, integer,
// floating; in a family the longer type; int8 and uint8 give int16, float16 and bfloat16 give float32. A Number has no type of
// its own and takes the other operand's type. If that is not a floating-point type, and the Number has a fraction or is outside
// int64, both become float32. Division and functions such as Exp convert integers, and Numbers with them, to float32.
// Comparisons give bool. These are PyTorch's rules. A whole Number outside the other operand's integer type is compared
// unchanged, becomes the nearest number of the type for Minimum and Maximum, and wraps around elsewhere.
//
// float16 and bfloat16 are computed in float32, and rounded where they are stored or Cast to: once for each output, not once
// for each operation. Numbers used with them and the number of elements of a mean or variance are float32, too; only where it
// is compared, or Cast, a Number is rounded. int8, uint8 and int16 wrap around at each operation, and where a longer integer is
// converted to them. A conversion of a floating-point number to an integer drops the fraction and takes the nearest number of
// the type: 300 and +Inf are 127 as int8, and -1 is 0 as uint8; NaN becomes 0. As bool, all numbers except 0 are true, and so is
// NaN.
//
// # NaN
//
// If an operand is NaN, Minimum, Maximum, Max and Min are NaN, and ArgMax and ArgMin are the index of the first NaN. Comparisons
// with NaN are false, except Ne. Relu of NaN is NaN. The sign and the payload of a NaN that an operation returns are not specified,
// so Bitcast may return the bits of any NaN.
//
// # Reductions
//
// Sum, Prod, Max, Min, ArgMax, ArgMin and LogSumExp reduce the elements over the axes of the kernel (by default the last one) to
// a row value. Row values combine with elements: x.Sub(x.Max()) has an element for each element of x. Count is the number of
// reduced elements. A sum has the type of its elements, int64 for integers, and is computed
// in float32 for the types of 16 bits. Its order is fixed: the same tensors on the same kind of device have the same sum, bit
// for bit.
package expr
