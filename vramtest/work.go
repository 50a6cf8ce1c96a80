package vramtest

import (
	"errors"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
)

// Touch is memory that a kernel touches.
type Touch struct {
	accesses []hazard.Access
	stale    []vram.Buffer
}

// Reads returns the whole of buffers that a kernel reads.
func Reads(buffers ...vram.Buffer) Touch { return touch(buffers, false) }

// Writes returns the whole of buffers that a kernel writes.
func Writes(buffers ...vram.Buffer) Touch { return touch(buffers, true) }

// ReadsRange returns a range of addresses that a kernel reads.
func ReadsRange(p vram.Ptr, bytes int64) Touch {
	return Touch{accesses: []hazard.Access{{Ptr: p, Bytes: bytes}}}
}

// WritesRange returns a range of addresses that a kernel writes.
func WritesRange(p vram.Ptr, bytes int64) Touch {
	return Touch{accesses: []hazard.Access{{Ptr: p, Bytes: bytes, Write: true}}}
}

// touch tells stale buffers apart: their addresses may be others' by now.
func touch(buffers []vram.Buffer, write bool) (t Touch) {
	for _, b := range buffers {
		if !b.Live() {
			t.stale = append(t.stale, b)
			continue
		}
		t.accesses = append(t.accesses, hazard.Access{Ptr: b.Ptr(), Bytes: b.Bytes(), Write: write})
	}
	return t
}

// Launch queues a kernel on a stream of the device that takes so long and touches that memory. It fails the test if
// the stream or the duration cannot be.
func (d *Device) Launch(s *vram.Stream, duration time.Duration, touches ...Touch) {
	if !d.opened() {
		return
	}
	d.t.Helper()
	d.gpu.Checker().NumberStream(s.Handle(), s.ID())
	var accesses []hazard.Access
	for _, t := range touches {
		accesses = append(accesses, t.accesses...)
		for _, b := range t.stale {
			d.stale(s.Handle(), b)
		}
	}
	d.must(d.gpu.Kernel(s.Handle(), duration, accesses...))
}

// stale reports a buffer that was freed before the kernel was launched. The refusal of a free knows its places.
func (d *Device) stale(s cudadrv.Stream, b vram.Buffer) {
	was := hazard.Buffer{Ptr: b.Ptr(), Bytes: b.Bytes()}
	if refused, ok := errors.AsType[*vram.FreeError](b.Free()); ok {
		was.Allocated, was.Freed = refused.Allocated, refused.Freed
	}
	d.gpu.Checker().Stale(was, hazard.Use{What: "kernel", Stream: s, Place: d.helpers.Here(0)})
}

// Event is a point in the order of a stream.
type Event struct{ event cudadrv.Event }

// Record marks the end of the stream's work so far. It fails the test if the stream cannot record an event.
func (d *Device) Record(s *vram.Stream) Event {
	if !d.opened() {
		return Event{}
	}
	d.t.Helper()
	e, err := d.gpu.EventCreate()
	d.must(err)
	d.must(d.gpu.EventRecord(e, s.Handle()))
	return Event{e}
}

// Wait has the stream's later work wait, on the device, for an event.
func (d *Device) Wait(s *vram.Stream, e Event) {
	if !d.opened() {
		return
	}
	d.t.Helper()
	d.must(d.gpu.StreamWaitEvent(s.Handle(), e.event))
}

// Passed reports whether the device has got to an event. If it has, later work of the test is ordered after it.
func (d *Device) Passed(e Event) bool {
	if !d.opened() {
		return false
	}
	d.t.Helper()
	passed, err := d.gpu.EventQuery(e.event)
	d.must(err)
	return passed
}

// Synchronize waits for all work of a stream; virtual time moves. Later work of the test is ordered after it.
func (d *Device) Synchronize(s *vram.Stream) {
	if !d.opened() {
		return
	}
	d.t.Helper()
	d.must(d.gpu.StreamSynchronize(s.Handle()))
}
