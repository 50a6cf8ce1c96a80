package intercept

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var (
	_ cudadrv.HostMemory      = (*Device)(nil)
	_ cudadrv.HostFunctions   = (*Device)(nil)
	_ cudadrv.ShareableMemory = (*Device)(nil)
	_ cudadrv.CaptureQueries  = (*Device)(nil)
	_ cudadrv.BlockingStreams = (*Device)(nil)
)

// Wrapper is a device that changes some calls of the wrapped one and knows nothing of others: the wrapped device may have
// optional interfaces that the wrapper lacks.
type Wrapper interface {
	Unwrap() cudadrv.Device
}

// find looks for an optional interface on the device and on the devices that it wraps.
func find[T any](dev cudadrv.Device) (T, bool) {
	for {
		if t, ok := dev.(T); ok {
			return t, true
		}
		w, ok := dev.(Wrapper)
		if !ok {
			var none T
			return none, false
		}
		dev = w.Unwrap()
	}
}

// lacking returns the error of a call that the wrapped device does not have.
func lacking(c call.Call) error {
	return &cudadrv.CallError{Func: c.String(), Result: cudadrv.NotSupported, Detail: "the device does not have the call"}
}

// forward makes an optional call without a result. The hook hears of it also where the device lacks it.
func forward[T any](d *Device, c call.Call, f func(T) error) error {
	return d.do(c, func() error {
		t, ok := find[T](d.inner)
		if !ok {
			return lacking(c)
		}
		return f(t)
	})
}

// obtain makes an optional call with a result.
func obtain[T, V any](d *Device, c call.Call, f func(T) (V, error)) (V, error) {
	return value(d, c, func() (V, error) {
		t, ok := find[T](d.inner)
		if !ok {
			var none V
			return none, lacking(c)
		}
		return f(t)
	})
}

// MemHostAlloc forwards cuMemHostAlloc.
func (d *Device) MemHostAlloc(bytes int64) ([]byte, error) {
	return obtain(d, call.MemHostAlloc, func(t cudadrv.HostMemory) ([]byte, error) { return t.MemHostAlloc(bytes) })
}

// MemFreeHost forwards cuMemFreeHost.
func (d *Device) MemFreeHost(b []byte) error {
	return forward(d, call.MemFreeHost, func(t cudadrv.HostMemory) error { return t.MemFreeHost(b) })
}

// MemHostRegister forwards cuMemHostRegister.
func (d *Device) MemHostRegister(b []byte) error {
	return forward(d, call.MemHostRegister, func(t cudadrv.HostMemory) error { return t.MemHostRegister(b) })
}

// MemHostUnregister forwards cuMemHostUnregister.
func (d *Device) MemHostUnregister(b []byte) error {
	return forward(d, call.MemHostUnregister, func(t cudadrv.HostMemory) error { return t.MemHostUnregister(b) })
}

// MemHostGetDevicePointer forwards cuMemHostGetDevicePointer.
func (d *Device) MemHostGetDevicePointer(b []byte) (cudadrv.Ptr, error) {
	return obtain(d, call.MemHostGetDevicePointer,
		func(t cudadrv.HostMemory) (cudadrv.Ptr, error) { return t.MemHostGetDevicePointer(b) })
}

// MemcpyHtoDAsync forwards cuMemcpyHtoDAsync.
func (d *Device) MemcpyHtoDAsync(dst cudadrv.Ptr, src []byte, s cudadrv.Stream) error {
	return forward(d, call.MemcpyHtoDAsync, func(t cudadrv.HostMemory) error { return t.MemcpyHtoDAsync(dst, src, s) })
}

// MemcpyDtoHAsync forwards cuMemcpyDtoHAsync.
func (d *Device) MemcpyDtoHAsync(dst []byte, src cudadrv.Ptr, s cudadrv.Stream) error {
	return forward(d, call.MemcpyDtoHAsync, func(t cudadrv.HostMemory) error { return t.MemcpyDtoHAsync(dst, src, s) })
}

// LaunchHostFunc forwards cuLaunchHostFunc.
func (d *Device) LaunchHostFunc(s cudadrv.Stream, f func()) error {
	return forward(d, call.LaunchHostFunc, func(t cudadrv.HostFunctions) error { return t.LaunchHostFunc(s, f) })
}

// MemCreateShareable forwards cuMemCreate.
func (d *Device) MemCreateShareable(bytes int64) (cudadrv.Handle, error) {
	return obtain(d, call.MemCreate,
		func(t cudadrv.ShareableMemory) (cudadrv.Handle, error) { return t.MemCreateShareable(bytes) })
}

// MemExportToShareableHandle forwards cuMemExportToShareableHandle.
func (d *Device) MemExportToShareableHandle(h cudadrv.Handle) (int, error) {
	return obtain(d, call.MemExportToShareableHandle,
		func(t cudadrv.ShareableMemory) (int, error) { return t.MemExportToShareableHandle(h) })
}

// MemImportFromShareableHandle forwards cuMemImportFromShareableHandle.
func (d *Device) MemImportFromShareableHandle(fd int) (cudadrv.Handle, error) {
	return obtain(d, call.MemImportFromShareableHandle,
		func(t cudadrv.ShareableMemory) (cudadrv.Handle, error) { return t.MemImportFromShareableHandle(fd) })
}

// StreamIsCapturing forwards cuStreamIsCapturing.
func (d *Device) StreamIsCapturing(s cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	return obtain(d, call.StreamIsCapturing,
		func(t cudadrv.CaptureQueries) (cudadrv.CaptureStatus, error) { return t.StreamIsCapturing(s) })
}

// StreamCreateBlocking forwards cuStreamCreate.
func (d *Device) StreamCreateBlocking() (cudadrv.Stream, error) {
	return obtain(d, call.StreamCreate,
		func(t cudadrv.BlockingStreams) (cudadrv.Stream, error) { return t.StreamCreateBlocking() })
}
