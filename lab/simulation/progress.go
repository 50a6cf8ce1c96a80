package simulation

import (
	"context"
	"slices"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams"
)

// waiter is a caller that waits for memory while others free it.
type waiter struct {
	stream   *stream
	priority int
	bytes    int64 // 0: how many pages it needs is not known
	answered bool
}

// progress has callers take all memory and others wait for some, and then frees one buffer after the other. After each free
// everything ends that can run, and the work of the device, but no tick comes: a wait that only a tick ends is a lost wake-up.
// Then nobody waits who could be served, and in the end nobody waits.
func (w *world) progress(draw uint64) {
	if w.era.closed || !w.emptied(draw&^3, draw>>2&^3) || w.fault != nil || w.lossy || w.unfinished() || w.waits() || w.reserving > 0 || w.excludedAny() {
		return
	}
	open, ok := w.openAlone()
	if !ok || len(open) == 0 || w.era.limit.Load() <= sizeclass.MaxBytes {
		return
	}
	w.do("take all", func() { w.takeAllOf(open, draw) })
	waiters := w.beginWaits(open, mixed(draw, 1))
	for n := uint64(2); w.fault == nil; n++ {
		draw := mixed(draw, n)
		w.exhaust(draw)
		if w.fault != nil || !w.stuck() {
			break
		}
		w.checkServed(waiters)
		if len(w.held) == 0 {
			w.broken("progress", "no buffer is live and no work is left, and these wait: %v", w.labels())
			return
		}
		b := w.held[draw%uint64(len(w.held))]
		w.start(mixed(draw, 3), "free", func() {
			if b.held { // the handler of shortages may have freed it
				w.free(b, uint32(draw>>32)) //nolint:gosec // some of it
			}
		})
	}
	w.report.Progressed += uint64(len(waiters))
}

// openAlone returns the open streams that the device made. It reports whether no other stream keeps memory after its callers
// have returned what they can.
func (w *world) openAlone() (open []*stream, ok bool) {
	w.do("return", w.unload)
	ok = true
	w.do("look", func() {
		for _, s := range w.era.streams {
			switch {
			case s.closing:
				ok = ok && s.Gone()
			case s.adopted:
				n, err := s.Stats(context.Background())
				ok = ok && err == nil && n.HeldBytes == 0
			default:
				open = append(open, s)
			}
		}
	})
	return open, ok
}

// takeAllOf takes buffers on several streams until some were refused.
func (w *world) takeAllOf(open []*stream, draw uint64) {
	for n, refusals := uint64(0), 0; refusals < mostRefusals && w.fault == nil; n++ {
		draw := mixed(draw, n)
		s, most := open[draw%uint64(len(open))], uint64(w.era.limit.Load()/4) //nolint:gosec // of a small device
		if draw>>8%3 == 0 {
			most = sizeclass.MaxBytes
		}
		bytes := 1 + int64(draw>>16%most) //nolint:gosec // of a small device
		b, err := s.Alloc(bytes)
		if w.answered(s, nil, b, bytes, 0, err) == nil {
			refusals++
		}
	}
}

// beginWaits begins some requests, each for a part of the memory. A fourth of them are batches.
func (w *world) beginWaits(open []*stream, draw uint64) (all []*waiter) {
	for n := range 1 + draw%4 {
		draw := mixed(draw, n)
		x := &waiter{stream: open[draw%uint64(len(open))], priority: int(draw >> 8 % 3)} //nolint:gosec // below 3
		all = append(all, x)
		most := uint64(w.era.limit.Load() - sizeclass.MaxBytes) //nolint:gosec // of a small device
		name, wait := "wait", w.waitFor
		if draw>>10%4 == 0 {
			name, wait, most = "wait for a batch", w.waitForBatch, most/mostParts/2 //nolint:mnd // a part may need a page more
		}
		bytes := sizeclass.MaxBytes + 1 + int64(draw>>16%max(1, most)) //nolint:gosec // of a small device
		w.start(mixed(draw, 1), name, func() {
			wait(x, bytes)
			x.answered = true
		})
	}
	return all
}

// waitFor is a caller that waits for a buffer.
func (w *world) waitFor(x *waiter, bytes int64) {
	x.bytes = bytes
	w.async(x.stream, streams.Request{Bytes: bytes, Wait: true, Priority: x.priority}, false)
}

// mostParts bounds the buffers of a batch that is waited for.
const mostParts = 4

// waitForBatch is a caller that waits for several buffers.
func (w *world) waitForBatch(x *waiter, bytes int64) {
	sizes := slices.Repeat([]int64{bytes}, 1+int(bytes%mostParts))
	f := x.stream.AllocBatchForAsync(context.Background(), streams.BatchRequest{Bytes: sizes, Wait: true, Priority: x.priority})
	p := w.expect(f.Cancel, nil)
	got, err := f.Await(context.Background())
	w.cease(p)
	w.batchAnswered(x.stream, p, got.Buffers(), sizes, err)
}

// exhaust runs all that can run, and lets the device finish its work, until neither is left.
func (w *world) exhaust(draw uint64) {
	for n := uint64(0); w.fault == nil; n++ {
		ready := w.runnable()
		switch {
		case n > settleLimit:
			w.broken("circles", "nothing comes to its end: %v", w.labels())
		case len(ready) > 0:
			draw = mixed(draw, n)
			w.resumeAny(ready, draw)
		case w.watch.Drained() > w.watch.Now():
			w.watch.AdvanceTo(w.watch.Drained())
		default:
			return
		}
	}
}

// checkServed checks that memory does not serve the first of the waiting requests, with handles of one page: of those with the
// highest priority, the largest needs no less than the first.
func (w *world) checkServed(waiters []*waiter) {
	waiters = slices.DeleteFunc(slices.Clone(waiters), func(x *waiter) bool { return x.answered })
	var highest int
	for _, x := range waiters {
		highest = max(highest, x.priority)
	}
	var largest int64
	for _, x := range waiters {
		if x.priority == highest && x.bytes == 0 {
			return
		}
		if x.priority == highest {
			largest = max(largest, x.bytes)
		}
	}
	if w.shape.segments || !w.shape.plain {
		return
	}
	if w.look(); w.lossy || w.fault != nil {
		return
	}
	if pages := w.era.limit.Load()/w.shape.pageBytes - int64(len(w.pinned)); largest <= pages*w.shape.pageBytes {
		w.broken("progress", "a request waited for %d bytes, though %d pages are unowned and nothing could run", largest, pages)
	}
}
