// Package intercept forwards a cudadrv.Device's calls to another device and calls a hook before and after each. Wrappers embed
// its Device and override the calls that they change.
package intercept

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// Hook observes calls. Its methods are called from the goroutine that makes the call, hence from many goroutines at once.
type Hook interface {
	// Before runs ahead of the call. On an error the call is not made, After is not called, and the caller gets the error. The
	// mark is passed to After.
	Before(c call.Call) (mark int64, err error)
	// After runs once the call has returned, also when it failed or panicked: failed says which.
	After(c call.Call, mark int64, failed bool)
}

// Device forwards every call but Info. It allocates nothing itself.
type Device struct {
	inner cudadrv.Device
	hook  Hook

	translate func(error) error // of the errors of calls; nil: they stay
}

// Wrap makes the forwarder of inner. It is a value to embed and not to be changed afterwards.
func Wrap(inner cudadrv.Device, hook Hook) Device { return Device{inner: inner, hook: hook} }

// WithTranslation is Wrap with a function that replaces the errors of calls.
func WithTranslation(inner cudadrv.Device, hook Hook, translate func(error) error) Device {
	return Device{inner: inner, hook: hook, translate: translate}
}

// Inner returns the wrapped device.
func (d *Device) Inner() cudadrv.Device { return d.inner }

// do makes one call without a result. The closure stays on the caller's stack.
func (d *Device) do(c call.Call, f func() error) error {
	mark, err := d.hook.Before(c)
	if err != nil {
		return err
	}
	failed := true // until it has returned without an error
	defer func() { d.hook.After(c, mark, failed) }()
	err = f()
	failed = err != nil
	return d.translated(err)
}

// translated returns the error that the caller gets.
func (d *Device) translated(err error) error {
	if err == nil || d.translate == nil {
		return err
	}
	return d.translate(err)
}

// value makes one call with a result.
func value[T any](d *Device, c call.Call, f func() (T, error)) (T, error) {
	mark, err := d.hook.Before(c)
	if err != nil {
		var none T
		return none, err
	}
	failed := true // as in do
	defer func() { d.hook.After(c, mark, failed) }()
	v, err := f()
	failed = err != nil
	return v, d.translated(err)
}

// Info forwards to the device; it is no driver call and does not call the hook.
func (d *Device) Info() cudadrv.Info { return d.inner.Info() }

// Close forwards cuDevicePrimaryCtxRelease.
func (d *Device) Close() error {
	return d.do(call.PrimaryCtxRelease, func() error { return d.inner.Close() })
}

// MemGetInfo forwards cuMemGetInfo.
func (d *Device) MemGetInfo() (freeBytes, totalBytes int64, err error) {
	err = d.do(call.MemGetInfo, func() (err error) {
		freeBytes, totalBytes, err = d.inner.MemGetInfo()
		return err
	})
	return freeBytes, totalBytes, err
}

// MemAlloc forwards cuMemAlloc.
func (d *Device) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	return value(d, call.MemAlloc, func() (cudadrv.Ptr, error) { return d.inner.MemAlloc(bytes) })
}

// MemFree forwards cuMemFree.
func (d *Device) MemFree(p cudadrv.Ptr) error {
	return d.do(call.MemFree, func() error { return d.inner.MemFree(p) })
}

// MemAddressReserve forwards cuMemAddressReserve.
func (d *Device) MemAddressReserve(bytes int64) (cudadrv.Ptr, error) {
	return value(d, call.MemAddressReserve, func() (cudadrv.Ptr, error) { return d.inner.MemAddressReserve(bytes) })
}

// MemAddressFree forwards cuMemAddressFree.
func (d *Device) MemAddressFree(p cudadrv.Ptr, bytes int64) error {
	return d.do(call.MemAddressFree, func() error { return d.inner.MemAddressFree(p, bytes) })
}

// MemCreate forwards cuMemCreate.
func (d *Device) MemCreate(bytes int64) (cudadrv.Handle, error) {
	return value(d, call.MemCreate, func() (cudadrv.Handle, error) { return d.inner.MemCreate(bytes) })
}

// MemRelease forwards cuMemRelease.
func (d *Device) MemRelease(h cudadrv.Handle) error {
	return d.do(call.MemRelease, func() error { return d.inner.MemRelease(h) })
}

// MemMap forwards cuMemMap.
func (d *Device) MemMap(p cudadrv.Ptr, bytes int64, h cudadrv.Handle) error {
	return d.do(call.MemMap, func() error { return d.inner.MemMap(p, bytes, h) })
}

// MemSetAccess forwards cuMemSetAccess.
func (d *Device) MemSetAccess(p cudadrv.Ptr, bytes int64) error {
	return d.do(call.MemSetAccess, func() error { return d.inner.MemSetAccess(p, bytes) })
}

// MemUnmap forwards cuMemUnmap.
func (d *Device) MemUnmap(p cudadrv.Ptr, bytes int64) error {
	return d.do(call.MemUnmap, func() error { return d.inner.MemUnmap(p, bytes) })
}

// StreamCreate forwards cuStreamCreate.
func (d *Device) StreamCreate() (cudadrv.Stream, error) {
	return value(d, call.StreamCreate, func() (cudadrv.Stream, error) { return d.inner.StreamCreate() })
}

// StreamDestroy forwards cuStreamDestroy.
func (d *Device) StreamDestroy(s cudadrv.Stream) error {
	return d.do(call.StreamDestroy, func() error { return d.inner.StreamDestroy(s) })
}

// StreamQuery forwards cuStreamQuery.
func (d *Device) StreamQuery(s cudadrv.Stream) (bool, error) {
	return value(d, call.StreamQuery, func() (bool, error) { return d.inner.StreamQuery(s) })
}

// StreamSynchronize forwards cuStreamSynchronize.
func (d *Device) StreamSynchronize(s cudadrv.Stream) error {
	return d.do(call.StreamSynchronize, func() error { return d.inner.StreamSynchronize(s) })
}

// StreamWaitEvent forwards cuStreamWaitEvent.
func (d *Device) StreamWaitEvent(s cudadrv.Stream, e cudadrv.Event) error {
	return d.do(call.StreamWaitEvent, func() error { return d.inner.StreamWaitEvent(s, e) })
}

// CtxSynchronize forwards cuCtxSynchronize.
func (d *Device) CtxSynchronize() error {
	return d.do(call.CtxSynchronize, func() error { return d.inner.CtxSynchronize() })
}

// EventCreate forwards cuEventCreate.
func (d *Device) EventCreate() (cudadrv.Event, error) {
	return value(d, call.EventCreate, func() (cudadrv.Event, error) { return d.inner.EventCreate() })
}

// EventDestroy forwards cuEventDestroy.
func (d *Device) EventDestroy(e cudadrv.Event) error {
	return d.do(call.EventDestroy, func() error { return d.inner.EventDestroy(e) })
}

// EventRecord forwards cuEventRecord.
func (d *Device) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	return d.do(call.EventRecord, func() error { return d.inner.EventRecord(e, s) })
}

// EventQuery forwards cuEventQuery.
func (d *Device) EventQuery(e cudadrv.Event) (bool, error) {
	return value(d, call.EventQuery, func() (bool, error) { return d.inner.EventQuery(e) })
}

// EventSynchronize forwards cuEventSynchronize.
func (d *Device) EventSynchronize(e cudadrv.Event) error {
	return d.do(call.EventSynchronize, func() error { return d.inner.EventSynchronize(e) })
}

// MemsetD8Async forwards cuMemsetD8Async.
func (d *Device) MemsetD8Async(p cudadrv.Ptr, value byte, bytes int64, s cudadrv.Stream) error {
	return d.do(call.MemsetD8Async, func() error { return d.inner.MemsetD8Async(p, value, bytes, s) })
}

// MemcpyDtoDAsync forwards cuMemcpyDtoDAsync.
func (d *Device) MemcpyDtoDAsync(dst, src cudadrv.Ptr, bytes int64, s cudadrv.Stream) error {
	return d.do(call.MemcpyDtoDAsync, func() error { return d.inner.MemcpyDtoDAsync(dst, src, bytes, s) })
}
