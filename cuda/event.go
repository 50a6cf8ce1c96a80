package cuda

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/cudadrv"
)

// Event is a point in the order of a context's stream, with the device's time.
type Event struct {
	on     *submission
	handle cudadrv.Event
	timed  bool
	state  atomic.Int64 // calls that use the handle, and closedEvent
}

// closedEvent is in the state of an event that was closed. The last call that leaves destroys the handle.
const closedEvent = int64(1) << 62

// Record makes an event that is reached when the work submitted so far has finished. The caller closes it. Errors: ErrNotOpen,
// vram.ErrClosed, and the driver's; in a capture, also one that was begun past this package, a *vram.CaptureError: use
// Context.Wait there.
func (c *Context) Record() (*Event, error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	e := &Event{on: c.submission, timed: c.timed != nil && c.Info().Capabilities.Has(cudadrv.EventTiming)}
	if err := c.open(func() error { return e.record(c) }); err != nil {
		return nil, err
	}
	return e, nil
}

// record makes the event's handle and records it. After an error, or a panic of the driver, there is none.
func (e *Event) record(c *Context) (err error) {
	if e.timed {
		e.handle, err = c.timed.EventCreateTimed()
	} else {
		e.handle, err = c.device.EventCreate()
	}
	if err != nil {
		return err
	}
	recorded := false
	defer func() {
		if !recorded {
			_ = c.device.EventDestroy(e.handle) // the record's error is the one to know
		}
	}()
	err = c.record(e.handle)
	recorded = err == nil
	return err
}

// enter begins a call that uses the handle, which leave ends. Its error is ErrNotOpen.
func (e *Event) enter() error {
	if e == nil || e.on == nil {
		return ErrNotOpen
	}
	for {
		calls := e.state.Load()
		if calls >= closedEvent {
			return ErrNotOpen
		}
		if e.state.CompareAndSwap(calls, calls+1) {
			return nil
		}
	}
}

// leave ends a call.
func (e *Event) leave() {
	if e.state.Add(-1) == closedEvent {
		_ = e.on.work.Guarded(e.destroy) // Close has returned: no caller is left for the error
	}
}

// end closes the event, once. last reports whether no call uses the handle: then the caller destroys it.
func (e *Event) end() (last bool) {
	for {
		calls := e.state.Load()
		if calls >= closedEvent {
			return false
		}
		if e.state.CompareAndSwap(calls, calls+closedEvent) {
			return calls == 0
		}
	}
}

func (e *Event) destroy() error { return e.on.device.EventDestroy(e.handle) }

// String includes the driver's handle.
func (e *Event) String() string {
	switch {
	case e == nil || e.on == nil:
		return "no event"
	case e.state.Load() >= closedEvent:
		return fmt.Sprintf("event %#x, closed", e.handle)
	}
	return fmt.Sprintf("event %#x", e.handle)
}

// uncaptured returns the error of a call on the event: a *CaptureError if an unannounced capture, which began and ended during
// the record, has the event. CUDA has no other invalid value for such a call.
func (e *Event) uncaptured(err error) error {
	if errors.Is(err, cudadrv.CapturedEvent) || errors.Is(err, cudadrv.InvalidValue) {
		return e.on.work.Forbidden("cuEventRecord")
	}
	return err
}

// Done reports whether the device has reached the event. It does not wait. Errors: ErrNotOpen, the driver's, and a
// *vram.CaptureError if a capture that was begun past this package has the event.
func (e *Event) Done() (bool, error) {
	if err := e.enter(); err != nil {
		return false, err
	}
	defer e.leave()
	passed, err := e.on.device.EventQuery(e.handle)
	return passed, e.on.failure(e.uncaptured(err))
}

// Synchronize waits until the device has reached the event, or ctx ends: then a goroutine continues to wait, and closes the
// event. It returns ctx's error and the errors of Done.
func (e *Event) Synchronize(ctx context.Context) error {
	if err := e.enter(); err != nil {
		return err
	}
	if ctx == nil {
		e.leave()
		return ErrNilContext
	}
	if ctx.Done() == nil {
		defer e.leave()
		return e.on.failure(e.uncaptured(e.on.device.EventSynchronize(e.handle)))
	}
	done := make(chan error, 1)
	go func() {
		err := errEndedWait
		defer func() {
			e.leave()
			done <- err
		}()
		err = e.uncaptured(e.on.work.Guarded(func() error { return e.on.device.EventSynchronize(e.handle) }))
	}()
	select {
	case err := <-done:
		return e.on.failure(err)
	case <-ctx.Done():
		if e.end() { // the wait has ended, too
			_ = e.on.work.Guarded(e.destroy)
		}
		return ctx.Err()
	}
}

// errEndedWait is the error of a wait whose goroutine the driver has ended.
var errEndedWait = errors.New("cuda: the driver ended the goroutine that waited for an event")

// Since returns the device's time from another event to this one, to half a microsecond. Errors: cudadrv.NotReady if the device
// has not reached both, cudadrv.NotSupported, ErrNotOpen.
func (e *Event) Since(start *Event) (time.Duration, error) {
	if err := e.enter(); err != nil {
		return 0, err
	}
	defer e.leave()
	if err := start.enter(); err != nil {
		return 0, err
	}
	defer start.leave()
	if !e.timed || !start.timed {
		return 0, unsupported("cuEventElapsedTime")
	}
	d, err := e.on.timed.EventElapsedTime(start.handle, e.handle)
	return d, e.on.failure(err)
}

// WaitEvent makes later work of the context wait, on the device, for an event of any context of the device. Launches order
// their work on memory of other streams themselves: WaitEvent is for work that is submitted by hand. Errors: ErrForeign,
// vram.ErrClosed, the errors of Event.Done, and in a capture a *vram.CaptureError.
func (c *Context) WaitEvent(e *Event) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if e == nil || e.on == nil {
		return notOpen("event")
	}
	if err := e.enter(); err != nil {
		return err
	}
	defer e.leave()
	if !c.work.SameDevice(e.on.work) {
		return ErrForeign
	}
	return c.outside("cuStreamWaitEvent", func() error { // the event is outside of any graph
		return e.uncaptured(c.device.StreamWaitEvent(c.handle, e.handle))
	})
}

// Close destroys the event, once the calls of other goroutines on it have ended: it does not wait for them. Idempotent.
func (e *Event) Close() error {
	if e == nil || e.on == nil {
		return ErrNotOpen
	}
	if !e.end() {
		return nil
	}
	return e.on.failure(e.destroy())
}

// Synchronize waits until the device has finished the work submitted so far, or ctx ends, which does not stop the work. Errors:
// ErrNotOpen, ErrNilContext, a *vram.CaptureError, ctx's, vram.ErrClosed, a *vram.StrandedError where the work waits for
// another process that died, and the driver's, which may come from the work.
func (c *Context) Synchronize(ctx context.Context) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if ctx == nil {
		return ErrNilContext
	}
	if c.capture.Load() != nil {
		return c.work.Forbidden("cuStreamSynchronize")
	}
	if ctx.Done() == nil {
		return c.synchronize()
	}
	count := c.work.LaunchCount()
	e, err := c.Record()
	if err != nil {
		return err
	}
	if err = e.Synchronize(ctx); err == nil {
		c.work.Finished(count)
	}
	if closed := e.Close(); err == nil { // on a timeout the wait continues and destroys the event
		err = closed
	}
	return err
}
