package simulation

import (
	"context"

	"github.com/go-vram/vram/streams"
)

// waiting has the buffers that must be pending in a stream: freed, with work of other streams on them.
type waiting map[*buffer]bool

// waitingIn returns the buffers that must be pending now: the end of each recorded use is known in virtual time.
func (w *world) waitingIn(s *stream) waiting {
	all := waiting{}
	now := w.watch.Now()
	for _, u := range w.uses.pending {
		if u.of != nil && u.of.gone && u.of.stream == s && u.stream != s && u.until > now {
			all[u.of] = true
		}
	}
	return all
}

// lookAt asks a stream for its pending buffers.
func (w *world) lookAt(s *stream) error {
	before := w.waitingIn(s)
	n, err := s.Stats(context.Background())
	if err == nil {
		w.stillWaits(s, before, n)
	}
	return err
}

// stillWaits compares a stream's pending count with the buffers that must have been pending from before the question until
// now. The count may be greater: others may have freed more, and a fence may cover later work. The end of work counts as it is
// known now: a graph's end is known after its launch, which may follow the question.
func (w *world) stillWaits(s *stream, before waiting, n streams.Stats) {
	if s.closing || s.era.closing {
		return
	}
	after := w.waitingIn(s)
	var bytes int64
	for b := range before {
		if _, waits := after[b]; waits {
			bytes += b.asked
			w.report.Awaited++
		}
	}
	if n.PendingBytes < bytes {
		w.broken("pending", "stream %d has %d pending bytes, other streams still work on %d that were freed", s.id(), n.PendingBytes, bytes)
	}
}

// nothingPending checks that nothing is pending after the device has finished all work and callers have asked, except buffers used
// on a captured stream, or on one whose work nobody can wait for.
func (w *world) nothingPending(s *stream, n streams.Stats) {
	if n.PendingBytes > 0 && !w.capturedAny() && !w.unfinished() {
		w.broken("pending", "stream %d has %d pending bytes though all work has ended", s.id(), n.PendingBytes)
	}
}
