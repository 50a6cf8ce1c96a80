package sim

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// event is the end time of the work of its last record; 0, which has always passed, before the first.
type event struct {
	passes   time.Duration
	recorded bool          // outside of a capture, ever
	timed    bool          // its record has a time
	shared   bool          // it has a name for others
	stamp    time.Duration // when the last record was reached, of one with timing
	place                  // in the graph that its last record is part of
}

func (g *gpu) eventNamed(c call.Call, e cudadrv.Event) (*event, error) {
	ev, ok := g.events[e]
	if !ok {
		return nil, fail(c, cudadrv.InvalidHandle, "no event %#x", e)
	}
	return ev, nil
}

// eventNamed returns the event e of any GPU, and its GPU: streams wait for events of other devices, too.
func (d *Driver) eventNamed(c call.Call, e cudadrv.Event) (*event, *gpu, error) {
	for _, g := range d.gpus {
		if ev, ok := g.events[e]; ok {
			return ev, g, nil
		}
	}
	return nil, nil, fail(c, cudadrv.InvalidHandle, "no event %#x on any device of this driver: devices of two drivers (sim.New) share nothing", e)
}

// EventCreate makes an event. Its id is never used again.
func (d *Device) EventCreate() (cudadrv.Event, error) { return d.newEvent(event{}, 0) }

// newEvent makes an event if the device has the needed capability.
func (d *Device) newEvent(e event, needed cudadrv.Capability) (cudadrv.Event, error) {
	const c = call.EventCreate
	return value(d, c, needed, func(g *gpu) (cudadrv.Event, error) {
		g.charge(c)
		return g.keep(&e), nil
	})
}

// keep assigns a name to an event.
func (g *gpu) keep(e *event) cudadrv.Event {
	id := cudadrv.Event(g.driver.id(firstEvent, &g.driver.events))
	g.events[id] = e
	return id
}

// EventDestroy destroys e. Streams that wait for it still do.
func (d *Device) EventDestroy(e cudadrv.Event) error {
	const c = call.EventDestroy
	return d.do(c, everyDevice, func(g *gpu) error {
		if _, err := g.eventNamed(c, e); err != nil {
			return err
		}
		delete(g.events, e)
		g.charge(c)
		return nil
	})
}

// EventRecord sets e to the end of the work that s has now.
func (d *Device) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	const c = call.EventRecord
	return d.do(c, everyDevice, func(g *gpu) error {
		ev, err := g.eventNamed(c, e)
		if err != nil {
			return err
		}
		st, err := g.streamNamed(c, s)
		if err != nil {
			return err
		}
		if err := g.implicit(c.String(), st); err != nil {
			return err
		}
		if st.capture != nil {
			return st.record(c, ev)
		}
		g.synchronise(st)
		ev.passes = st.drained
		ev.recorded, ev.place = true, place{}
		if ev.timed {
			ev.stamp = max(st.drained, g.time())
		}
		g.charge(c)
		return nil
	})
}

// Passes returns the time of e on the device's clock: 0 if it was never recorded. It is no driver call.
func (d *Device) Passes(e cudadrv.Event) (at time.Duration, ok bool) {
	d.gpu.mu.Lock()
	defer d.gpu.mu.Unlock()
	ev, ok := d.gpu.events[e]
	if !ok {
		return 0, false
	}
	return ev.passes, true
}

// EventQuery reports whether the work of e's last record has finished.
func (d *Device) EventQuery(e cudadrv.Event) (bool, error) {
	const c = call.EventQuery
	return value(d, c, everyDevice, func(g *gpu) (bool, error) {
		ev, err := g.eventNamed(c, e)
		if err != nil {
			return false, err
		}
		if err := ev.unasked(c); err != nil {
			return false, err
		}
		g.charge(c)
		return ev.passes <= g.time(), g.failed(c)
	})
}

// EventSynchronize waits for the work of e's last record.
func (d *Device) EventSynchronize(e cudadrv.Event) error {
	const c = call.EventSynchronize
	return d.do(c, everyDevice, func(g *gpu) error {
		ev, err := g.eventNamed(c, e)
		if err != nil {
			return err
		}
		if err := ev.unasked(c); err != nil {
			return err
		}
		g.charge(c)
		return g.wait(c, ev.passes)
	})
}
