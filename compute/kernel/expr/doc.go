// Package expr describes the computation of a kernel: expressions over the elements of tensors, and reductions of them. It
// computes nothing and touches no device; package kernel makes a kernel of expressions.
//
//	x, b := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32)
//	y := x.Mul(b).Add(x).Relu() // relu(x*b+x)
//	softmax := x.Sub(x.Max()).Exp() // and so on
//
// # Words
//
// An Expr is an operation on other ones, an input, or a constant. It never changes, and may be used any number of times: an
// expression that is used several times is computed once. Expr methods do not fail; an expression of types that have no such
// operation is wrong, and Err says why; so is each expression that is made of it.
//
// # Types
//
// The operands of an operation are converted to one type first (Promote): of two families the higher one of boolean, integer,
// floating; in a family the longer type; int8 and uint8 make int16, float16 and bfloat16 make float32. A Number has no type of
// its own: it takes the other operand's, unless it has a fraction, or int64 does not have it, and the other one is no
// floating-point type, which makes float32. Division and functions as Exp make float32 of integers, and of Numbers with them.
// Comparisons make bool. These are PyTorch's rules. A whole Number that is not in the other operand's type of integers is
// compared as it is, is the nearest one of the type for Minimum and Maximum, and wraps around elsewhere.
//
// float16 and bfloat16 are computed in float32, and rounded where they are stored or Cast to: once for each output, not once
// for each operation. Numbers used with them and the number of elements of a mean or variance are float32, too; only where it
// is compared, or Cast, a Number is rounded. int8, uint8 and int16 wrap around at each operation, and where a longer integer is
// converted to them. A conversion of a floating-point number to any integer cuts off the fraction and takes the nearest number
// that there is: 300 and +Inf are 127 as int8, and -1 is 0 as uint8; NaN becomes 0. To bool, NaN is true, as all but 0.
//
// # NaN
//
// Minimum, Maximum, Max, Min, ArgMax and ArgMin are NaN, or the index of the first NaN, where an operand is. Comparisons with
// NaN are false but for Ne. Relu of NaN is NaN.
//
// # Reductions
//
// Sum, Prod, Max, Min, ArgMax, ArgMin and LogSumExp reduce the elements over the axes of the kernel (the last one unless it
// says otherwise) to a row value. A row value can be used with elements again: x.Sub(x.Max()) is an element for each element of
// x. Count is the number of elements that are reduced. A sum has the type of its elements, int64 for integers, and is computed
// in float32 for the types of 16 bits. Its order is fixed: the same tensors on the same kind of device have the same sum, bit
// for bit.
package expr
