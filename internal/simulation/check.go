package simulation

import (
	"github.com/go-vram/vram/cudadrv"
	streamcore "github.com/go-vram/vram/streams/core"
)

// check holds all books against each other, at any moment.
func (w *world) check() {
	w.must(w.pool.core.Check(), "pool")
	w.must(w.watch.Audit(), "device")
	page := w.shape.pageBytes
	held := w.underway * page
	for _, s := range w.streams {
		if s.over {
			continue
		}
		w.must(s.core.Check(), s.name)
		held += s.core.HeldBytes()
	}
	lent := w.pool.core.LentBytes()
	if lent < held || (lent > held && len(w.pool.waiting) == 0) { // an unfinished warm-up holds pages, too
		w.broken("%d bytes are lent, streams hold %d with those under way", lent, held)
	}
	if w.pool.busy {
		return
	}
	c := w.pool.core
	if c.ReservedBytes() != w.usedBytes() {
		w.broken("%d bytes are reserved, the device says %d", c.ReservedBytes(), w.usedBytes())
	}
	states := c.FreeBytes() + c.LentBytes() + c.BusyBytes()
	if states > c.ReservedBytes() || (states < c.ReservedBytes() && c.LostBytes() == 0) {
		w.broken("%d bytes are free, lent or busy, %d reserved", states, c.ReservedBytes())
	}
}

// settled is what must hold when nothing is under way.
func (w *world) settled() {
	w.check()
	if n := len(w.requests); n > 0 {
		w.broken("%d requests wait though nothing is under way", n)
	}
	for _, e := range w.pool.waiting {
		w.broken("a %s waits though nothing is under way", e.name)
	}
	if n := w.pool.core.Waiting(); n > 0 {
		w.broken("%d requests wait in the pool though nothing is under way", n)
	}
	if w.pool.core.LostBytes() == 0 && w.pool.core.BusyBytes() != 0 {
		w.broken("%d bytes are busy without a job", w.pool.core.BusyBytes())
	}
	for _, s := range w.streams {
		s.counted(s.core.Snapshot())
		if s.synced && len(s.held) == 0 && !s.over {
			w.broken("stream %d is closed and holds %d bytes, none live", s.id, s.core.HeldBytes())
		}
	}
}

// counted holds a stream's statistics against what callers saw.
func (s *stream) counted(n streamcore.Snapshot) {
	c := s.counts
	if n.AllocCount != c.allocs || n.FreeCount != c.frees || n.LiveCount != uint64(len(s.held)) {
		s.w.broken("stream %d counts %d allocations, %d frees, %d live; callers %d, %d, %d",
			s.id, n.AllocCount, n.FreeCount, n.LiveCount, c.allocs, c.frees, len(s.held))
	}
	if n.RangeCount != c.ranges || n.RefillCount != c.refill || c.magazine+c.ranges+c.refill != c.allocs {
		s.w.broken("stream %d counts %d and %d by level, callers %+v", s.id, n.RangeCount, n.RefillCount, c)
	}
	live := map[cudadrv.Ptr]int64{}
	var liveBytes int64
	s.core.Live(func(p cudadrv.Ptr, bytes int64, _ string) { live[p], liveBytes = bytes, liveBytes+bytes })
	for _, b := range s.held {
		if bytes := live[b.span.begin]; bytes < int64(b.span.end-b.span.begin) {
			s.w.broken("stream %d lists %d live bytes at %#x, a caller has %v", s.id, bytes, b.span.begin, b.span)
		}
	}
	if len(live) != len(s.held) || (!s.over && n.LiveBytes < liveBytes) {
		s.w.broken("stream %d lists %d live buffers of %d bytes, the snapshot says %d", s.id, len(live), liveBytes, n.LiveBytes)
	}
	if held := s.core.HeldBytes(); held == 0 && s.core.LiveBytes() != 0 {
		s.w.broken("stream %d holds nothing and reports %d live bytes", s.id, s.core.LiveBytes())
	}
	s.w.report.MagazineHits += c.magazine - s.reported.magazine
	s.w.report.RangeHits += c.ranges - s.reported.ranges
	s.w.report.PoolHits += c.refill - s.reported.refill
	s.reported = c
}
