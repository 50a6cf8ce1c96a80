//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"gorgonia.org/cu"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// EventCreate is cuEventCreate of an event without timing.
func (d *device) EventCreate() (cudadrv.Event, error) {
	var e cu.Event
	err := d.current(call.EventCreate, func() (err error) {
		e, err = cu.MakeEvent(cu.DisableTiming | cu.BlockingSyncEvent)
		return err
	})
	if err != nil {
		return 0, failed(call.EventCreate, err, "")
	}
	return FromEvent(e), nil
}

// EventDestroy is cuEventDestroy.
func (d *device) EventDestroy(e cudadrv.Event) error {
	err := d.anywhere(call.EventDestroy, func() error {
		if e == 0 {
			return noEvent(call.EventDestroy)
		}
		doomed := ToEvent(e)
		return cu.DestroyEvent(&doomed)
	})
	return failed(call.EventDestroy, err, "")
}

// EventRecord is cuEventRecord.
func (d *device) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	err := d.on(s, call.EventRecord, func() error {
		if e == 0 {
			return noEvent(call.EventRecord)
		}
		return ToEvent(e).Record(ToStream(s))
	})
	return failed(call.EventRecord, err, "")
}

// EventQuery is cuEventQuery.
func (d *device) EventQuery(e cudadrv.Event) (bool, error) {
	return passed(call.EventQuery, d.anywhere(call.EventQuery, func() error {
		if e == 0 {
			return noEvent(call.EventQuery)
		}
		return ToEvent(e).Query()
	}))
}

// EventSynchronize is cuEventSynchronize. It blocks the goroutine and its thread.
func (d *device) EventSynchronize(e cudadrv.Event) error {
	err := d.anywhere(call.EventSynchronize, func() error {
		if e == 0 {
			return noEvent(call.EventSynchronize)
		}
		return ToEvent(e).Synchronize()
	})
	return failed(call.EventSynchronize, err, "")
}

func noEvent(c call.Call) error { return refuse(c, cudadrv.InvalidHandle, "no event") }
