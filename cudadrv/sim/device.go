package sim

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var (
	_ cudadrv.Driver   = (*Driver)(nil)
	_ cudadrv.Device   = (*Device)(nil)
	_ cudadrv.Modelled = (*Device)(nil)
)

// Device is a view of a simulated GPU: cudadrv.Device's calls, and methods for tests and programs to observe and control it. It
// is safe for concurrent use.
type Device struct {
	gpu    *gpu
	opened bool // made by Open; written once
	closed bool // under gpu.mu
}

// enter counts a call and says whether it can be made. It runs under the gpu's mutex.
func (d *Device) enter(c call.Call) error {
	d.gpu.counts[c].Add(1)
	if d.closed || d.gpu.opens == 0 {
		return fail(c, cudadrv.InvalidContext, "the device is not open")
	}
	if d.gpu.backing != nil && c != call.PrimaryCtxRelease {
		d.gpu.time()
		if err := d.gpu.failed(c); err != nil {
			return err
		}
	}
	return nil
}

// everyDevice is needed by calls that every device has.
const everyDevice cudadrv.Capability = 0

// enterWith enters a call of an optional capability, or returns the error of a device that lacks it.
func (d *Device) enterWith(c call.Call, needed cudadrv.Capability) error {
	if err := d.enter(c); err != nil {
		return err
	}
	if !d.gpu.info.Capabilities.Has(needed) {
		return fail(c, cudadrv.NotSupported, "the device does not have the capability: %v", needed)
	}
	return nil
}

// value makes a call that needs a capability, under the mutex.
func value[T any](d *Device, c call.Call, needed cudadrv.Capability, f func(*gpu) (T, error)) (T, error) {
	d.gpu.mu.Lock()
	defer d.gpu.mu.Unlock()
	if err := d.enterWith(c, needed); err != nil {
		var none T
		return none, err
	}
	return f(d.gpu)
}

// do makes a call without a result.
func (d *Device) do(c call.Call, needed cudadrv.Capability, f func(*gpu) error) error {
	d.gpu.mu.Lock()
	defer d.gpu.mu.Unlock()
	if err := d.enterWith(c, needed); err != nil {
		return err
	}
	return f(d.gpu)
}

// Info describes the simulated GPU.
func (d *Device) Info() cudadrv.Info { return d.gpu.info }

// Close closes this view; further calls on it fail with CUDA_ERROR_INVALID_CONTEXT. Closing the last opened view frees all
// memory, streams and events of the GPU.
func (d *Device) Close() error {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enter(call.PrimaryCtxRelease); err != nil {
		return err
	}
	if !d.opened {
		return fail(call.PrimaryCtxRelease, cudadrv.InvalidContext, "this view was not opened")
	}
	d.closed = true
	g.opens--
	if g.opens > 0 {
		return nil
	}
	err := g.loseBytes()
	g.forget()
	return err
}

// ModelledTime returns the sum of the modelled cost of all successful calls on the GPU, through any view. It takes no lock.
func (d *Device) ModelledTime() time.Duration { return time.Duration(d.gpu.modelled.Load()) }

// Counts returns the calls on the GPU so far, failed ones included, by CUDA's name. Calls that were never
// made are absent.
func (d *Device) Counts() map[string]uint64 {
	counts := make(map[string]uint64)
	for c := range call.Count {
		if n := d.gpu.counts[c].Load(); n > 0 {
			counts[c.String()] = n
		}
	}
	return counts
}

// SetCapacity changes the usable physical memory, as another process that allocates or frees memory would. Below the bytes in
// use it only makes further allocations fail; a negative one is 0.
func (d *Device) SetCapacity(bytes int64) {
	d.gpu.mu.Lock()
	defer d.gpu.mu.Unlock()
	d.gpu.capacityBytes = max(bytes, 0)
}
