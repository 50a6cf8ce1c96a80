package simulation

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// machine is the simulated driver below the injected failures: every call that arrives here is performed.
type machine struct {
	*sim.Driver
	w *world
}

// Open opens a device that is watched.
func (m machine) Open(ordinal int) (cudadrv.Device, error) {
	d, err := m.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	m.w.era.inner = &watched{Device: d, w: m.w, alive: map[cudadrv.Stream]bool{}, owner: map[cudadrv.Stream]*stream{}, plain: map[cudadrv.Ptr]int64{}, recordedOn: map[cudadrv.Event]*stream{}}
	return m.w.era.inner, nil
}

// watched checks the allocator's driver calls against the memory that callers and the device still use.
type watched struct {
	cudadrv.Device
	w     *world
	alive map[cudadrv.Stream]bool    // handles
	owner map[cudadrv.Stream]*stream // of the handles, the last
	plain map[cudadrv.Ptr]int64      // segments, with their bytes

	recordedOn map[cudadrv.Event]*stream
}

// MemUnmap may not touch live buffers or memory that work still uses.
func (d *watched) MemUnmap(p cudadrv.Ptr, bytes int64) error {
	w := d.w
	s := span{p, p + cudadrv.Ptr(bytes)}
	d.goes(s)
	if u, ok := w.uses.hit(s, nil, w.watch); ok {
		w.broken("unmapped", "%v is unmapped while stream %d works on %v", s, u.stream.id(), u.span)
	}
	w.report.DriverCalls++
	return d.Device.MemUnmap(p, bytes)
}

// MemFree may not touch live buffers. It waits for all work itself.
func (d *watched) MemFree(p cudadrv.Ptr) error {
	d.goes(span{p, p + cudadrv.Ptr(d.plain[p])})
	d.w.report.DriverCalls++
	err := d.Device.MemFree(p)
	if err == nil {
		delete(d.plain, p)
	}
	return err
}

// goes says that memory is about to go.
func (d *watched) goes(s span) {
	if b := d.w.ranges.touched(s); b != nil && !d.w.era.unmapping {
		d.w.broken("unmapped", "%v is unmapped under the live buffer %v of stream %d", s, b.span, b.stream.id())
	}
}

// MemAlloc may not exceed the limit.
func (d *watched) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	p, err := d.Device.MemAlloc(bytes)
	if err == nil {
		d.plain[p] = bytes
		d.grown()
	}
	return p, err
}

// MemCreate may not exceed the limit.
func (d *watched) MemCreate(bytes int64) (cudadrv.Handle, error) {
	h, err := d.Device.MemCreate(bytes)
	if err == nil {
		d.grown()
	}
	return h, err
}

// grown looks at the limit after memory was taken.
func (d *watched) grown() {
	d.w.report.DriverCalls++
	if used := d.w.usedBytes(); used > d.w.era.mostBytes {
		d.w.broken("limit", "%d bytes are in use, at most %d may be", used, d.w.era.mostBytes)
	}
}

// MemMap counts.
func (d *watched) MemMap(p cudadrv.Ptr, bytes int64, h cudadrv.Handle) error {
	d.w.report.DriverCalls++
	return d.Device.MemMap(p, bytes, h)
}

// StreamCreate makes a handle.
func (d *watched) StreamCreate() (cudadrv.Stream, error) {
	s, err := d.Device.StreamCreate()
	if err == nil {
		d.alive[s] = true
	}
	return s, err
}

// StreamDestroy ends a handle.
func (d *watched) StreamDestroy(s cudadrv.Stream) error {
	d.use("destroy", s)
	delete(d.alive, s)
	return d.Device.StreamDestroy(s)
}

// StreamSynchronize needs a handle that is there.
func (d *watched) StreamSynchronize(s cudadrv.Stream) error {
	d.use("synchronise", s)
	return d.Device.StreamSynchronize(s)
}

// StreamQuery needs a handle that is there.
func (d *watched) StreamQuery(s cudadrv.Stream) (bool, error) {
	d.use("query", s)
	return d.Device.StreamQuery(s)
}

// EventRecord needs a handle that is there: on one that was destroyed a record is undefined.
func (d *watched) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	d.use("record", s)
	if t := d.w.current; t != nil {
		t.recorded = s
	}
	d.recordedOn[e] = d.owner[s]
	d.w.captureBriefly(d.owner[s])
	return d.Device.EventRecord(e, s)
}

// EventSynchronize may not wait for a stream that is excluded.
func (d *watched) EventSynchronize(e cudadrv.Event) error {
	d.waitsFor(e)
	return d.Device.EventSynchronize(e)
}

// StreamWaitEvent needs a handle that is there, and an event that was recorded.
func (d *watched) StreamWaitEvent(s cudadrv.Stream, e cudadrv.Event) error {
	d.use("wait", s)
	d.waitsFor(e)
	if err := d.Device.StreamWaitEvent(s, e); err != nil {
		return err
	}
	until, ok := d.w.watch.Passes(e)
	if !ok {
		d.w.broken("handle", "a wait for an event that was destroyed")
	}
	if of := d.owner[s]; of != nil && d.w.mutation != mutateWait {
		of.waitsUntil = max(of.waitsUntil, until)
	}
	d.w.report.Waits++
	return nil
}

// MemsetD8Async needs a handle that is there, and is work on the memory.
func (d *watched) MemsetD8Async(p cudadrv.Ptr, value byte, bytes int64, s cudadrv.Stream) error {
	d.use("memset", s)
	if err := d.Device.MemsetD8Async(p, value, bytes, s); err != nil {
		return err
	}
	d.w.uses.add(use{span: span{p, p + cudadrv.Ptr(bytes)}, stream: d.owner[s], until: d.w.drainedAt(s)})
	return nil
}

// EventQuery asks the device, unless the run plants wrong fences.
func (d *watched) EventQuery(e cudadrv.Event) (bool, error) {
	passed, err := d.Device.EventQuery(e)
	if errors.Is(err, cudadrv.InvalidValue) {
		if d.w.report.FoundInGraph++; d.w.mutation == mutateGraph {
			err = nil
		}
	}
	return passed || d.w.mutation == mutateFences, err
}

func (d *watched) use(what string, s cudadrv.Stream) {
	d.onHandle(what, s)
	if !d.alive[s] {
		d.w.broken("handle", "%s on a stream handle that was destroyed", what)
	}
}

// usedBytes returns the device's own count.
func (w *world) usedBytes() int64 {
	free, total, err := w.watch.MemGetInfo()
	if err != nil {
		return 0 // only once it is closed
	}
	return total - free
}
