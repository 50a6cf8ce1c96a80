package streams

import (
	"context"
	"errors"
)

// Hold is a stream with memory whose addresses captured graphs have. Until End no page leaves it, and memory
// of other streams that it was announced to use (Buffer.RecordStream) stays pending when it is freed.
type Hold struct{ s *Stream }

// NewHold makes a hold on its own stream, which End closes. Errors: as for opening a stream, ErrNotOpen.
func (x Submitter) NewHold() (Hold, error) {
	s, err := x.NewStream()
	if err != nil {
		return Hold{}, err
	}
	s.cuda.held.Store(true)
	s.cuda.whole = newOrder(s)    // no buffer of the stream exists yet
	s.cuda.whole.settle(x.s.host) // nothing is launched on it
	if err := s.inTurn(context.Background(), func() { s.turn.state.core.Keep(true) }); err != nil {
		return Hold{}, errors.Join(err, s.Close())
	}
	return Hold{s}, nil
}

// Stream returns the hold's stream: memory that is allocated on it stays in the hold.
func (h Hold) Stream() *Stream { return h.s }

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
	return h.s.Close()
}
