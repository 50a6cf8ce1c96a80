//go:build linux && (amd64 || arm64)

package dynamic

import (
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.ForeignCalls = (*device)(nil)

// WithContext runs f with the device's context current. Calls of the library of f are not this package's: their thread is in
// relaxed mode, since one of them may be of the kind that a capture forbids.
func (d *device) WithContext(f func() error) error {
	const push = "cuCtxPushCurrent"
	fr := d.gate.enter()
	if fr == nil {
		return &cudadrv.CallError{Func: push, Result: cudadrv.InvalidContext, Detail: "the device is closed"}
	}
	defer d.gate.leave(fr)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	fr.args[0] = d.context
	if r := d.lib.call(cuCtxPushCurrent, fr, 1); r != cudadrv.Success {
		return d.lib.describe(fr, push, r, "")
	}
	defer func() {
		fr.args[0] = uintptr(unsafe.Pointer(&fr.popped))
		_ = d.lib.call(cuCtxPopCurrent, fr, 1) // fails only if the context is gone
	}()
	if exchange := d.lib.functions[call.ThreadExchangeStreamCaptureMode]; exchange != 0 {
		fr.mode = uint64(cudadrv.CaptureRelaxed)
		fr.current[0] = uintptr(unsafe.Pointer(&fr.mode))
		if r, _, _ := purego.SyscallN(exchange, fr.current[:]...); int32(r) == 0 {
			defer func() { _, _, _ = purego.SyscallN(exchange, fr.current[:]...) }() // the mode was the thread's
		}
	}
	return f()
}
