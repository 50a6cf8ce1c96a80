package replay

import (
	"fmt"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// virtualTime is what a lag needs of the simulated device.
type virtualTime interface {
	// AdvanceTo moves the clock forward to t since its start; not at all where it is there already.
	AdvanceTo(t time.Duration)
	Now() time.Duration
	// Occupy queues work on the stream that lasts d.
	Occupy(s cudadrv.Stream, d time.Duration) error
}

// order follows the work on the simulated device with books of its own: when each stream will be
// empty, what each event waits for, and which freed memory work may still touch. With a lag and the
// checker it catches memory that another stream got, or that was unmapped, too early. It is guarded
// by the checker's mutex.
type order struct {
	clock   virtualTime
	drained map[cudadrv.Stream]time.Duration // when the stream's work ends
	passes  map[cudadrv.Event]time.Duration  // when the event's last record is reached
	uses    []use
}

// use is freed memory that work of its stream touches until some time.
type use struct {
	begin, end cudadrv.Ptr
	stream     cudadrv.Stream
	until      time.Duration
}

func newOrder(clock virtualTime) *order {
	return &order{
		clock:   clock,
		drained: map[cudadrv.Stream]time.Duration{},
		passes:  map[cudadrv.Event]time.Duration{},
	}
}

// freed notes that work of the stream touches the range for lag more, and what it had before.
func (o *order) freed(begin, end cudadrv.Ptr, s cudadrv.Stream, lag time.Duration) {
	o.drained[s] = max(o.drained[s], o.clock.Now()+lag)
	o.uses = append(o.uses, use{begin: begin, end: end, stream: s, until: o.drained[s]})
}

// early says what work of another stream than s may still be done in the range when work on s gets
// there; empty where none.
func (o *order) early(begin, end cudadrv.Ptr, s cudadrv.Stream) string {
	now := o.clock.Now()
	o.forget(now)
	for _, u := range o.uses {
		if u.stream != s && u.begin < end && begin < u.end && u.until > max(now, o.drained[s]) {
			return fmt.Sprintf("[%#x,%#x) went to stream %#x at %v, in use on stream %#x until %v",
				begin, end, s, now, u.stream, u.until)
		}
	}
	return ""
}

// touched says which work may still be done in a range that is about to be unmapped.
func (o *order) touched(begin, end cudadrv.Ptr) string {
	now := o.clock.Now()
	o.forget(now)
	for _, u := range o.uses {
		if u.begin < end && begin < u.end {
			return fmt.Sprintf("[%#x,%#x) is unmapped at %v, in use on stream %#x until %v", begin, end, now, u.stream, u.until)
		}
	}
	return ""
}

// forget drops the uses that have ended.
func (o *order) forget(now time.Duration) {
	kept := o.uses[:0]
	for _, u := range o.uses {
		if u.until > now {
			kept = append(kept, u)
		}
	}
	o.uses = kept
}

// watchedDriver is a simulated driver with a checker that sees the calls which put work in order and those
// that unmap.
type watchedDriver struct {
	cudadrv.Driver
	checker *checker
}

// Open gives the device that the checker watches.
func (d *watchedDriver) Open(ordinal int) (cudadrv.Device, error) {
	device, err := d.Driver.Open(ordinal)
	if err != nil {
		return nil, err
	}
	return &watchedDevice{Device: device, checker: d.checker}, nil
}

type watchedDevice struct {
	cudadrv.Device
	checker *checker
}

// ModelledTime is the simulator's.
func (d *watchedDevice) ModelledTime() time.Duration {
	if m, ok := d.Device.(cudadrv.Modelled); ok {
		return m.ModelledTime()
	}
	return 0
}

// EventRecord notes what the event waits for.
func (d *watchedDevice) EventRecord(e cudadrv.Event, s cudadrv.Stream) error {
	err := d.Device.EventRecord(e, s)
	if o := d.checker.order; err == nil && o != nil {
		d.checker.mu.Lock()
		defer d.checker.mu.Unlock()
		o.passes[e] = o.drained[s]
	}
	return err
}

// StreamWaitEvent notes that the stream goes on only behind the event.
func (d *watchedDevice) StreamWaitEvent(s cudadrv.Stream, e cudadrv.Event) error {
	err := d.Device.StreamWaitEvent(s, e)
	if o := d.checker.order; err == nil && o != nil {
		d.checker.mu.Lock()
		defer d.checker.mu.Unlock()
		o.drained[s] = max(o.drained[s], o.passes[e])
	}
	return err
}

// MemUnmap must touch nothing that is live or that work may still touch.
func (d *watchedDevice) MemUnmap(p cudadrv.Ptr, bytes int64) error {
	d.checker.unmapping(p, bytes)
	return d.Device.MemUnmap(p, bytes)
}
