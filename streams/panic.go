package streams

import (
	"fmt"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine"
)

// hand is what a turn holds between two books: taken out of one and not entered into the next. A panic
// there loses nothing, since Panicked puts it back.
type hand struct {
	request claim          // neither answered nor waiting
	slot    *magazine.Slot // counted as served and not delivered
	runs    []core.Run     // out of the heap and not part of an effect
}

// point is a place of a turn where tests interfere.
type point uint8

const (
	beforeSearch point = iota // a request is at hand
	beforeAnswer              // its block is taken and has a slot
	beforeReturn              // pages are out of the heap
	beforeErrand              // a lane has come
)

// String names the place to a host.
func (p point) String() string { return [...]string{"before search", "before answer", "before return"}[p] }

// reach tells a test that a turn has got there.
func (s *Stream) reach(p point) {
	if s.hook != nil {
		s.hook(p)
	}
}

// Panicked implements actors.Behavior: the stream goes on if its books balance.
func (s *Stream) Panicked(p actors.Panic) (finding error) {
	defer func() {
		if value := recover(); value != nil { // not even putting back works
			finding = fmt.Errorf("%w: %v", ErrQuarantined, value)
		}
	}()
	held := s.hand
	s.hand = hand{}
	if held.request != nil {
		held.request.Fail(&actors.PanicError{Actor: s.ref.Name(), Value: p.Value, Stack: p.Stack})
	}
	if held.slot != nil {
		s.core.Undo(held.slot)
	}
	for _, run := range held.runs {
		s.core.Grant(run)
	}
	if err := s.core.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrQuarantined, err)
	}
	return nil
}

// Stopped implements actors.Behavior. Memory stays where it is, and no magazine serves it any more.
func (s *Stream) Stopped(cause error) {
	defer s.core.Shut() // also if the books are too broken to be read
	s.failWaiting(cause)
	if s.owed != nil {
		s.owed.Fail(cause)
	}
	s.remember()
}
