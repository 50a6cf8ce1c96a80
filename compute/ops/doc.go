// Package ops computes on tensors: arithmetic, comparisons, activations, reductions, softmax, norms, losses, products of
// matrices, reads and sums at indices, random numbers, steps of AdamW, and the gradients that training needs. It needs the
// driver's library alone.
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
// An operation makes new tensors, with the tensor.Context that is its first argument: on its stream, and in its scope if it is
// one. Its Into form writes into tensors that are there, which come before the operands. An axis is a dimension that is
// reduced, counted from the front, or for negative numbers from the end. Broadcasting, the promotion of element types, NaN and
// Inf are PyTorch's; package compute/kernel/expr has the rules. A tensor without dimensions counts for the promotion as any
// other one.
//
// # Memory
//
// Results of operations are contiguous. Into forms take any layout that does not repeat elements. Operands may be any views.
//
// The rule for memory that is shared: an operation has the result that it has with an output of other memory, or is refused
// with kernel.ErrOverlap before it submits anything. An output may be an operand of exactly the same layout and type, where the
// element at a place depends on that place of the operand, as in arithmetic, or on its row, as in softmax and norms. It must
// not overlap an operand in any other way; outputs of products, reductions, gathers, sums at indices and joined tensors must
// not overlap one at all. Two outputs must not overlap. Gradients that take several launches are written in an order in which
// none is read after it was written; where there is no such order they are refused.
//
// Work is submitted and not waited for.
//
// Once an operation has been run on some types and kinds of layouts, its Into form makes no driver call but launches, fills and
// copies, and allocates nothing on Go's heap; other forms allocate the tensor. Temporary memory is of the stream, which keeps
// it for the next run. Products keep how they are computed for 256 kinds of operands, and allocate for others.
//
// # Kernels
//
// An Ops compiles one kernel for each operation, types and axes, on the first call, in some milliseconds. Numbers such as
// epsilons and bounds are constants of the kernel, and each new one compiles: use numbers that belong to a model, not to a
// step. The numbers of AdamWAll and of random generators are arguments of the launch. Compile an operation before capturing
// it, by a call outside the capture. Products of matrices use package compute/kernel/matmul.
//
// # Prepare
//
// A run prepares an operation: calls with the types, kinds of layouts and numbers that will be used compile all that these
// need. After that o.Kernels().Freeze() has an operation that would compile refused with kernel.ErrNotPrepared. With
// kernel.WithStore the next process need not run anything first: with kernel.Prepared it takes the kernels that an earlier one
// has left in the store, and refuses others. Own kernels of products are part of this; the library's are not.
//
// # Types
//
// The Into form converts to the type of the output if that is of the same family (bool, integers, floating-point numbers) or a
// higher one. Exp, Log, Tanh, Erf and all that is made of them do not exist for float64: those are a *expr.TypeError. So are
// sums and differences that PyTorch refuses.
//
// # Indices
//
// Gather, Embedding and ScatterAdd take indices of int32 or int64. One that is out of range ends the launch by a trap, before
// memory is touched with it: the device's context is lost then, as with PyTorch. A fault of the simulated device names the
// operation, the index and the length. Classes of CrossEntropy that there are not make NaN.
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
// kernel, compute/kernel/expr, compute/kernel/plan, compute/kernel/matmul, tensor and cuda, ErrEmpty, ErrAxes, ErrNumber,
// ErrShape. Nothing was submitted then, unless the operation has several launches.
//
// # Concurrency properties
//
// Any goroutine may call anything at any time. An operation whose kernel is compiled takes no lock to find it. Work of several
// goroutines on one stream is in the order in which they submit it.
package ops
