package simulation

import (
	"context"

	"github.com/go-vram/vram/streams"
)

// waiting is what must be pending in a stream: buffers that were freed, and for which other streams have work.
type waiting map[*buffer]bool

// waitingIn is what must be pending now: each recorded use is known with its end in virtual time.
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

// lookAt asks a stream what is pending.
func (w *world) lookAt(s *stream) error {
	before := w.waitingIn(s)
	n, err := s.Stats(context.Background())
	if err == nil {
		w.stillWaits(s, before, n)
	}
	return err
}

// stillWaits holds what a stream said is pending against what must have been, from before it was asked on until now. Others may have
// freed more meanwhile, and a fence may cover later work as well: there may be more. What counts is the end that work has now: that of a
// graph is known once the graph was launched, which may be after the stream was asked.
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

// comesHome holds what is pending against what may be when the device has finished all work and callers have looked: nothing, save what was
// used on a stream that is being captured, or whose work nobody can wait for.
func (w *world) comesHome(s *stream, n streams.Stats) {
	if n.PendingBytes > 0 && !w.capturedAny() && !w.unfinished() {
		w.broken("pending", "stream %d has %d pending bytes though all work has ended", s.id(), n.PendingBytes)
	}
}
