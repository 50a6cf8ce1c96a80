// Package gorgonia is an engine of gorgonia.org/tensor: its tensors are in vram's device memory, and its operations run as
// kernels of package compute/ops.
//
// # Use
//
//	o, err := ops.New(c) // c is a *cuda.Context
//	...
//	e, err := gorgonia.New(c, o)
//	...
//	defer e.Close() // frees the memory of all tensors of e
//	x, err := gorgonia.From(e, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
//	...
//	err = e.Scoped(func() error {
//		y, err := tensor.Mul(x, x) // of gorgonia.org/tensor
//		if err != nil {
//			return err
//		}
//		values, err := gorgonia.Read[float32](y)
//		...
//	}) // y is freed here
//
// # Operations
//
// An Engine implements Adder, Suber, Muler and Diver, with tensors and scalars and the options UseUnsafe, WithReuse and
// WithIncr; MatMuler; and Sumer, Maxer and Miner. The element types are float32 and float64. All others are refused: by this
// package with an *Error, by gorgonia.org/tensor for the interfaces that are not here. Nothing is computed on the host.
//
// Operands may have any strides: slices, transposed matrices after T, column-major ones. New results are in row-major order;
// WithReuse, WithIncr and UseUnsafe write where that tensor has its elements. WithReuse wants a tensor of the result's shape.
// An output overlaps an operand only if both are one tensor; MatMul has no such output: otherwise kernel.ErrOverlap.
//
// Reductions have results of the element type on the device, without the reduced axes. NaN is the result of Max and Min
// wherever an operand has it, and the maximum of no elements is ops.ErrEmpty; the host's engine differs in both.
//
// # Memory
//
// Memory belongs to the scope in which it was allocated: the function that Scoped runs, or the whole life of the Engine. Keep
// moves it to the outer scope. Free frees it earlier. Go's garbage collector frees none of it, and tensor.ReturnTensor leaves
// it alone. Memory that Alloc, New and so tensor.New return is zero.
//
// A tensor of gorgonia.org/tensor has an address and no generation. An operation on a freed tensor is ErrForeign as long as no
// other tensor of the engine has its address, and uses that one's memory after that. Let no tensor outlive its scope.
//
// # Values
//
// Device memory is not accessible to Go code. From, Write and Read copy values in and out. Read waits for the work on the
// tensor; operations submit theirs, and do not wait.
//
// Functions of gorgonia.org/tensor that need the values on the host return an error, as Apply does, with these exceptions, which
// are not to be called for a tensor of this engine: Data, Get, ScalarValue, Zero, Outer and tensor.Copy from a tensor of the host
// access the address as if it were the host's, and Materialize returns zeros.
//
// # Errors
//
// *Error names the operation and its operands, and wraps ErrType, ErrLayout, ErrShape, ErrOption, ErrForeign, ErrInaccessible, or
// the error of the package that failed, such as vram.ErrOutOfMemory. Nothing has changed then, but a tensor that the operation was to write. The functions
// of gorgonia.org/tensor panic with an engine's error where they allocate: tensor.New, Clone, and MatMul without WithReuse.
// Engine.New and Engine.Product return it.
//
// # Concurrency properties
//
// One goroutine at a time uses an Engine and its tensors. Engines of one context or device are independent of each other.
package gorgonia
