// Package dynamic is the driver for real GPUs: it opens NVIDIA's libcuda at run time and calls it without
// cgo, so one program runs on machines with and without a GPU. It works on Linux on amd64 and arm64; elsewhere
// a Driver says ErrNoDriver. A program that imports it is dynamically linked, also with CGO_ENABLED=0.
//
// Importing the package and New open nothing. The first DeviceCount or Open loads the library, looks up every
// function and calls cuInit; the library then stays loaded.
//
// # Words
//
// A context is the device's primary CUDA context, which the package retains at Open and releases at Close, or a context of the
// caller (Config.Context), which it only uses. A frame is the memory of one call: its arguments and results. A device has a
// fixed set of frames, so a call allocates nothing.
//
// # Required and optional functions
//
// The package needs a driver of CUDA 11.8 or later. Open fails without a function that an allocator needs (*SymbolError). A
// missing function of another feature removes a capability from Info, and its methods return CUDA_ERROR_NOT_SUPPORTED. Graphs
// need CUDA 12.0. FuncGetParamInfo needs CUDA 12.4, and may be the only missing function of its interface. Versions are part of
// the symbols' names (cuMemAlloc_v2): the table of symbols fixes the C signatures that this package was written for.
// cuGetProcAddress would choose them by a CUDA version, at the price of one more function whose own versions differ.
//
// # States of a device
//
// Open, closing, closed. Close waits for calls in progress, refuses all others with CUDA_ERROR_INVALID_CONTEXT, and then
// releases the context. It is idempotent.
//
// # Calls refused before the driver
//
// A driver may crash on invalid handles, and reads a negative size as a huge one. So the package refuses sizes of zero and
// below, sizes that are no multiple of the granularity, host memory of no bytes, and the handle 0 of every kind, events
// included. It passes a destroyed handle, stream or event to the driver: hardware leaves its use undefined.
//
// # Kernels
//
// A launch hands the driver all parameters in one piece (CU_LAUNCH_PARAM_BUFFER_POINTER), allocates nothing, and makes no
// context current unless it is on a standard stream. A text that has no 0 at its end is copied before it is loaded or linked.
// The log of a compiler, of 8 KiB at most, is in the Detail of the error.
//
// # Captures
//
// A thread that captures in global mode makes CUDA refuse calls of the whole process with
// CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, and in thread-local mode calls of its own: calls that allocate or free, wait, or query
// whether work has finished. The refused call also invalidates the capture. A thread whose own mode is relaxed is not refused.
// So a Device makes its calls as follows, except calls that submit work to a stream (launches, records, waits, fills, copies,
// host functions) or query a capture.
//
//   - During a capture that was begun by StreamBeginCapture of a device of this Driver in another mode than
//     CaptureRelaxed, the thread is put into relaxed mode for the call. The capture stays valid.
//   - Otherwise the thread's mode is left alone. If the call is refused with CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, some
//     other code in the process captures; the call is repeated once in relaxed mode. So the allocator works during captures
//     of others, but the first try has invalidated the other capture: other code in the process must capture in relaxed or
//     thread-local mode.
//
// A call that has begun just before StreamBeginCapture returns in another thread is one of the second kind. Other results of
// captures (CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, CUDA_ERROR_CAPTURED_EVENT and the like) say that the call itself and the
// capture exclude each other, in any mode, and are passed on. So is a second refusal: of a call on the captured stream itself.
//
// A capture counts until StreamEndCapture of any device of the Driver has ended it or StreamDestroy has taken its stream away.
// A capture that other code ends still counts, which costs each call two exchanges of a thread's mode.
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
