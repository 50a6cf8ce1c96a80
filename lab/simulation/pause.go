package simulation

import (
	"context"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
)

// maxRestTicks is after how many ticks without work a stream has returned all that it can, and its fences have been looked at.
const maxRestTicks = 25

// pause allocates and frees much memory and idles until free memory is old. Then it compares reserved with live memory: no
// handle without a buffer is left. In every other case one stream keeps working with a little memory, in half of these with
// idle times. Callers of adopted streams call Trim before, and after each free: see rest.
func (w *world) pause(act action) {
	w.endCaptures()
	w.settle(uint64(act.a))
	e := w.era
	if w.fault != nil || e.closing || len(e.streams) == 0 || e.ahead || w.shape.segments || w.capturedAny() || w.reserving > 0 || w.lossy || w.unfinished() {
		return
	}
	s := w.anyStream(act.a)
	if s.closing {
		return
	}
	w.finishExcluded()
	settings, ofStreams := w.shape.settings(uint64(act.b)), w.shape.ofStream(uint64(act.b))
	settings.AgeTicks, settings.LimitBytes = []uint32{2, 15}[act.b%2], e.limit.Load()
	ofStreams.AgeTicks = int(settings.AgeTicks)
	w.do("spike", func() {
		w.kept(e.pool.Reconfigure(context.Background(), settings))
		for _, s := range e.streams {
			_ = s.Reconfigure(context.Background(), ofStreams) // one that has ended needs none
		}
		w.spike(s, uint64(act.b))
		w.unload()
	})
	var workBytes int64
	if act.c%2 == 0 && !s.adopted {
		workBytes = sizeclass.MaxBytes + 1 + int64(act.c)%w.shape.pageBytes
	}
	workTicks := 2
	if act.c%4 == 2 {
		workTicks = 12
	}
	for !w.rest(s, workBytes, workTicks, maxRestTicks+5*ofStreams.AgeTicks) {
		if w.fault != nil {
			return
		}
		w.do("return", w.unload)
	}
	w.rested(workBytes, settings.Policy.SpareBytes)
}

// unload has callers do for adopted streams what no tick does: record the fences that freed memory waits for, and call Trim.
// First a turn of each stream collects the frees. Only then does a stream report that it waits, and a free by the shortage
// handler, which another stream's request calls, enters no turn.
func (w *world) unload() {
	for _, s := range w.era.streams {
		_ = w.lookAt(s) // one that has ended says so
	}
	w.let()
	w.returnAll()
}

// rest passes so many ticks, in which one stream works with a little memory, and reports whether only buffers of that work
// were freed. If the work is refused, the callers' shortage handler may free others. That memory is then young; on an adopted
// stream it stays, however old, until the callers use the stream again or call Trim. In that case the rest ends, and another
// has to begin.
func (w *world) rest(s *stream, workBytes int64, workTicks, ticks int) (undisturbed bool) {
	liveCount := len(w.held)
	for n := range ticks {
		w.watch.AdvanceTo(w.watch.Drained())
		w.do("rest", func() {
			if workBytes > 0 && n%workTicks == 0 {
				w.work(s, workBytes)
			}
			for _, s := range w.era.streams {
				s.Tick()
			}
			w.era.pool.Tick()
		})
		if w.fault != nil || len(w.held) < liveCount {
			return false
		}
	}
	return true
}

// spike allocates much memory and frees it, with work queued before the frees.
func (w *world) spike(s *stream, draw uint64) {
	var all []*buffer
	for n := range draw % 8 {
		bytes := sizeclass.MaxBytes + 1 + int64(mixed(draw, n)%uint64(w.shape.largest)) //nolint:gosec // of a small device
		if b, err := s.Alloc(bytes); err == nil {
			all = append(all, w.enter(s, b, bytes, 0))
		}
	}
	for n, b := range all {
		if b.held { // a handler may have freed it
			w.free(b, uint32(mixed(draw, uint64(n)))) //nolint:gosec // some of it
		}
	}
}

// work takes a little memory and frees it.
func (w *world) work(s *stream, bytes int64) {
	if b, err := s.Alloc(bytes); err == nil {
		w.free(w.enter(s, b, bytes, 0), 0)
	}
}

// rested compares memory reserved after a rest with live memory and the working stream's memory. A stream that idles between
// works borrows all free memory and returns it while the reserved memory is at most twice the streams' recent use. A stream
// that works under pressure and idles after a tick does the same: that memory stays, whatever its age, in addition to the
// spare memory.
func (w *world) rested(workBytes, spareBytes int64) {
	e := w.era
	pinned := map[cudadrv.Ptr]bool{}
	w.do("look", func() {
		for _, s := range e.streams {
			for _, b := range s.LiveBuffers() {
				w.pin(pinned, b)
			}
		}
		n, err := e.pool.Snapshot(context.Background())
		if err != nil {
			return
		}
		pages := int64(len(pinned))
		if workBytes > 0 { // it may lie across one page more, and in another place each time
			pages += 2 * (workBytes/w.shape.pageBytes + 2)
		}
		maxBytes := pages * w.shape.pageBytes * w.shape.maxHandlePages()
		if workBytes > 0 {
			maxBytes = max(maxBytes, 2*int64(len(pinned))*w.shape.pageBytes+2*workBytes+spareBytes)
		}
		if n.ReservedBytes > maxBytes {
			w.broken("old", "%d bytes are reserved after a rest, %d may be for %d pages on which buffers lie and %d bytes of work; pool %+v", n.ReservedBytes, maxBytes, len(pinned), workBytes, n)
		}
		w.report.Rests++
	})
}
