package simulation

import (
	"context"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// checkStream holds a stream's books against each other, in a turn of its own.
func (w *world) checkStream(s *stream) {
	if err := s.Check(context.Background()); err != nil && !w.excused(s) {
		w.broken("books", "stream %d: %w", s.id(), err)
	}
}

// excused reports whether a stream may have ended, or a panic may have taken the answer.
func (w *world) excused(s *stream) bool { return s.closing || s.era.closing || w.panicked() }

// checkPool holds the pool's books against each other.
func (w *world) checkPool() (n pool.Snapshot) {
	e := w.era
	n, err := e.pool.Snapshot(context.Background())
	if err != nil {
		if !e.closing {
			w.broken("books", "pool: %w", err)
		}
		return n
	}
	w.must(n.CheckError, "books")
	if n.FreeBytes+n.LentBytes > n.ReservedBytes {
		w.broken("books", "%d bytes are free, %d lent of %d reserved", n.FreeBytes, n.LentBytes, n.ReservedBytes)
	}
	return n
}

// settled checks the invariants of an idle allocator with a working driver.
func (w *world) settled() {
	e := w.era
	if len(w.pending) > 0 {
		w.broken("hang", "%d futures are waited for though nothing runs", len(w.pending))
	}
	w.do("uses", func() {
		for _, s := range e.streams {
			_ = w.lookAt(s) // one that has ended says so
		}
	})
	w.do("ticks", func() { // a close whose turn panicked is made good by a tick
		for _, s := range e.streams {
			s.Tick()
		}
		w.let()
		e.pool.Tick()
	})
	w.settledTenants()
	for _, s := range e.streams {
		s.stood = s.standing > 0
	}
	var held int64
	w.do("checks", func() {
		for _, s := range e.streams {
			held += w.settledStream(s)
		}
		if w.fault == nil {
			w.settledPool(held)
		}
	})
}

// settledPool checks the pool's books against the device and the memory that streams hold.
func (w *world) settledPool(held int64) {
	n := w.checkPool()
	used := w.usedBytes()
	switch {
	case n.Waiting > 0:
		w.broken("hang", "%d requests wait in the pool though nothing runs", n.Waiting)
	case n.ReservedBytes != used:
		w.broken("books", "%d bytes are reserved, the device says %d", n.ReservedBytes, used)
	case n.LentBytes != held:
		w.broken("books", "%d bytes are lent, the streams hold %d", n.LentBytes, held)
	case n.LostBytes == 0 && (n.BusyBytes != 0 || n.FreeBytes+n.LentBytes != n.ReservedBytes):
		w.broken("books", "%d bytes are free, %d lent, %d busy of %d reserved", n.FreeBytes, n.LentBytes, n.BusyBytes, n.ReservedBytes)
	}
	w.lossy = w.lossy || n.LostBytes > 0
	w.must(w.watch.Audit(), "audit")
}

// settledStream checks a stream's statistics against its callers' records and returns the bytes that it holds.
func (w *world) settledStream(s *stream) int64 {
	gone := s.Gone()
	held := w.capturedAny() && s.Waits() // by a use whose fence nobody may take now
	if s.closed && !s.unsynced && s.live == 0 && !gone && !w.unfinished() && !held {
		w.broken("gone", "stream %d is closed without live buffers and still listed", s.id())
	}
	if gone && s.live > 0 {
		w.broken("gone", "stream %d is gone with %d live buffers", s.id(), s.live)
	}
	n := s.LastStats()
	if !gone {
		w.must(s.Check(context.Background()), "books")
		before := w.waitingIn(s)
		var err error
		if n, err = s.Stats(context.Background()); err != nil {
			w.broken("books", "stream %d: %w", s.id(), err)
		}
		w.stillWaits(s, before, n)
		w.nothingPending(s, n)
		w.settledLive(s)
	}
	if n.LiveCount != uint64(s.live) || n.AllocCount-n.FreeCount != n.LiveCount || n.FreeCount-s.frees != n.AllocCount-s.allocs {
		w.broken("books", "stream %d counts %d allocations, %d frees, %d live; callers %d, %d, %d",
			s.id(), n.AllocCount, n.FreeCount, n.LiveCount, s.allocs, s.frees, s.live)
	}
	if n.HeldBytes != n.LiveBytes+n.PendingBytes+n.CachedBytes || n.Waiting != 0 || n.RangeHits+n.PoolHits > n.AllocCount {
		w.broken("books", "stream %d: %+v", s.id(), n)
	}
	w.report.MagazineHits += n.MagazineHits - s.reported.MagazineHits
	w.report.RangeHits += n.RangeHits - s.reported.RangeHits
	w.report.PoolHits += n.PoolHits - s.reported.PoolHits
	s.reported = n
	return n.HeldBytes
}

// settledLive checks a stream's list of live buffers against the callers' records.
func (w *world) settledLive(s *stream) {
	live := map[cudadrv.Ptr]streams.LiveBuffer{}
	for _, b := range s.LiveBuffers() {
		live[b.Ptr] = b
	}
	for _, b := range w.held {
		if b.stream == s && live[b.span.begin].Bytes < int64(b.span.end-b.span.begin) {
			w.broken("books", "stream %d lists %d live bytes at %#x, a caller has %v", s.id(), live[b.span.begin].Bytes, b.span.begin, b.span)
		}
	}
	if len(live) != s.live {
		w.broken("books", "stream %d lists %d live buffers, callers have %d", s.id(), len(live), s.live)
	}
}
