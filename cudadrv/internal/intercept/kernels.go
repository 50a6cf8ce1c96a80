package intercept

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var (
	_ cudadrv.Kernels      = (*Device)(nil)
	_ cudadrv.TimedEvents  = (*Device)(nil)
	_ cudadrv.WideWork     = (*Device)(nil)
	_ cudadrv.Peers        = (*Device)(nil)
	_ cudadrv.ForeignCalls = (*Device)(nil)
	_ cudadrv.SharedEvents = (*Device)(nil)
	_ cudadrv.TensorMaps   = (*Device)(nil)
)

// two are the results of a call with two.
type two[A, B any] struct {
	a A
	b B
}

// obtainTwo makes an optional call with two results.
func obtainTwo[T, A, B any](d *Device, c call.Call, f func(T) (A, B, error)) (A, B, error) {
	got, err := obtain(d, c, func(t T) (two[A, B], error) {
		a, b, err := f(t)
		return two[A, B]{a, b}, err
	})
	return got.a, got.b, err
}

// ModuleLoadData forwards cuModuleLoadData.
func (d *Device) ModuleLoadData(image []byte) (cudadrv.Module, error) {
	return obtain(d, call.ModuleLoadData, func(t cudadrv.Kernels) (cudadrv.Module, error) { return t.ModuleLoadData(image) })
}

// ModuleUnload forwards cuModuleUnload.
func (d *Device) ModuleUnload(m cudadrv.Module) error {
	return forward(d, call.ModuleUnload, func(t cudadrv.Kernels) error { return t.ModuleUnload(m) })
}

// ModuleGetFunction forwards cuModuleGetFunction.
func (d *Device) ModuleGetFunction(m cudadrv.Module, name string) (cudadrv.Function, error) {
	return obtain(d, call.ModuleGetFunction, func(t cudadrv.Kernels) (cudadrv.Function, error) { return t.ModuleGetFunction(m, name) })
}

// ModuleGetGlobal forwards cuModuleGetGlobal.
func (d *Device) ModuleGetGlobal(m cudadrv.Module, name string) (cudadrv.Ptr, int64, error) {
	return obtainTwo(d, call.ModuleGetGlobal, func(t cudadrv.Kernels) (cudadrv.Ptr, int64, error) { return t.ModuleGetGlobal(m, name) })
}

// LinkImages forwards cuLinkCreate to cuLinkDestroy. The hook sees cuLinkComplete.
func (d *Device) LinkImages(images ...[]byte) ([]byte, error) {
	return obtain(d, call.LinkComplete, func(t cudadrv.Kernels) ([]byte, error) { return t.LinkImages(images...) })
}

// FuncGetAttribute forwards cuFuncGetAttribute.
func (d *Device) FuncGetAttribute(f cudadrv.Function, a cudadrv.FunctionAttribute) (int, error) {
	return obtain(d, call.FuncGetAttribute, func(t cudadrv.Kernels) (int, error) { return t.FuncGetAttribute(f, a) })
}

// FuncSetAttribute forwards cuFuncSetAttribute.
func (d *Device) FuncSetAttribute(f cudadrv.Function, a cudadrv.FunctionAttribute, value int) error {
	return forward(d, call.FuncSetAttribute, func(t cudadrv.Kernels) error { return t.FuncSetAttribute(f, a, value) })
}

// FuncGetParamInfo forwards cuFuncGetParamInfo.
func (d *Device) FuncGetParamInfo(f cudadrv.Function, index int) (offsetBytes, bytes int64, err error) {
	return obtainTwo(d, call.FuncGetParamInfo, func(t cudadrv.Kernels) (int64, int64, error) { return t.FuncGetParamInfo(f, index) })
}

// OccupancyMaxActiveBlocksPerMultiprocessor forwards cuOccupancyMaxActiveBlocksPerMultiprocessor.
func (d *Device) OccupancyMaxActiveBlocksPerMultiprocessor(f cudadrv.Function, blockThreads int, sharedBytes int64) (int, error) {
	return obtain(d, call.OccupancyMaxActiveBlocksPerMultiprocessor, func(t cudadrv.Kernels) (int, error) {
		return t.OccupancyMaxActiveBlocksPerMultiprocessor(f, blockThreads, sharedBytes)
	})
}

// OccupancyMaxPotentialBlockSize forwards cuOccupancyMaxPotentialBlockSize.
func (d *Device) OccupancyMaxPotentialBlockSize(f cudadrv.Function, sharedBytes int64, maxBlockThreads int) (gridBlocks, blockThreads int, err error) {
	return obtainTwo(d, call.OccupancyMaxPotentialBlockSize, func(t cudadrv.Kernels) (int, int, error) {
		return t.OccupancyMaxPotentialBlockSize(f, sharedBytes, maxBlockThreads)
	})
}

// LaunchKernel forwards cuLaunchKernel.
func (d *Device) LaunchKernel(f cudadrv.Function, g cudadrv.Geometry, params []byte, s cudadrv.Stream) error {
	return forward(d, call.LaunchKernel, func(t cudadrv.Kernels) error { return t.LaunchKernel(f, g, params, s) })
}

// EventCreateTimed forwards cuEventCreate.
func (d *Device) EventCreateTimed() (cudadrv.Event, error) {
	return obtain(d, call.EventCreate, func(t cudadrv.TimedEvents) (cudadrv.Event, error) { return t.EventCreateTimed() })
}

// EventElapsedTime forwards cuEventElapsedTime.
func (d *Device) EventElapsedTime(start, end cudadrv.Event) (time.Duration, error) {
	return obtain(d, call.EventElapsedTime, func(t cudadrv.TimedEvents) (time.Duration, error) { return t.EventElapsedTime(start, end) })
}

// MemsetD16Async forwards cuMemsetD16Async.
func (d *Device) MemsetD16Async(p cudadrv.Ptr, value uint16, count int64, s cudadrv.Stream) error {
	return forward(d, call.MemsetD16Async, func(t cudadrv.WideWork) error { return t.MemsetD16Async(p, value, count, s) })
}

// MemsetD32Async forwards cuMemsetD32Async.
func (d *Device) MemsetD32Async(p cudadrv.Ptr, value uint32, count int64, s cudadrv.Stream) error {
	return forward(d, call.MemsetD32Async, func(t cudadrv.WideWork) error { return t.MemsetD32Async(p, value, count, s) })
}

// Memcpy2DAsync forwards cuMemcpy2DAsync.
func (d *Device) Memcpy2DAsync(c cudadrv.Copy2D, s cudadrv.Stream) error {
	return forward(d, call.Memcpy2DAsync, func(t cudadrv.WideWork) error { return t.Memcpy2DAsync(c, s) })
}

// Context returns the context of the wrapped device, 0 if it has none; it is no driver call and does not call the hook.
func (d *Device) Context() cudadrv.Context {
	if t, ok := find[cudadrv.Peers](d.inner); ok {
		return t.Context()
	}
	return 0
}

// WithContext calls WithContext of the wrapped device; it is no driver call and does not call the hook.
func (d *Device) WithContext(f func() error) error {
	if t, ok := find[cudadrv.ForeignCalls](d.inner); ok {
		return t.WithContext(f)
	}
	return &cudadrv.CallError{Func: "cuCtxPushCurrent", Result: cudadrv.NotSupported, Detail: "the device has no context"}
}

// DeviceCanAccessPeer forwards cuDeviceCanAccessPeer.
func (d *Device) DeviceCanAccessPeer(ordinal int) (bool, error) {
	return obtain(d, call.DeviceCanAccessPeer, func(t cudadrv.Peers) (bool, error) { return t.DeviceCanAccessPeer(ordinal) })
}

// MemSetPeerAccess forwards cuMemSetAccess.
func (d *Device) MemSetPeerAccess(p cudadrv.Ptr, bytes int64, ordinals ...int) error {
	return forward(d, call.MemSetAccess, func(t cudadrv.Peers) error { return t.MemSetPeerAccess(p, bytes, ordinals...) })
}

// MemcpyPeerAsync forwards cuMemcpyPeerAsync.
func (d *Device) MemcpyPeerAsync(dst cudadrv.Ptr, dstContext cudadrv.Context, src cudadrv.Ptr, srcContext cudadrv.Context, bytes int64, s cudadrv.Stream) error {
	return forward(d, call.MemcpyPeerAsync, func(t cudadrv.Peers) error {
		return t.MemcpyPeerAsync(dst, dstContext, src, srcContext, bytes, s)
	})
}

// EventCreateShared forwards cuEventCreate.
func (d *Device) EventCreateShared() (cudadrv.Event, error) {
	return obtain(d, call.EventCreate, func(t cudadrv.SharedEvents) (cudadrv.Event, error) { return t.EventCreateShared() })
}

// IpcGetEventHandle forwards cuIpcGetEventHandle.
func (d *Device) IpcGetEventHandle(e cudadrv.Event) (cudadrv.EventDescriptor, error) {
	return obtain(d, call.IpcGetEventHandle, func(t cudadrv.SharedEvents) (cudadrv.EventDescriptor, error) { return t.IpcGetEventHandle(e) })
}

// IpcOpenEventHandle forwards cuIpcOpenEventHandle.
func (d *Device) IpcOpenEventHandle(from cudadrv.EventDescriptor) (cudadrv.Event, error) {
	return obtain(d, call.IpcOpenEventHandle, func(t cudadrv.SharedEvents) (cudadrv.Event, error) { return t.IpcOpenEventHandle(from) })
}

// TensorMapEncodeTiled forwards cuTensorMapEncodeTiled.
func (d *Device) TensorMapEncodeTiled(t cudadrv.TensorMap) (cudadrv.EncodedTensorMap, error) {
	return obtain(d, call.TensorMapEncodeTiled, func(m cudadrv.TensorMaps) (cudadrv.EncodedTensorMap, error) { return m.TensorMapEncodeTiled(t) })
}
