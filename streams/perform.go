package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/pool/core"
)

// effects are what a turn of a stream left.
type effects struct {
	stream   *Stream
	returns  []giving
	leave    poolcore.Fence // to be recorded for later; 0: none
	discards []fence.Mark
	refills  []poolcore.Refill
	fills    []fill
	end      bool
}

// giving is a Return on its way.
type giving struct {
	poolcore.Return
	mark    fence.Mark // of covered runs, the first time that it is used
	covered bool       // the fence was recorded before
}

func (e *effects) refill(r poolcore.Refill) { e.refills = append(e.refills, r) }

// Perform implements actors.Effects.
func (e *effects) Perform() {
	s := e.stream
	for i := range e.returns {
		r := &e.returns[i]
		if mark := s.record(r); len(r.Runs) > 0 || r.Answer || r.Kept > 0 {
			s.pool.Return(r.Return, mark)
		}
	}
	if e.leave != 0 {
		s.leaveFence(e.leave)
	}
	for _, m := range e.discards {
		s.discard(m)
	}
	for _, r := range e.refills {
		s.pool.Refill(s, r)
	}
	for _, f := range e.fills {
		f.perform(s)
	}
	if e.end {
		s.ref.Stop(ErrClosed)
	}
	clear(e.returns)
	clear(e.refills)
	clear(e.fills)
	*e = effects{stream: s, returns: e.returns[:0], discards: e.discards[:0], refills: e.refills[:0], fills: e.fills[:0]}
	s.spare.Store(e)
}

// record takes the fence of a return. If the driver refuses, the stream's work is waited for instead. If it
// refuses that too, or the stream is being captured, nobody else may have the pages: they go back into the stream, where no fence is needed,
// and will be returned when they are asked for again.
func (s *Stream) record(r *giving) (mark fence.Mark) {
	if r.Fence == 0 || r.covered {
		return r.mark
	}
	defer s.calls.Add(-1) // last: Close destroys the handle then
	mark, err := s.mark()
	if err == nil {
		return mark
	}
	var captured *CaptureError
	if !errors.As(err, &captured) && guard(func() error { return s.device.StreamSynchronize(s.handle) }) == nil {
		r.Fence = 0
		return fence.Mark{}
	}
	kept := &granted{stream: s, runs: r.Runs, kept: true}
	r.Kept, r.Runs, r.Fence = len(r.Runs), nil, 0
	s.ref.Call(kept)
	return fence.Mark{}
}

// mark records the present end of the stream.
func (s *Stream) mark() (mark fence.Mark, err error) {
	if err = s.uncaptured("cuEventRecord"); err != nil {
		return mark, err
	}
	err = guard(func() (err error) {
		mark, err = s.fences.Record(s.handle)
		return err
	})
	return mark, err
}

// guard makes a panic of the driver an error: what else the turn left is still to be performed.
func guard(call func() error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("streams: the driver panicked: %v", value)
		}
	}()
	return call()
}
