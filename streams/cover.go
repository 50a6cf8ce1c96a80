package streams

import (
	"context"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/pool/core"
)

// For whom a turn does something. On an adopted stream a fence is recorded for callers only.
const (
	forCaller    = true
	inBackground = false
)

// covered reports whether only pages that a fence of its callers covers may leave the stream. An adopted handle may be
// destroyed, or captured into a graph, by a program that does not know of this turn; while one of its requests waits it
// does.
func (s *Stream) covered(caller bool) bool {
	return s.adopted && !caller && len(s.waiting)+len(s.parked) == 0 && !s.synced.Load()
}

// left is the last fence that a caller's turn left for the background to give pages back with.
type left struct {
	fence poolcore.Fence
	mark  fence.Mark
	sent  bool // the mark is the pool's
}

// leave orders a fence over all that has come home.
func (s *Stream) leave() {
	s.core.Seal()
	s.leaving = true
	s.lastFence++
	s.calls.Add(1)
	s.effects().leave = s.lastFence
}

// leaveFence records the fence that was ordered, and tells the stream.
func (s *Stream) leaveFence(f poolcore.Fence) {
	mark, err := s.mark()
	s.calls.Add(-1)
	s.ref.Call(&marked{stream: s, fence: f, mark: mark, failed: err != nil})
}

// marked brings a fence that a caller's turn left.
type marked struct {
	actors.Link
	stream *Stream
	fence  poolcore.Fence
	mark   fence.Mark
	failed bool
}

// Fail gives the mark up: the stream has ended.
func (m *marked) Fail(error) {
	s, mark := m.stream, m.mark
	actors.Go(s.host, "", func() { s.discard(mark) })
}

// marked notes the fence; the one before it is given up if nothing was returned with it.
func (s *Stream) marked(m *marked) {
	s.leaving = false
	if m.failed {
		s.core.Unsealed()
		return
	}
	s.core.Covered()
	s.core.Note()
	s.dropLeft()
	s.left = left{fence: m.fence, mark: m.mark}
}

// dropLeft gives the last fence up.
func (s *Stream) dropLeft() {
	if !s.left.sent && !s.left.mark.Zero() {
		s.effects().discards = append(s.effects().discards, s.left.mark)
	}
	s.left = left{}
}

// discard gives a mark up. An event that the driver keeps harms nobody's memory.
func (s *Stream) discard(m fence.Mark) {
	_ = s.guard(func() error { return s.fences.Release(m) })
}

// Return gives all that the stream keeps free back to the pool, for other streams and the driver, behind a fence that is
// recorded now. An idle stream does so by itself, save that on an adopted one only its callers record: there what
// was freed since the last request of theirs stays until the next one, or until Return. It waits for the turn at hand,
// and not for the device. Lanes give back what they keep at their next calls. Errors: ErrClosed, ErrQuarantined, and the
// end of ctx, which ends only the waiting.
func (s *Stream) Return(ctx context.Context) error {
	_, err := s.order(ctx, &order{verb: orderReturn})
	if err == nil {
		s.awaitCalls() // the record is the caller's: it is made before the caller goes on
	}
	return err
}
