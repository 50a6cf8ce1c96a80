package streams

import (
	"context"
	"errors"

	"github.com/go-vram/vram/internal/fence"
)

// Hold is a stream with memory whose addresses captured graphs have. Until End no page leaves it, and memory
// of other streams that it was announced to use (Buffer.RecordStream) stays pending when it is freed.
type Hold struct{ s *Stream }

// NewHold makes a hold on its own stream, which End closes. Errors: as for opening a stream, ErrNotOpen.
func (x Submitter) NewHold() (Hold, error) {
	if x.s.sibling == nil {
		return Hold{}, ErrNotOpen
	}
	s, err := x.s.sibling()
	if err != nil {
		return Hold{}, err
	}
	s.cuda.held.Store(true)
	if err := s.inTurn(context.Background(), func() { s.turn.state.core.Keep(true) }); err != nil {
		return Hold{}, errors.Join(err, s.Close())
	}
	return Hold{s}, nil
}

// Stream returns the hold's stream: memory that is allocated on it stays in the hold.
func (h Hold) Stream() *Stream { return h.s }

// Precede makes later work of a stream wait, on the device, for the work of the previous streams of the
// hold's memory. It makes two driver calls. Errors: ErrClosed and the driver's.
func (h Hold) Precede(s *Stream) error {
	if !h.s.cuda.begin() {
		return h.s.cuda.closed()
	}
	defer h.s.cuda.done()
	var m fence.Mark
	err := h.s.cuda.guard(func() (err error) {
		m, err = h.s.cuda.fences.Record(h.s.cuda.stream)
		return err
	})
	if err != nil {
		return err
	}
	defer h.s.cuda.discard(m)
	return s.cuda.precede(m)
}

// End closes the hold's stream and waits for its work. The memory becomes free once all work submitted so far
// to the given streams has finished. Live buffers of the hold stay valid until they are freed. Idempotent.
func (h Hold) End(behind ...*Stream) error {
	if h.s.cuda.closing.Load() {
		return h.s.Close()
	}
	var failed error
	for _, s := range behind {
		failed = errors.Join(failed, h.s.WaitStream(s))
	}
	if failed != nil { // the memory stays: work may still use it
		return failed
	}
	h.s.cuda.held.Store(false)
	return h.s.Close()
}
