// Package gorgonia is the driver for programs that use gorgonia.org/cu: a cudadrv.Device in the context that the
// program has made there, and conversions between the handles of both. It is built with the tag gorgonia, with
// cgo, on Linux on amd64 and arm64; otherwise the package is empty. `make build-gorgonia` finds what it needs,
// and `make gorgonia-carry` needs neither CUDA's headers nor its library.
//
// A program that does not use gorgonia.org/cu is better served by cudadrv/dynamic: that one needs neither cgo nor
// the toolkit, and its calls allocate nothing.
//
// # Words
//
// The inner device is the one of cudadrv/dynamic that every Device here has, in the same context. What gorgonia.org/cu
// lacks goes there: virtual memory, page-locked memory, 64-bit words, the driver's own pool, host functions, pointer
// attributes, shareable handles and the capture state. Both call one libcuda, so memory, streams and
// events of the one are those of the other.
//
// Copies between host and device go there, too, although gorgonia.org/cu has them: cgo panics where the bytes
// are a part of a Go value with pointers in it.
//
// # What gorgonia.org/cu does by itself
//
// Importing it calls cuInit, and ends the program where that fails. A program that is built with it does not start on a
// machine without libcuda.so.1. So no package that is built without the tag imports this one.
//
// Only its package functions and the methods of Stream, Event and Device are called here. A cu.Ctx runs
// its calls on a thread of its own and is not needed; a CUContext is.
//
// # States of a device
//
// Open, closing, closed. Close lets the calls that are under way come to their end, refuses all others with
// CUDA_ERROR_INVALID_CONTEXT, closes the inner device, and then releases the primary context if Open has retained
// it. It is idempotent.
//
// # Errors
//
// A failed call is a *cudadrv.CallError. It has CUDA's result; the driver's own text and the place of the call are
// in those of the inner device only. What never reaches the driver is the same as in cudadrv/dynamic.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. A call that CUDA makes in the current context of the thread holds the
// goroutine on its thread, pushes the context, calls, and pops it: a context that other code has made current there
// is as it was. No lock is taken, and no goroutine is started. Calls with a result to write
// allocate it, as cgo does.
package gorgonia
