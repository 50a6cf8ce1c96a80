//go:build linux && (amd64 || arm64)

package dynamic

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// callCurrent makes a call with the device's context current on the calling thread, and leaves the thread with
// the contexts that it had. On failure to do so the frame says so and the call is not made.
//
// Leaving the context current would save a call, but change the thread for other code. Checking first whether it is current
// would add one: usually no other code sets it.
func (d *device) callCurrent(fn symbol, f *frame, n int) cudadrv.Result {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f.current[0] = d.context
	if r, _, _ := purego.SyscallN(d.lib.functions[cuCtxPushCurrent], f.current[:]...); r != 0 {
		f.failing = true
		return cudadrv.Result(int32(r))
	}
	r := d.lib.call(fn, f, n)
	f.current[0] = uintptr(unsafe.Pointer(&f.popped))
	// It fails only if the context is gone, and then the call failed, too.
	_, _, _ = purego.SyscallN(d.lib.functions[cuCtxPopCurrent], f.current[:]...)
	return r
}

// callOn makes a call on a stream. The standard streams belong to the current context, others to the one that
// they were made in.
func (d *device) callOn(s cudadrv.Stream, fn symbol, f *frame, n int) cudadrv.Result {
	if s <= lastStandardStream {
		return d.callCurrent(fn, f, n)
	}
	return d.lib.call(fn, f, n)
}

// exchange calls cuThreadExchangeStreamCaptureMode with the frame's mode. It does not change the arguments of the frame's call.
func (d *device) exchange(f *frame) cudadrv.Result {
	f.current[0] = uintptr(unsafe.Pointer(&f.mode))
	r, _, _ := purego.SyscallN(d.lib.functions[call.ThreadExchangeStreamCaptureMode], f.current[:]...)
	return cudadrv.Result(int32(r))
}
