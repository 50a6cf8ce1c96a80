package intercept

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var (
	_ cudadrv.HostMemory          = (*Device)(nil)
	_ cudadrv.StreamValues        = (*Device)(nil)
	_ cudadrv.StreamOrderedMemory = (*Device)(nil)
	_ cudadrv.HostFunctions       = (*Device)(nil)
	_ cudadrv.PointerQueries      = (*Device)(nil)
	_ cudadrv.ShareableMemory     = (*Device)(nil)
	_ cudadrv.CaptureQueries      = (*Device)(nil)
	_ cudadrv.BlockingStreams     = (*Device)(nil)
)

// Wrapper is a device that changes some calls of the one behind it and knows nothing of others: what it
// does not have itself, the device behind it may.
type Wrapper interface {
	Unwrap() cudadrv.Device
}

// find looks for an optional interface on the device and those behind it.
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

// lacking is the error of a call that the wrapped device does not have.
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

// StreamWriteValue32 forwards cuStreamWriteValue32.
func (d *Device) StreamWriteValue32(s cudadrv.Stream, p cudadrv.Ptr, v uint32) error {
	return forward(d, call.StreamWriteValue32, func(t cudadrv.StreamValues) error { return t.StreamWriteValue32(s, p, v) })
}

// StreamWriteValue64 forwards cuStreamWriteValue64.
func (d *Device) StreamWriteValue64(s cudadrv.Stream, p cudadrv.Ptr, v uint64) error {
	return forward(d, call.StreamWriteValue64, func(t cudadrv.StreamValues) error { return t.StreamWriteValue64(s, p, v) })
}

// StreamWaitValue32 forwards cuStreamWaitValue32.
func (d *Device) StreamWaitValue32(s cudadrv.Stream, p cudadrv.Ptr, v uint32, until cudadrv.WaitCondition) error {
	return forward(d, call.StreamWaitValue32, func(t cudadrv.StreamValues) error { return t.StreamWaitValue32(s, p, v, until) })
}

// StreamWaitValue64 forwards cuStreamWaitValue64.
func (d *Device) StreamWaitValue64(s cudadrv.Stream, p cudadrv.Ptr, v uint64, until cudadrv.WaitCondition) error {
	return forward(d, call.StreamWaitValue64, func(t cudadrv.StreamValues) error { return t.StreamWaitValue64(s, p, v, until) })
}

// MemAllocAsync forwards cuMemAllocAsync.
func (d *Device) MemAllocAsync(bytes int64, s cudadrv.Stream) (cudadrv.Ptr, error) {
	return obtain(d, call.MemAllocAsync,
		func(t cudadrv.StreamOrderedMemory) (cudadrv.Ptr, error) { return t.MemAllocAsync(bytes, s) })
}

// MemFreeAsync forwards cuMemFreeAsync.
func (d *Device) MemFreeAsync(p cudadrv.Ptr, s cudadrv.Stream) error {
	return forward(d, call.MemFreeAsync, func(t cudadrv.StreamOrderedMemory) error { return t.MemFreeAsync(p, s) })
}

// MemPoolTrimTo forwards cuMemPoolTrimTo.
func (d *Device) MemPoolTrimTo(keepBytes int64) error {
	return forward(d, call.MemPoolTrimTo, func(t cudadrv.StreamOrderedMemory) error { return t.MemPoolTrimTo(keepBytes) })
}

// MemPoolSetThreshold forwards cuMemPoolSetAttribute.
func (d *Device) MemPoolSetThreshold(bytes int64) error {
	return forward(d, call.MemPoolSetAttribute,
		func(t cudadrv.StreamOrderedMemory) error { return t.MemPoolSetThreshold(bytes) })
}

// MemPoolUsage forwards cuMemPoolGetAttribute.
func (d *Device) MemPoolUsage() (reservedBytes, usedBytes int64, err error) {
	err = forward(d, call.MemPoolGetAttribute, func(t cudadrv.StreamOrderedMemory) (err error) {
		reservedBytes, usedBytes, err = t.MemPoolUsage()
		return err
	})
	return reservedBytes, usedBytes, err
}

// LaunchHostFunc forwards cuLaunchHostFunc.
func (d *Device) LaunchHostFunc(s cudadrv.Stream, f func()) error {
	return forward(d, call.LaunchHostFunc, func(t cudadrv.HostFunctions) error { return t.LaunchHostFunc(s, f) })
}

// PointerGetAttributes forwards cuPointerGetAttribute.
func (d *Device) PointerGetAttributes(p cudadrv.Ptr) (cudadrv.PointerInfo, error) {
	return obtain(d, call.PointerGetAttribute,
		func(t cudadrv.PointerQueries) (cudadrv.PointerInfo, error) { return t.PointerGetAttributes(p) })
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
