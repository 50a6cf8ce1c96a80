//go:build linux && (amd64 || arm64)

package dynamic

import (
	"time"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// EventCreateTimed calls cuEventCreate for an event with timing. A waiting thread sleeps rather than spins.
func (d *device) EventCreateTimed() (cudadrv.Event, error) {
	return d.createEvent(cudadrv.EventTiming, blockingSync)
}

// EventCreateShared calls cuEventCreate for an event that other processes can open.
func (d *device) EventCreateShared() (cudadrv.Event, error) {
	return d.createEvent(cudadrv.EventSharing, disableTiming|interprocess)
}

// EventElapsedTime calls cuEventElapsedTime, which returns milliseconds.
func (d *device) EventElapsedTime(start, end cudadrv.Event) (time.Duration, error) {
	f, err := d.enterHandle(call.EventElapsedTime, cudadrv.EventTiming, min(uint64(start), uint64(end)))
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(start), uintptr(end)
	if r := d.outside(inContext, call.EventElapsedTime, f, 3); r != cudadrv.Success {
		return 0, d.failed(f, call.EventElapsedTime, r, "")
	}
	milliseconds := *(*float32)(unsafe.Pointer(&f.out[0]))
	return time.Duration(float64(milliseconds) * float64(time.Millisecond)), nil
}
