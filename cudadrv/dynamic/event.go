//go:build linux && (amd64 || arm64)

package dynamic

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// enterEvent enters a call on an event, which must not be 0.
func (d *device) enterEvent(c call.Call, e cudadrv.Event) (*frame, error) {
	f, err := d.enter(c)
	if err == nil && e == 0 {
		d.gate.leave(f)
		return nil, refuse(c, cudadrv.InvalidHandle, "no event")
	}
	return f, err
}

// EventCreate calls cuEventCreate for an event without timing. A waiting thread sleeps rather than spins.
func (d *device) EventCreate() (cudadrv.Event, error) {
	return d.createEvent(required, disableTiming|blockingSync)
}

func (d *device) createEvent(feature cudadrv.Capability, flags uintptr) (cudadrv.Event, error) {
	f, err := d.enterFeature(call.EventCreate, feature)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = f.pointer(0), flags
	if r := d.outside(inContext, call.EventCreate, f, 2); r != cudadrv.Success {
		return 0, d.failed(f, call.EventCreate, r, "")
	}
	return cudadrv.Event(f.out[0]), nil
}

// EventDestroy calls cuEventDestroy.
func (d *device) EventDestroy(e cudadrv.Event) error {
	f, err := d.enterEvent(call.EventDestroy, e)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0] = uintptr(e)
	return d.done(f, call.EventDestroy, d.outside(anywhere, call.EventDestroy, f, 1))
}

// EventRecord calls cuEventRecord.
func (d *device) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	f, err := d.enterEvent(call.EventRecord, e)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = uintptr(e), uintptr(s)
	return d.done(f, call.EventRecord, d.callOn(s, call.EventRecord, f, 2))
}

// EventQuery calls cuEventQuery.
func (d *device) EventQuery(e cudadrv.Event) (bool, error) {
	f, err := d.enterEvent(call.EventQuery, e)
	if err != nil {
		return false, err
	}
	defer d.gate.leave(f)
	f.args[0] = uintptr(e)
	return d.passed(f, call.EventQuery, d.outside(anywhere, call.EventQuery, f, 1))
}

// EventSynchronize calls cuEventSynchronize. It blocks the goroutine and its thread.
func (d *device) EventSynchronize(e cudadrv.Event) error {
	f, err := d.enterEvent(call.EventSynchronize, e)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0] = uintptr(e)
	return d.done(f, call.EventSynchronize, d.outside(anywhere, call.EventSynchronize, f, 1))
}
