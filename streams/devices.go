package streams

import (
	"errors"
	"fmt"
)

// OrderError reports that work between two devices was submitted, but the stream of the other device could
// not be made to wait for it. If Waited is set, the host has waited for the work instead. Otherwise the work
// may still be in progress, with no known end: memory of the other device that it touches must not be freed.
type OrderError struct {
	Waited bool  `json:"waited"`
	Err    error `json:"err"` // of the event, or of the wait for it; joined with the error of the host's wait
}

// Error names the fate of the work.
func (e *OrderError) Error() string {
	if e.Waited {
		return fmt.Sprintf("vram: the host waited for work between two devices, since no stream could: %s", reason(e.Err))
	}
	return fmt.Sprintf("vram: work between two devices could not be awaited, do not free the memory that it touches: %s", reason(e.Err))
}

// Unwrap returns the driver's error.
func (e *OrderError) Unwrap() error { return e.Err }

// Reach returns the stream that owns a live buffer of another device, if kernels of this device reach that
// device's memory (Peers.Reach). The stream represents the buffer in Between, after a Crossing on that stream
// has ordered it after the work of others on the buffer. For buffers of this device, and of graphs, it
// returns ErrForeign. It takes constant time.
func (x Submitter) Reach(b Buffer) (home Submitter, err error) {
	s, ok := b.home()
	switch {
	case !ok || !b.slot.Live(b.word):
		return Submitter{}, b.notLive("")
	case s.peers == x.s.peers || !x.s.peers.reaches(s.peers) || s.cuda.held.Load(): // nothing is submitted to the stream of a hold
		return Submitter{}, ErrForeign
	}
	return Submitter{s}, nil
}

// Between submits work to the stream that also touches memory of another device, which a stream of that
// device represents. On the device the work waits for all earlier work of the other stream, and later work of
// the other stream waits for it. So a buffer of the other stream that is freed afterwards is not reused,
// returned or unmapped before the work has finished. It records an event on each stream, for which the other
// one waits; the host does not wait. Both streams stay open until it returns. Errors, after which nothing was
// submitted: ErrClosed, *CaptureError while either stream is captured, the driver's, and the work's; and
// *OrderError, after which the work was submitted.
func (x Submitter) Between(other Submitter, work func() error) error {
	h, o := &x.s.cuda, &other.s.cuda
	if !h.begin() {
		return h.closed()
	}
	defer h.done()
	if !o.begin() {
		return o.closed()
	}
	defer o.done()
	if err := h.enter("cuStreamWaitEvent"); err != nil {
		return err
	}
	defer h.announcement.leave()
	if err := o.enter("cuStreamWaitEvent"); err != nil {
		return err
	}
	defer o.announcement.leave()
	if err := h.follows(o); err != nil {
		return err
	}
	if err := h.guard(work); err != nil {
		return err
	}
	return o.afterWork(h)
}

// afterWork is follows for submitted work: if the driver refuses, the host waits.
func (h *cudaStream) afterWork(other *cudaStream) error {
	err := h.follows(other)
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrCapturing) { // the work may be part of a graph, and a wait for it would end that capture
		return &OrderError{Err: err}
	}
	if failed := other.await(); failed != nil {
		return &OrderError{Err: fmt.Errorf("%w; the host's wait: %w", err, failed)}
	}
	return &OrderError{Waited: true, Err: err}
}
