package simulation

import (
	"context"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams"
)

// shareOut gives another process a part of the device in every other case, and returns the bytes left for this one. The
// process has to give back memory beyond that first.
func (w *world) shareOut(draw uint64) (bytes int64) {
	limit := w.era.limit.Load() / w.shape.pageBytes
	if draw%2 > 0 || limit <= 0 {
		return limit * w.shape.pageBytes
	}
	bytes = (1 + int64(mixed(draw, 15)%uint64(limit))) * w.shape.pageBytes
	w.note("the driver has %d bytes", bytes)
	w.faults.SetCapacity(bytes)
	w.report.Occupied++
	return bytes
}

// whole frees all buffers and asks for all that there is on one stream: nothing may be stranded with the others.
func (w *world) whole(act action) {
	if !w.emptied(uint64(act.a), uint64(act.b)) {
		return
	}
	e := w.era
	for _, s := range e.streams {
		if s.unsynced && s.reported.HeldBytes > 0 {
			return // nobody could say that its work has finished
		}
	}
	if w.unfinished() && w.waits() {
		return
	}
	s := w.anyStream(act.a)
	if w.fault != nil || s.closing || w.lossy {
		return
	}
	bytes := w.shareOut(uint64(act.c))
	defer w.faults.SetCapacity(fault.Unlimited)
	if bytes <= sizeclass.MaxBytes { // its span has more pages, which on a device have 2 MiB and hold any span
		return
	}
	w.do("return", w.returnAll)
	w.do("ask for all", func() {
		b, err := s.Alloc(bytes)
		if err != nil {
			n, _ := e.pool.Snapshot(context.Background())
			w.broken("memory", "stream %d is refused all %d bytes though no buffer is live: %w; pool %+v", s.id(), bytes, err, n)
			return
		}
		w.enter(s, b, bytes, 0)
	})
	w.report.Whole++
}

// emptied frees all that lives, and lets everything come to its end before and after, in orders that the numbers decide. It
// reports false where no stream is open.
func (w *world) emptied(before, after uint64) bool {
	w.endCaptures()
	w.settle(before)
	e := w.era
	if w.fault != nil || e.closing || len(e.streams) == 0 {
		return false
	}
	w.endCaptures() // of streams that were being adopted
	w.do("free all", func() {
		for _, s := range e.streams {
			w.freeAll(s)
		}
	})
	w.settle(after) // memory in transit is unowned
	w.finishExcluded()
	return true
}

// fits requests memory that must be available: all but the pages that may hold live buffers or their spans. With handles of
// one page every other page is available.
func (w *world) fits(draw uint64) {
	e := w.era
	if !w.shape.plain || w.shape.segments || w.lossy || w.capturedAny() || e.closing || len(e.streams) == 0 || w.fault != nil {
		return
	}
	pinned := map[cudadrv.Ptr]bool{}
	for _, s := range e.streams {
		if s.unsynced && s.reported.HeldBytes > 0 {
			return // nobody could say that its work has finished
		}
	}
	if w.unfinished() && w.waits() {
		return
	}
	w.do("look", func() {
		for _, s := range e.streams {
			for _, b := range s.LiveBuffers() {
				w.pin(pinned, b)
			}
		}
	})
	w.finishExcluded()
	s := w.anyStream(uint32(draw))
	pages := w.shareOut(mixed(draw, 14))/w.shape.pageBytes - int64(len(pinned))
	defer w.faults.SetCapacity(fault.Unlimited)
	if w.fault != nil || s.closing || pages <= 0 {
		return
	}
	bytes := (1 + int64(draw>>8%uint64(pages))) * w.shape.pageBytes
	if bytes <= sizeclass.MaxBytes { // its span has more pages
		return
	}
	w.do("return", w.returnAll)
	w.do("request all available memory", func() {
		b, err := s.Alloc(bytes)
		if err != nil {
			n, _ := e.pool.Snapshot(context.Background())
			w.broken("memory", "stream %d is refused %d bytes though %d pages are unowned: %w; pool %+v", s.id(), bytes, pages, err, n)
			return
		}
		w.free(w.enter(s, b, bytes, 0), 0)
	})
	w.report.Fitted++
}

// local requests a stream's longest free range from it.
func (w *world) local(draw uint64) {
	e := w.era
	if e.closing || len(e.streams) == 0 || w.fault != nil {
		return
	}
	s := w.anyStream(uint32(draw))
	if s.closing {
		return
	}
	w.do("request its own memory", func() {
		n, err := s.Stats(context.Background())
		if err != nil || n.LargestFreeBytes == 0 {
			return
		}
		bytes := min(1+int64(draw>>8)%n.LargestFreeBytes, e.limit.Load())
		if bytes <= sizeclass.MaxBytes && spanBytes(bytes) > w.shape.pageBytes {
			return // pages that are too few for the span are returned on the way, and may be over the budget then
		}
		b, err := s.Alloc(bytes)
		if err != nil {
			w.broken("memory", "stream %d is refused %d bytes though %d are free in it: %w", s.id(), bytes, n.LargestFreeBytes, err)
			return
		}
		w.free(w.enter(s, b, bytes, 0), 0)
	})
}

// returnAll has the callers of adopted streams return the memory that only they may record a fence for.
func (w *world) returnAll() {
	for _, s := range w.era.streams {
		if s.adopted {
			w.giveBack(s)
		}
	}
}

// returned is a caller that returns memory kept by a stream.
func (w *world) returned(s *stream, _ action) func() {
	return func() { w.giveBack(s) }
}

func (w *world) giveBack(s *stream) {
	if err := s.Trim(context.Background()); err != nil && !w.excused(s) {
		w.broken("answer", "return of stream %d: %w", s.id(), err)
	}
}

// pin notes the pages that a live buffer may keep from being moved.
func (w *world) pin(pinned map[cudadrv.Ptr]bool, b streams.LiveBuffer) {
	page := cudadrv.Ptr(w.shape.pageBytes)
	begin, end := b.Ptr, b.Ptr+cudadrv.Ptr(b.Bytes)
	if b.Bytes <= sizeclass.MaxBytes {
		span := cudadrv.Ptr(spanBytes(b.Bytes))
		begin, end = end-span, begin+span
	}
	for at := begin / page; at*page < end; at++ {
		pinned[at] = true
	}
}

// spanBytes returns the length of the span that a small request may need.
func spanBytes(bytes int64) int64 {
	return int64(sizeclass.SpanUnits(sizeclass.Of(sizeclass.Units(bytes)))) << sizeclass.UnitShift
}
