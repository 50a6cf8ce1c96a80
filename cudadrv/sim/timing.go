package sim

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.TimedEvents = (*Device)(nil)

// eventResolution is the step of the times that events tell.
const eventResolution = 500 * time.Nanosecond

// EventCreateTimed makes an event whose record has a virtual time.
func (d *Device) EventCreateTimed() (cudadrv.Event, error) {
	return d.newEvent(event{timed: true}, cudadrv.EventTiming)
}

// EventElapsedTime returns the virtual time between two records, below 0 if the end was first.
func (d *Device) EventElapsedTime(start, end cudadrv.Event) (time.Duration, error) {
	const c = call.EventElapsedTime
	return value(d, c, cudadrv.EventTiming, func(g *gpu) (time.Duration, error) {
		var stamps [2]time.Duration
		for i, e := range [...]cudadrv.Event{start, end} {
			ev, err := g.eventNamed(c, e)
			if err != nil {
				return 0, err
			}
			if err := ev.unasked(c); err != nil {
				return 0, err
			}
			switch {
			case !ev.timed:
				return 0, fail(c, cudadrv.InvalidHandle, "event %#x is one without timing", uint64(e))
			case !ev.recorded:
				return 0, fail(c, cudadrv.InvalidHandle, "event %#x was never recorded", uint64(e))
			case ev.stamp > g.time():
				return 0, fail(c, cudadrv.NotReady, "the work before event %#x has not finished", uint64(e))
			}
			stamps[i] = ev.stamp
		}
		g.charge(c)
		return (stamps[1] - stamps[0]).Round(eventResolution), g.failed(c)
	})
}
