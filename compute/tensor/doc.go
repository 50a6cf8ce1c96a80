// Package tensor stores arrays of numbers in the device memory of vram, with shape, strides and element type,
// and makes views of them. It works on package cuda, runs on the simulated device, too, and launches no
// kernel: operations that compute are above it.
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
// tensor that New, Zeros, From, Full, Clone or To returned is the owner of its storage. The others on it are
// views: they share the memory. A Scope frees the tensors that were made in it.
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
// One rule: the owner frees, once, and all tensors of the storage are freed with it. Free of a view is
// ErrView and frees nothing; Owner leads from a view to its owner. Each use of a freed tensor, through any
// view, is ErrFreed: that costs one comparison of the buffer's generation, and finds a buffer that was freed
// by hand, too. Free is in the order of the stream: work that was submitted before has the memory.
//
// A Scope frees its tensors that are still live, in the reverse order in which they were made, when its
// function returns, fails or panics. Everything that takes a Context can be given a Scope: all tensors that
// are made with it belong to it, also those that operations make. Keep moves a tensor to the scope around it,
// or to the caller. Scopes are nested by Scoped(s, …), and may be begun and ended inside and around captures.
// Tensors that are made with a *cuda.Context belong to no scope: their maker frees them. Live has the tensors
// of a scope that are not freed, and with the option Sites where they were made.
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
// A tensor does not change but for its storage, whose state is one atomic word: any number of goroutines may
// make views, read and copy at the same time, without a lock. Work of several goroutines on one tensor is in
// the order in which it comes to the streams; a caller that needs another order makes it. A Scope is one goroutine's at
// a time; its tensors may be used by others until it ends.
package tensor
