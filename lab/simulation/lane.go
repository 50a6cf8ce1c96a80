package simulation

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/streams"
)

// lane is one of the allocator's, and whether a caller is inside it: its calls may not overlap.
type lane struct {
	*streams.Lane
	stream *stream
	busy   bool
}

// laneLimit bounds the lanes of a world. More would not meet.
const laneLimit = 4

func (w *world) laneOpened(s *stream, act action) func() {
	if len(w.lanes) >= laneLimit {
		return nil
	}
	return func() { w.openLane(s, int64(act.b%5)*int64(act.c)%(8*w.shape.pageBytes)) }
}

func (w *world) laneUsed(_ *stream, act action) func() {
	l := w.idleLane(act)
	if l == nil {
		return nil
	}
	return func() {
		l.busy = true
		for i := range 1 + act.c%10 {
			w.useLane(l, mixed(uint64(act.b), uint64(i)))
		}
		l.busy = false
	}
}

func (w *world) laneClosed(_ *stream, act action) func() {
	l := w.idleLane(act)
	if l == nil {
		return nil
	}
	return func() { w.closeLane(l) }
}

// idleLane is a lane that nobody is in.
func (w *world) idleLane(act action) *lane {
	n := uint32(len(w.lanes))
	if n == 0 || w.lanes[act.a%n].busy {
		return nil
	}
	return w.lanes[act.a%n]
}

func (w *world) openLane(s *stream, budgetBytes int64) {
	l, err := s.Lane(budgetBytes)
	if err != nil {
		w.refused(s, nil, 0, err)
		return
	}
	w.note("stream %d: a lane of %d bytes", s.id(), budgetBytes)
	if s.era == w.era {
		w.lanes = append(w.lanes, &lane{Lane: l, stream: s})
		w.report.Lanes++
	}
}

// useLane is one call.
func (w *world) useLane(l *lane, draw uint64) {
	n := len(w.held)
	switch {
	case draw%10 < 5 || n == 0:
		bytes := w.shape.size(uint32(draw >> 8 % 4)) // few sizes: they come again
		b, err := l.Alloc(bytes)
		w.answered(l.stream, nil, b, bytes, 0, err)
	case draw%10 < 9:
		b := w.held[n-1-int(draw>>8%uint64(min(n, 6)))] // one of the last, which may be of another stream
		w.freeBy(b, uint32(draw>>32), func() error { return l.Free(b.Buffer) })
	case len(w.stale) > 0:
		b := w.stale[draw>>8%uint64(len(w.stale))]
		if err := l.Free(b); !errors.Is(err, streams.ErrBadFree) {
			w.broken("free", "a second free by a lane says %v", err)
		}
	}
}

func (w *world) closeLane(l *lane) {
	l.busy = true
	w.lanes = slices.DeleteFunc(w.lanes, func(o *lane) bool { return o == l })
	if err := l.Close(); err != nil {
		w.kept(err)
	}
	w.note("stream %d: a lane is closed", l.stream.id())
	if _, err := l.Alloc(1); !errors.Is(err, streams.ErrClosed) {
		w.broken("answer", "a lane that was closed says %v", err)
	}
}

// closeLanes closes all lanes.
func (w *world) closeLanes() {
	for len(w.lanes) > 0 {
		w.closeLane(w.lanes[0])
	}
}

// callLanes calls every lane once, so that it gives back what was asked of it.
func (w *world) callLanes() {
	for _, l := range w.lanes {
		_ = l.Free(streams.Buffer{})
	}
}
