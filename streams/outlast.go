package streams

import (
	"context"
	"errors"
	"slices"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/pool"
)

// A claim that would be refused for want of memory is delayed while any stream has memory that waits for uses on others.
// Every fence that keeps such memory is watched by a goroutine of its own, so that one that never passes keeps nobody from
// memory behind another; whichever passes first has all delayed claims served once more. A stream that is excluded from
// waits is not waited for.

// delay keeps a claim that would be refused for want of memory until a fence has passed, if any stream has memory that
// waits for one.
func (s *Stream) delay(c claim, err error) bool {
	if s.draining || !errors.Is(err, pool.ErrOutOfMemory) || !s.peers.pending() {
		return false
	}
	s.delayed = append(s.delayed, delay{s.hold(c), err})
	if !s.outlasting {
		s.outlasting = true
		s.effects().outlast = true
	}
	return true
}

// delay is a claim that waits for a fence.
type delay struct {
	token uint64
	err   error // its answer, if that does not help
}

// ExcludeFromWaits says whether the stream's kernels may take without end, or end only when something else happens: those of a
// persistent kernel, or of a collective that waits for another GPU. No request waits for the work of such a stream, neither on the
// host nor on the device: one that only memory behind that work could serve is refused. It does not wait, and holds for
// requests that wait already. Close and Transfer wait for the stream all the same.
func (s *Stream) ExcludeFromWaits(exclude bool) {
	if !s.opened() {
		return
	}
	s.line.Excluded.Store(exclude)
	s.pool.Exclude(s.id, exclude)
}

// outlast has all fences watched that keep memory of any stream. Where there is none the claims that wait are refused.
func (s *Stream) outlast() {
	watched := false
	for _, p := range s.peers.list() {
		watched = p.watchFences() || watched
	}
	if !watched {
		s.ref.Call(&outlasted{})
	}
}

// watchFences has the fences watched that keep memory of this stream. It reports whether there are any.
func (s *Stream) watchFences() (watched bool) {
	if !s.waits.Load() {
		return false
	}
	o := &order{verb: orderFences}
	if _, err := s.order(context.Background(), o); err != nil {
		return false
	}
	for _, f := range o.fences {
		if f.line.Excluded.Load() {
			continue
		}
		watched = true
		if s.watchBegins(f.line) {
			actors.Go(s.host, "", func() { s.outwait(f) })
		}
	}
	return watched
}

// outwait waits for a fence that keeps memory of the stream, lets that come home, and has the claims of all streams tried that
// wait for any fence. A wait that failed is told once no other is left.
func (s *Stream) outwait(f fencing) {
	passed := f.outlast(s.host)
	s.watchEnds(f.line)
	s.ref.Call(&looked{})
	all := s.peers.list()
	if !passed && slices.ContainsFunc(all, func(p *Stream) bool { return p.watched.Load() != nil && len(*p.watched.Load()) > 0 }) {
		return
	}
	for _, p := range all {
		p.ref.Call(&outlasted{passed: passed})
	}
}

// watchBegins notes that a line is watched for the stream. False says that it is already.
func (s *Stream) watchBegins(l *fence.Timeline) bool {
	for {
		old := s.watched.Load()
		var next []*fence.Timeline
		if old != nil {
			next = slices.Clone(*old)
		}
		if slices.Contains(next, l) {
			return false
		}
		next = append(next, l)
		if s.watched.CompareAndSwap(old, &next) {
			return true
		}
	}
}

func (s *Stream) watchEnds(l *fence.Timeline) {
	for {
		old := s.watched.Load()
		next := slices.DeleteFunc(slices.Clone(*old), func(o *fence.Timeline) bool { return o == l })
		if s.watched.CompareAndSwap(old, &next) {
			return
		}
	}
}

// outlast waits until a fence has passed that covers the number, if there is one or it can be taken.
func (f fencing) outlast(h actors.Host) bool {
	for range mostWaits {
		if err := guard(f.line.Panics, func() error { return f.outlastOldest(h) }); err != nil || f.line.Passed(f.number) {
			break
		}
	}
	return f.line.Passed(f.number)
}

// mostWaits is how many fences are waited for one after the other: not fewer than there can be before the one that counts.
const mostWaits = 2 * fence.CellCount

func (f fencing) outlastOldest(h actors.Host) error {
	if _, err := f.line.Take(f.number); err != nil {
		return err
	}
	others, err := f.line.Wait()
	if others != nil {
		actors.Wait(h, others)
	}
	return err
}

// outlasted ends a wait for fences.
type outlasted struct {
	actors.Link
	passed bool
}

// Fail has nobody to tell: the waiting requests were failed when the actor ended.
func (*outlasted) Fail(error) {}

// resume serves the claims that were delayed, or refuses them.
func (s *Stream) resume(m *outlasted) {
	if !s.outlasting {
		return
	}
	s.resuming = true // until all have been served, also if a turn panics
	for len(s.delayed) > 0 {
		d := s.delayed[0]
		s.delayed = s.delayed[1:]
		c := s.take(d.token)
		switch {
		case c == nil: // failed by Close
		case m.passed:
			c.serve(s)
		default:
			c.refuse(s, d.err, true)
		}
	}
	s.delayed, s.resuming, s.outlasting, s.vain = nil, false, false, !m.passed
}
