// Package dynamic is the driver for real GPUs: it opens NVIDIA's libcuda at run time and calls it without
// cgo, so one program runs on machines with and without a GPU. It works on Linux on amd64 and arm64; elsewhere
// a Driver says ErrNoDriver. A program that imports it is dynamically linked, also with CGO_ENABLED=0.
//
// Importing the package and New open nothing. The first DeviceCount or Open loads the library, looks up every
// function and calls cuInit; the library then stays loaded.
//
// # Words
//
// A context is CUDA's: the device's primary one, which the package retains at Open and releases at Close, or one
// of the caller's (Config.Context), which it only uses. A frame is the memory of one call: its arguments and
// what C writes back. A device has a fixed set of frames, so a call allocates nothing.
//
// # What is needed, and what may be missing
//
// The driver must be of CUDA 11.8 or later. Functions that an allocator cannot do without fail Open where they are
// missing (*SymbolError); those of other features take a capability out of Info, and their methods answer
// CUDA_ERROR_NOT_SUPPORTED. Graphs need the driver of CUDA 12.0. FuncGetParamInfo needs that of 12.4, and without it is the only
// one of its interface to be missing. Versions are part of the names that are looked up (cuMemAlloc_v2): the table
// of symbols fixes the C signatures that this package was written for. cuGetProcAddress would choose them by
// a CUDA version, at the price of one more function whose own versions differ.
//
// # States of a device
//
// Open, closing, closed. Close lets the calls that are under way come to their end, refuses all others with
// CUDA_ERROR_INVALID_CONTEXT, and then releases the context. It is idempotent.
//
// # What never reaches the driver
//
// A driver may crash on handles that name nothing and takes a negative size for a huge one. So sizes of
// zero and below, sizes that are no multiple of the granularity, host memory of no bytes, the handle 0 of whatever kind and the
// event 0 are refused here.
// A handle, stream or event that was given back and is used again is passed on: hardware leaves its use undefined.
//
// # Kernels
//
// A launch hands the driver all parameters in one piece (CU_LAUNCH_PARAM_BUFFER_POINTER), allocates nothing, and makes no context
// current unless it is on a standard stream. A text that has no 0 at its end is copied before it is loaded or linked. The log of a
// compiler, of 8 KiB at most, is in the Detail of the error.
//
// # Captures
//
// A thread that captures in global mode makes CUDA refuse calls of the whole process with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
// and in thread-local mode calls of its own: those that allocate or free, wait, or ask whether work has finished. The refused
// call also breaks the capture. A thread whose own mode is relaxed is not refused. So every call of a Device but those that tell
// a stream something (launches, records, waits, fills, copies, host functions) or ask about a capture is made as follows.
//
//   - While a capture is under way that was begun by StreamBeginCapture of a device of this Driver in another mode than
//     CaptureRelaxed, the thread is put into relaxed mode for the length of the call and then back. The capture stays whole.
//   - Otherwise the call is made as it is. If it is refused with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, some other code in the process
//     captures; it is made once more in relaxed mode. So the allocator works beside captures of others. That the first try broke
//     the other capture cannot be helped: other code that shares the process captures in relaxed or thread-local mode, or says
//     so to its threads.
//
// A call that has begun just before StreamBeginCapture returns in another thread is one of the second kind. Other results of
// captures (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_ERROR_CAPTURED_EVENT and the like) say that the call itself and the capture
// exclude each other, in whatever mode, and are passed on. So is a second refusal: that of a call on the captured stream itself.
//
// A capture counts until StreamEndCapture of any device of the Driver has ended it or StreamDestroy has taken its stream away. What
// others end there counts on, which costs each call two exchanges of a thread's mode.
//
// # Errors
//
// A failed call is a *cudadrv.CallError with the driver's own text, and the file and line of the code
// outside of the driver packages that made the call. An error of earlier work on the device can show up at any call.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. Calls that CUDA makes in the current context of the calling
// thread hold the goroutine on its thread, push the context, call, and pop it: a context that other code has made
// current there is as it was. No lock is taken, and no goroutine is started. A function passed to LaunchHostFunc
// runs on a thread of the driver's.
package dynamic
