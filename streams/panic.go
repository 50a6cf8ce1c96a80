package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/magazine/lane"
)

// hand is what a turn holds between two books: taken out of one and not entered into the next. A panic
// there loses nothing, since Panicked puts it back.
type hand struct {
	request claim          // neither answered nor waiting
	slot    *magazine.Slot // counted as served and not delivered
	runs    []core.Run     // out of the heap and not part of an effect
	lane    *lane.Lane     // to be closed: nobody comes for it again
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
func (p point) String() string {
	return [...]string{"before search", "before answer", "before return", "before errand"}[p]
}

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
	if s.wanted { // the turn may have been about to say so
		s.core.Note()
		s.Wake()
	}
	if held.request != nil {
		if p := held.request.patient(); p != nil && p.token != 0 { // answered now
			s.effects().withdrawals = append(s.effects().withdrawals, p.token)
			s.unpark(p.token)
		}
		held.request.Fail(&actors.PanicError{Actor: s.ref.Name(), Value: p.Value, Stack: p.Stack})
	}
	if held.slot != nil {
		s.core.Undo(held.slot)
	}
	for _, run := range held.runs {
		s.core.Grant(run)
	}
	if held.lane != nil {
		s.core.CloseLane(held.lane)
	}
	if err := s.core.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrQuarantined, err)
	}
	if s.resuming {
		s.resuming = false
		s.ref.Tell(&outlasted{passed: true})
	}
	if a := s.owed; a != nil { // the turn may have been about to answer it
		s.owed = nil
		s.ref.Tell(a)
	}
	return nil
}

// Stopped implements actors.Behavior. Memory stays where it is, and no magazine serves it any more.
func (s *Stream) Stopped(cause error) {
	s.failure.Store(&cause)
	s.peers.leave(s)
	defer s.core.Shut() // also if the books are too broken to be read
	s.failWaiting(cause)
	if s.out != nil && !errors.Is(cause, ErrClosed) { // a turn that panicked when it was left leaves no effects to perform
		s.out.reply(cause)
	}
	if s.owed != nil {
		s.owed.Fail(cause)
	}
	s.dropLeft()
	if s.synced.Load() && !errors.Is(cause, ErrQuarantined) {
		s.clear()
	}
	s.remember()
}

// clear returns what came to a closed stream after it was told to end, and stayed because a turn panicked.
func (s *Stream) clear() {
	left := s.core.Return()
	if len(left) == 0 {
		return
	}
	r := poolcore.Return{Client: s.id}
	r.Runs = append(r.Runs, left...) // left is the core's
	actors.Go(s.host, "", func() { s.pool.Return(r, fence.Mark{}) })
}
