package hazard

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard/internal/core"
	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/cudadrv/internal/intercept"
)

// Device is a view of a device whose calls are checked.
type Device struct {
	intercept.Device
	inner   cudadrv.Device
	driver  *Driver
	checker *Checker
	by      Host
	closed  atomic.Bool
}

// launcher is a device with simulated kernels.
type launcher interface {
	Launch(s cudadrv.Stream, duration time.Duration) error
	Now() time.Duration
}

// silent is the hook of a forwarder that has nothing to add.
type silent struct{}

func (silent) Before(call.Call) (int64, error) { return 0, nil }
func (silent) After(call.Call, int64, bool)    {}

func newDevice(inner cudadrv.Device, of *Driver, ordinal int, by Host) *Device {
	c := of.Checker(ordinal)
	c.opened()
	return &Device{Device: intercept.Wrap(inner, silent{}), inner: inner, driver: of, checker: c, by: by}
}

// Checker returns the checker of the device.
func (d *Device) Checker() *Checker { return d.checker }

// unseen are the capabilities whose calls order work in ways that the checker does not see.
const unseen = cudadrv.HostCalls

// Info returns the wrapped device's Info, without the capabilities that cannot be checked.
func (d *Device) Info() cudadrv.Info {
	info := d.inner.Info()
	info.Capabilities &^= unseen
	return info
}

// Close closes the view. A view that the wrapped driver lets close twice counts once.
func (d *Device) Close() error {
	err := d.inner.Close()
	if err == nil && !d.closed.Swap(true) {
		d.checker.closed()
	}
	return err
}

// Kernel queues a simulated kernel that takes so long and reads and writes these ranges. On a device without
// simulated kernels it is CUDA_ERROR_NOT_SUPPORTED.
func (d *Device) Kernel(s cudadrv.Stream, duration time.Duration, accesses ...Access) error {
	l, ok := d.inner.(launcher)
	if !ok {
		return &cudadrv.CallError{Func: "cuLaunchKernel", Result: cudadrv.NotSupported, Detail: "the device has no simulated kernels"}
	}
	return d.work("kernel", s, func() error {
		err := l.Launch(s, duration)
		d.claim(accesses)
		return err
	}, accesses...)
}

// Launch queues a Kernel without accesses.
func (d *Device) Launch(s cudadrv.Stream, duration time.Duration) error { return d.Kernel(s, duration) }

// Now returns the simulated device's time; zero if there is none.
func (d *Device) Now() time.Duration {
	if l, ok := d.inner.(launcher); ok {
		return l.Now()
	}
	return 0
}

// work submits work and records its accesses.
func (d *Device) work(what string, s cudadrv.Stream, submit func() error, accesses ...Access) error {
	from := d.driver.helpers.Load().Here(2)
	return d.checker.call(submit, func() { d.checker.core.Work(s, what, from, accesses) })
}

// transfer records a memset or copy, unless it has no bytes.
func (d *Device) transfer(what string, s cudadrv.Stream, submit func() error, accesses ...Access) error {
	from := d.driver.helpers.Load().Here(2)
	return d.checker.call(submit, func() {
		if slices.ContainsFunc(accesses, func(a Access) bool { return a.Bytes > 0 }) {
			d.checker.core.Work(s, what, from, accesses)
		}
	})
}

// MemsetD8Async records a write.
func (d *Device) MemsetD8Async(p cudadrv.Ptr, value byte, bytes int64, s cudadrv.Stream) error {
	return d.transfer("memset", s, func() error { return d.inner.MemsetD8Async(p, value, bytes, s) }, Access{Ptr: p, Bytes: bytes, Write: true})
}

// MemcpyDtoDAsync records a read and a write.
func (d *Device) MemcpyDtoDAsync(dst, src cudadrv.Ptr, bytes int64, s cudadrv.Stream) error {
	return d.transfer("copy", s, func() error { return d.inner.MemcpyDtoDAsync(dst, src, bytes, s) },
		Access{Ptr: src, Bytes: bytes}, Access{Ptr: dst, Bytes: bytes, Write: true})
}

// MemcpyHtoDAsync records a write of device memory. It may wait, and blocks the recording of other calls.
func (d *Device) MemcpyHtoDAsync(dst cudadrv.Ptr, src []byte, s cudadrv.Stream) error {
	return d.transfer("copy from the host", s, func() error { return d.Device.MemcpyHtoDAsync(dst, src, s) }, Access{Ptr: dst, Bytes: int64(len(src)), Write: true})
}

// MemcpyDtoHAsync records a read of device memory. It may wait, and blocks the recording of other calls.
func (d *Device) MemcpyDtoHAsync(dst []byte, src cudadrv.Ptr, s cudadrv.Stream) error {
	return d.transfer("copy to the host", s, func() error { return d.Device.MemcpyDtoHAsync(dst, src, s) }, Access{Ptr: src, Bytes: int64(len(dst))})
}

// StreamCreate begins a stream.
func (d *Device) StreamCreate() (s cudadrv.Stream, err error) {
	err = d.checker.call(func() (err error) { s, err = d.inner.StreamCreate(); return err },
		func() { d.checker.core.StreamCreated(s, false) })
	return s, err
}

// StreamCreateBlocking begins a stream that is ordered with the default stream.
func (d *Device) StreamCreateBlocking() (s cudadrv.Stream, err error) {
	err = d.checker.call(func() (err error) { s, err = d.Device.StreamCreateBlocking(); return err },
		func() { d.checker.core.StreamCreated(s, true) })
	return s, err
}

// StreamDestroy ends a stream's name.
func (d *Device) StreamDestroy(s cudadrv.Stream) error {
	return d.checker.call(func() error { return d.inner.StreamDestroy(s) }, func() { d.checker.core.StreamDestroyed(s) })
}

// StreamQuery orders this side's later work after the stream's work, if that has finished.
func (d *Device) StreamQuery(s cudadrv.Stream) (over bool, err error) {
	err = d.checker.call(func() (err error) { over, err = d.inner.StreamQuery(s); return err }, func() {
		if over {
			d.checker.core.Over(d.by, d.checker.core.StreamPoint(s))
		}
	})
	return over, err
}

// StreamSynchronize orders later work of both sides after the work that the stream has now: the allocator documents which calls
// synchronise streams, and a program may rely on that.
func (d *Device) StreamSynchronize(s cudadrv.Stream) error {
	return d.wait(Program, func() core.Clock { return d.checker.core.StreamPoint(s) }, func() error { return d.inner.StreamSynchronize(s) })
}

// CtxSynchronize orders later work of both sides after all work so far.
func (d *Device) CtxSynchronize() error {
	return d.wait(Program, d.all, d.inner.CtxSynchronize)
}

// all returns the point after all work.
func (d *Device) all() core.Clock { return d.checker.core.DevicePoint() }

// wait makes a call that waits for a point.
func (d *Device) wait(by Host, point func() core.Clock, call func() error) error {
	p := d.checker.point(point)
	if err := call(); err != nil {
		return err
	}
	d.checker.over(by, p)
	return nil
}

// StreamWaitEvent orders a stream's later work after the event's point.
func (d *Device) StreamWaitEvent(s cudadrv.Stream, e cudadrv.Event) error {
	return d.checker.call(func() error { return d.inner.StreamWaitEvent(s, e) }, func() { d.checker.core.StreamWaits(s, e) })
}

// EventDestroy forgets an event.
func (d *Device) EventDestroy(e cudadrv.Event) error {
	c := d.checker
	return c.call(func() error { return d.inner.EventDestroy(e) }, func() {
		c.core.EventDestroyed(e)
		maps.DeleteFunc(c.shared, func(_ cudadrv.EventDescriptor, of cudadrv.Event) bool { return of == e }) // few are shared
	})
}

// EventRecord makes the event stand for the stream's present end.
func (d *Device) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	return d.checker.call(func() error { return d.inner.EventRecord(e, s) }, func() { d.checker.core.EventRecorded(e, s) })
}

// EventQuery orders this side's later work after the event's point, if the event has passed.
func (d *Device) EventQuery(e cudadrv.Event) (passed bool, err error) {
	err = d.checker.call(func() (err error) { passed, err = d.inner.EventQuery(e); return err }, func() {
		if passed {
			d.checker.core.Over(d.by, d.checker.core.EventPoint(e))
		}
	})
	return passed, err
}

// EventSynchronize orders this side's later work after the event's point.
func (d *Device) EventSynchronize(e cudadrv.Event) error {
	return d.wait(d.by, func() core.Clock { return d.checker.core.EventPoint(e) }, func() error { return d.inner.EventSynchronize(e) })
}
