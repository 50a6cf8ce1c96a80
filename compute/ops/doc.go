// Package ops computes on tensors: arithmetic, comparisons, activations, reductions, softmax, norms, losses, products of
// matrices, attention, reads and sums at indices, random numbers, steps of AdamW, and the gradients that training needs. It
// needs only the driver's library.
//
// # Use
//
//	o, err := ops.New(c) // c is a *cuda.Context
//	...
//	err = tensor.Scoped(c, func(s *tensor.Scope) error {
//		y, err := o.Add(s, x, bias)             // a new tensor, which the scope frees
//		...
//		return o.ReluInto(s, y, y)              // the same memory
//	})
//
// # Words
//
// An operation makes new tensors on the stream of its first argument, a tensor.Context, and in its scope if that is one. Its
// Into form writes into existing tensors, which come before the operands. An axis is a reduced dimension, counted from the
// front, or with negative numbers from the end. Broadcasting, type promotion, NaN and Inf follow PyTorch; package
// compute/kernel/expr has the rules. For the promotion, a tensor without dimensions is like any other.
//
// # Memory
//
// Results of operations are contiguous. Into forms take any layout that does not repeat elements. Operands may be any views.
//
// The rule for shared memory: an operation has the same result as with an output in other memory, or returns kernel.ErrOverlap
// before it submits anything. An output may be an operand of exactly the same layout and type, if the element at a place depends
// on that place of the operand, as in arithmetic, or on its row, as in softmax and norms. It must not overlap an operand in any
// other way; outputs of products, reductions, gathers, sums at indices and joined tensors must not overlap operands at all. Two
// outputs must not overlap. Gradients with several launches are written in an order in which none is read after it was written;
// without such an order they are refused.
//
// Operations submit work and do not wait for it.
//
// After an operation has run on given types and kinds of layouts, its Into form makes no driver calls except launches, fills and
// copies, and allocates nothing on Go's heap; other forms allocate the tensor. Temporary memory belongs to the stream, which
// keeps it for the next run. Products remember their method for 256 kinds of operands, and allocate for others.
//
// # Kernels
//
// An Ops compiles one kernel for each operation, types and axes, on the first call, in some milliseconds. Numbers such as
// epsilons and bounds are constants of the kernel, and each new one compiles: use numbers that belong to a model, not to a
// step. The numbers of AdamWAll and of random generators are arguments of the launch. Compile an operation before capturing
// it, by a call outside the capture. Products of matrices use package compute/kernel/matmul,
// attention package compute/kernel/attention.
//
// # Prepare
//
// A run prepares an operation: call it with the types, kinds of layouts and numbers that will be used. After
// o.Kernels().Freeze(), an operation that would compile returns kernel.ErrNotPrepared. With kernel.WithStore the next process
// needs no such runs: with kernel.Prepared it loads the kernels that an earlier process has stored, and refuses others. That
// includes this module's kernels of products and attention, not the library's.
//
// # Types
//
// The Into form converts to the type of the output if that is of the same family (bool, integers, floating-point numbers) or a
// higher one. Exp, Log, Tanh, Erf and operations made of them do not exist for float64, and return an *expr.TypeError. So do
// sums and differences that PyTorch refuses.
//
// # Indices
//
// Gather, Embedding and ScatterAdd take indices of int32 or int64. An index out of range ends the launch with a trap, before any
// access with it: the device's context is then lost, as with PyTorch. A fault of the simulated device names the operation, the
// index and the length. A class of CrossEntropy or CrossEntropyGradient out of range gives NaN.
//
// Sums at indices have the same bits in each run: they add in the order of the indices, without atomic operations, at the cost
// of a sort of the indices. Random numbers are the same on all devices.
//
// # Left out
//
// Sorting, cumulative sums and convolutions are not here.
//
// # Errors
//
// *Error names the operation with the types and shapes of its outputs and operands, and wraps the reason: errors of packages
// kernel, compute/kernel/expr, compute/kernel/plan, compute/kernel/matmul, compute/kernel/attention, tensor and cuda, ErrEmpty,
// ErrAxes, ErrNumber, ErrShape. Nothing was submitted then, unless the operation has several launches.
//
// # Concurrency properties
//
// All functions are safe for concurrent use. An operation whose kernel is compiled takes no lock to find it. Work of several
// goroutines on one stream runs in the order in which they submit it.
package ops
