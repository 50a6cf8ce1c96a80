//go:build linux && (amd64 || arm64)

package dynamic

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// MemHostAlloc calls cuMemHostAlloc for memory that is portable between contexts and mapped for devices.
func (d *device) MemHostAlloc(bytes int64) ([]byte, error) {
	f, err := d.enterFeature(call.MemHostAlloc, cudadrv.PinnedHost)
	if err != nil {
		return nil, err
	}
	defer d.gate.leave(f)
	if bytes <= 0 {
		return nil, refuse(call.MemHostAlloc, cudadrv.InvalidValue, "%d bytes", bytes)
	}
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(bytes), portableHost|mappedHost
	if r := d.outside(inContext, call.MemHostAlloc, f, 3); r != cudadrv.Success {
		return nil, d.failed(f, call.MemHostAlloc, r, "%d bytes", bytes)
	}
	return unsafe.Slice((*byte)(f.address()), bytes), nil
}

// MemFreeHost calls cuMemFreeHost. It waits for all queued work of the device.
func (d *device) MemFreeHost(b []byte) error {
	return d.onHost(call.MemFreeHost, b)
}

// MemHostUnregister calls cuMemHostUnregister.
func (d *device) MemHostUnregister(b []byte) error {
	return d.onHost(call.MemHostUnregister, b)
}

// onHost makes a call that takes the start of host memory and nothing else.
func (d *device) onHost(c call.Call, b []byte) error {
	f, err := d.enterHost(c, b)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0] = f.hold(unsafe.Pointer(unsafe.SliceData(b)))
	return d.done(f, c, d.outside(inContext, c, f, 1))
}

// enterHost enters a call on host memory, which must not be empty.
func (d *device) enterHost(c call.Call, b []byte) (*frame, error) {
	f, err := d.enterFeature(c, cudadrv.PinnedHost)
	if err == nil && cap(b) == 0 {
		d.gate.leave(f)
		return nil, refuse(c, cudadrv.InvalidValue, "no host memory")
	}
	return f, err
}

// MemHostRegister calls cuMemHostRegister, portable between contexts and mapped for devices.
func (d *device) MemHostRegister(b []byte) error {
	f, err := d.enterHost(call.MemHostRegister, b)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1], f.args[2] = f.hold(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), portableHost|mappedHost
	if r := d.outside(inContext, call.MemHostRegister, f, 3); r != cudadrv.Success {
		return d.failed(f, call.MemHostRegister, r, "%d bytes", len(b))
	}
	return nil
}

// MemHostGetDevicePointer calls cuMemHostGetDevicePointer.
func (d *device) MemHostGetDevicePointer(b []byte) (cudadrv.Ptr, error) {
	f, err := d.enterHost(call.MemHostGetDevicePointer, b)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1], f.args[2] = f.pointer(0), f.hold(unsafe.Pointer(unsafe.SliceData(b))), 0
	if r := d.outside(inContext, call.MemHostGetDevicePointer, f, 3); r != cudadrv.Success {
		return 0, d.failed(f, call.MemHostGetDevicePointer, r, "")
	}
	return cudadrv.Ptr(f.out[0]), nil
}

// MemcpyHtoDAsync calls cuMemcpyHtoDAsync.
func (d *device) MemcpyHtoDAsync(dst cudadrv.Ptr, src []byte, s cudadrv.Stream) error {
	f, err := d.enterFeature(call.MemcpyHtoDAsync, cudadrv.PinnedHost)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if len(src) == 0 {
		return nil
	}
	f.args = [mostArgs]uintptr{uintptr(dst), f.hold(unsafe.Pointer(unsafe.SliceData(src))), uintptr(len(src)), uintptr(s)}
	if r := d.callCurrent(call.MemcpyHtoDAsync, f, 4); r != cudadrv.Success {
		return d.failed(f, call.MemcpyHtoDAsync, r, "%d bytes to %#x", len(src), uint64(dst))
	}
	return nil
}

// MemcpyDtoHAsync calls cuMemcpyDtoHAsync.
func (d *device) MemcpyDtoHAsync(dst []byte, src cudadrv.Ptr, s cudadrv.Stream) error {
	f, err := d.enterFeature(call.MemcpyDtoHAsync, cudadrv.PinnedHost)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if len(dst) == 0 {
		return nil
	}
	f.args = [mostArgs]uintptr{f.hold(unsafe.Pointer(unsafe.SliceData(dst))), uintptr(src), uintptr(len(dst)), uintptr(s)}
	if r := d.callCurrent(call.MemcpyDtoHAsync, f, 4); r != cudadrv.Success {
		return d.failed(f, call.MemcpyDtoHAsync, r, "%d bytes from %#x", len(dst), uint64(src))
	}
	return nil
}
