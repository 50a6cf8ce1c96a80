// Package tensor stores arrays of numbers in the device memory of vram, with shape, strides and element type,
// and makes views of them. It uses package cuda, also runs on the simulated device, and launches no kernel:
// package compute/ops computes.
//
// # Use
//
//	err := tensor.Scoped(c, func(s *tensor.Scope) error { // c is a *cuda.Context
//		x, err := tensor.From(s, []float32{1, 2, 3, 4, 5, 6}, 2, 3)
//		if err != nil {
//			return err
//		}
//		columns, err := x.Transpose(0, 1) // a view: no copy
//		if err != nil {
//			return err
//		}
//		values, err := tensor.Read[float32](columns) // [1 4 2 5 3 6]
//		...
//	}) // x is freed here
//
// # Words
//
// A Tensor is a storage seen through a layout: shape, strides and offset, in elements (package
// compute/tensor/layout). Its element Type is one of ten. A storage is the device memory of one or more tensors. The
// tensor that New, Zeros, From, Full, Clone or To returned is the owner of its storage. The others are views, which
// share the memory. A Scope frees the tensors that were made in it.
//
// # Memory
//
//	made --first use--> allocated --Free--> freed
//	made --Free--> freed
//
// A storage has no memory before its first use: Buffer, a copy, a fill, a launch on it, Allocate. The first use allocates on
// the stream of the context in which the tensor was made; for Zeros it submits a fill. Any goroutine may be first, also
// several at a time. In a capture of that context the memory comes from the hold of the graph, and each launch zeroes Zeros:
// call Allocate before the capture for a tensor that has to outlive the graph. A tensor without elements never has memory.
//
// # Freeing
//
// One rule: the owner frees, once, and all tensors of the storage are freed with it. Free of a view returns
// ErrView and frees nothing; Owner returns the owner of a view. Each use of a freed tensor, through any view,
// returns ErrFreed: the check is one comparison of the buffer's generation, and also finds a buffer that was
// freed directly. Free is in the order of the stream: earlier work has the memory.
//
// A Scope frees its live tensors, the newest first, when its function returns, fails or panics. A Scope is a
// Context: all tensors made with it belong to it, including results of operations. Keep moves a tensor to the
// outer scope, or to the caller. Scoped(s, …) nests scopes, and they may begin and end inside and around
// captures. Tensors made with a *cuda.Context belong to no scope: the program frees them. Live returns the
// tensors of a scope that are not freed, with the option Sites also their places in the program.
//
// # Copies
//
// Copy takes any layouts: between contiguous ones it is one copy of the driver, else copies of rows
// (layout.Copies has their number: a transposed matrix takes one for each row). It broadcasts the source, and
// stages a source that overlaps the destination. It never converts: another element type is a *TypeError.
// Read and Write take views as well: they pack them on the device, or on the host where the elements lie
// close together. Elements are in row-major order on the host.
//
// # Printing
//
// String, and so %v with every flag, has type, shape and device, and touches neither the memory nor the
// driver. Fprint and Sprint print the values, as NumPy does: they read them, wait for the device, and read
// only the elements that they show.
//
// # Errors
//
// *ShapeError, *IndexError and *LayoutError name the operation and the shapes, *TypeError the types;
// ErrFreed and ErrView come wrapped with the tensor; errors of package cuda and of vram, as
// vram.ErrOutOfMemory and cuda.ErrCapturing, are passed on. A mistake of the caller is an error, never a
// panic, and nothing has changed then; nil and zero tensors are ErrNoTensor. Where the driver refuses one of
// several copies of rows, those before it have been made.
//
// # Concurrency properties
//
// A tensor is immutable except for its storage, whose state is one atomic word: any number of goroutines may
// make views, read and copy at the same time, without a lock. Work of several goroutines on one tensor runs in
// the order in which it reaches the streams; callers that need another order must wait. One goroutine at a time
// may use a Scope; others may use its tensors until it ends.
package tensor
