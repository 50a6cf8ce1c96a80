package recorder

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/monitor/snapshot"
)

// driver is the replay's driver, with devices that the recorder watches.
type driver struct {
	cudadrv.Driver
	recorder *Recorder
}

// Open opens a device that is watched.
func (d *driver) Open(ordinal int) (cudadrv.Device, error) {
	inner, err := d.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	d.recorder.mu.Lock()
	d.recorder.device = inner
	d.recorder.mu.Unlock()
	watched := device{Device: inner, recorder: d.recorder}
	if m, ok := inner.(cudadrv.Modelled); ok {
		return &modelled{watched, m}, nil
	}
	return &watched, nil
}

// device reports memory to the recorder: memory to be removed before the call, and new memory after it. So the history never
// maps memory that another call has already.
type device struct {
	cudadrv.Device
	recorder *Recorder
}

// modelled passes the modelled time through.
type modelled struct {
	device
	cudadrv.Modelled
}

// Unwrap returns the wrapped device, for optional calls.
func (d *device) Unwrap() cudadrv.Device { return d.Device }

// MemCreate makes physical memory.
func (d *device) MemCreate(bytes int64) (cudadrv.Handle, error) {
	h, err := d.Device.MemCreate(bytes)
	if err == nil {
		d.recorder.made(h, bytes)
	}
	return h, err
}

// MemRelease gives up physical memory.
func (d *device) MemRelease(h cudadrv.Handle) error {
	err := d.Device.MemRelease(h)
	if err == nil {
		d.recorder.released(h)
	}
	return err
}

// MemMap maps physical memory.
func (d *device) MemMap(p cudadrv.Ptr, bytes int64, h cudadrv.Handle) error {
	err := d.Device.MemMap(p, bytes, h)
	if err == nil {
		d.recorder.came(snapshot.Map, p, bytes)
	}
	return err
}

// MemUnmap unmaps handles.
func (d *device) MemUnmap(p cudadrv.Ptr, bytes int64) error {
	d.recorder.went(snapshot.Unmap, p, bytes)
	err := d.Device.MemUnmap(p, bytes)
	if err != nil {
		d.recorder.came(snapshot.Map, p, bytes)
	}
	return err
}

// MemAlloc takes plain memory.
func (d *device) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	p, err := d.Device.MemAlloc(bytes)
	if err == nil {
		d.recorder.took(p, bytes)
	}
	return p, err
}

// MemFree returns plain memory.
func (d *device) MemFree(p cudadrv.Ptr) error {
	bytes := d.recorder.returned(p)
	err := d.Device.MemFree(p)
	if err != nil {
		d.recorder.took(p, bytes)
	}
	return err
}

func (r *Recorder) made(h cudadrv.Handle, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handles[h] = bytes
	r.reserved += bytes
}

func (r *Recorder) released(h cudadrv.Handle) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reserved -= r.handles[h]
	delete(r.handles, h)
}

// took and returned are plain memory: made and mapped in one.
func (r *Recorder) took(p cudadrv.Ptr, bytes int64) {
	r.came(snapshot.Reserve, p, bytes)
	r.mu.Lock()
	r.reserved += bytes
	r.mu.Unlock()
}

func (r *Recorder) returned(p cudadrv.Ptr) (bytes int64) {
	r.mu.Lock()
	bytes = r.mapped[uint64(p)]
	r.reserved -= bytes
	r.mu.Unlock()
	r.went(snapshot.Release, p, bytes)
	return bytes
}

func (r *Recorder) came(a snapshot.Action, p cudadrv.Ptr, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mapped[uint64(p)] = bytes
	r.note(a, uint64(p), bytes, 0, nil)
}

// went takes the ranges from the map that begin in the one that goes: memory was mapped handle by handle.
func (r *Recorder) went(a snapshot.Action, p cudadrv.Ptr, bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for from := uint64(p); from < uint64(p)+uint64(bytes); { //nolint:gosec // a length
		part := r.mapped[from]
		if part <= 0 {
			break
		}
		delete(r.mapped, from)
		from += uint64(part)
	}
	r.note(a, uint64(p), bytes, 0, nil)
}
