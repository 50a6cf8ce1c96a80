//go:build linux && (amd64 || arm64)

package dynamic

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// MemGetInfo calls cuMemGetInfo.
func (d *device) MemGetInfo() (freeBytes, totalBytes int64, err error) {
	f, err := d.enter(call.MemGetInfo)
	if err != nil {
		return 0, 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = f.pointer(0), f.pointer(1)
	if r := d.outside(inContext, call.MemGetInfo, f, 2); r != cudadrv.Success {
		return 0, 0, d.failed(f, call.MemGetInfo, r, "")
	}
	return int64(f.out[0]), int64(f.out[1]), nil
}

// MemAlloc calls cuMemAlloc.
func (d *device) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	f, err := d.enter(call.MemAlloc)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	if bytes <= 0 {
		return 0, refuse(call.MemAlloc, cudadrv.InvalidValue, "%d bytes", bytes)
	}
	f.args[0], f.args[1] = f.pointer(0), uintptr(bytes)
	if r := d.outside(inContext, call.MemAlloc, f, 2); r != cudadrv.Success {
		return 0, d.failed(f, call.MemAlloc, r, "%d bytes", bytes)
	}
	return cudadrv.Ptr(f.out[0]), nil
}

// MemFree calls cuMemFree. It waits for all queued work of the device. It does not need the context, but in 20 us
// and more the context is cheap, and then wrong addresses are answered as such.
func (d *device) MemFree(p cudadrv.Ptr) error {
	f, err := d.enter(call.MemFree)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if p == 0 {
		return nil
	}
	f.args[0] = uintptr(p)
	if r := d.outside(inContext, call.MemFree, f, 1); r != cudadrv.Success {
		return d.failed(f, call.MemFree, r, "address %#x", uint64(p))
	}
	return nil
}

// MemsetD8Async calls cuMemsetD8Async. It is called with the context current, as are copies: on a thread without one, an
// H200's driver has both taken and refused memory of MemAlloc.
func (d *device) MemsetD8Async(p cudadrv.Ptr, value byte, bytes int64, s cudadrv.Stream) error {
	f, err := d.enter(call.MemsetD8Async)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if bytes <= 0 {
		return d.noWork(call.MemsetD8Async, bytes)
	}
	f.args = [mostArgs]uintptr{uintptr(p), uintptr(value), uintptr(bytes), uintptr(s)}
	if r := d.callCurrent(call.MemsetD8Async, f, 4); r != cudadrv.Success {
		return d.failed(f, call.MemsetD8Async, r, "%d bytes at %#x", bytes, uint64(p))
	}
	return nil
}

// MemcpyDtoDAsync calls cuMemcpyDtoDAsync.
func (d *device) MemcpyDtoDAsync(dst, src cudadrv.Ptr, bytes int64, s cudadrv.Stream) error {
	f, err := d.enter(call.MemcpyDtoDAsync)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if bytes <= 0 {
		return d.noWork(call.MemcpyDtoDAsync, bytes)
	}
	f.args = [mostArgs]uintptr{uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s)}
	if r := d.callCurrent(call.MemcpyDtoDAsync, f, 4); r != cudadrv.Success {
		return d.failed(f, call.MemcpyDtoDAsync, r, "%d bytes from %#x to %#x", bytes, uint64(src), uint64(dst))
	}
	return nil
}

// noWork returns the result of work on no bytes, or on fewer.
func (d *device) noWork(c call.Call, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	return refuse(c, cudadrv.InvalidValue, "%d bytes", bytes)
}
