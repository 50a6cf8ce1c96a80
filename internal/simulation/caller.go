package simulation

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// request is an allocation that went to a stream's turn by letter.
type request struct {
	stream   *stream
	bytes    int64
	hint     int
	token    uint64
	answered bool
}

// answer hands a buffer over. A second answer is a broken promise.
func (r *request) answer(slot *magazine.Slot) {
	r.finish("buffer")
	r.stream.got(slot, slot.Word(), r.bytes)
}

func (r *request) refuse(err error) {
	r.finish("refusal")
	w := r.stream.w
	w.report.Refused++
	w.note("stream %d: %d bytes refused: %v", r.stream.id, r.bytes, err)
}

func (r *request) finish(what string) {
	w := r.stream.w
	if r.answered {
		w.broken("a request of %d bytes got a second answer: %s", r.bytes, what)
	}
	r.answered = true
	w.requests = slices.DeleteFunc(w.requests, func(x *request) bool { return x == r })
}

// alloc is a caller's request, the fast way, in the stream's turn, or by letter.
func (s *stream) alloc(bytes int64) {
	if slot, word := s.cache.Take(bytes); slot != nil {
		s.counts.magazine++
		if bytes > sizeclass.MaxBytes {
			s.w.report.LargeMagazineHits++
		}
		s.got(slot, word, bytes)
		return
	}
	if s.shut || s.over || bytes > s.w.pool.settings.LimitBytes {
		return
	}
	hint := s.w.random.IntN(magazine.Shards)
	if s.w.chance(70) {
		if s.inline(bytes, hint) {
			return
		}
	}
	r := &request{stream: s, bytes: bytes, hint: hint}
	s.w.requests = append(s.w.requests, r)
	s.w.post(&s.actor, letter{name: fmt.Sprintf("alloc %d", bytes), receive: func() { s.serve(r) }, fail: func() { r.refuse(errClosed) }})
}

// inline runs the core in a turn that the caller entered.
func (s *stream) inline(bytes int64, hint int) bool {
	if s.draining {
		return false
	}
	slot, _ := s.core.Alloc(max(bytes, 1), hint)
	if slot != nil {
		s.core.Served(false)
		s.counts.ranges++
		s.shed()
		s.got(slot, slot.Word(), bytes)
	}
	s.w.detach(&s.actor)
	return slot != nil
}

// got is a buffer in a caller's hands.
func (s *stream) got(slot *magazine.Slot, word uint64, bytes int64) {
	w := s.w
	at := slot.Address()
	b := &buffer{handle{slot, word}, s, span{at, at + cudadrv.Ptr(max(bytes, 1))}}
	w.note("stream %d: %d bytes at %#x", s.id, bytes, at)
	s.counts.allocs++
	s.held = append(s.held, b)
	w.report.Allocs++
	page := at / cudadrv.Ptr(w.shape.pageBytes)
	if before := w.last[page]; before != nil && before != s {
		w.report.Shared++
	}
	w.last[page] = s
	if uint64(at)%sizeclass.UnitBytes != 0 {
		w.broken("a buffer at %#x is not aligned", at)
	}
	if err := w.ranges.enter(b); err != nil {
		w.broken("%w", err)
	}
	if u, ok := w.uses.hit(b.span, s, w.watch.Now()); ok {
		w.broken("buffer %v of stream %d is handed out while stream %d works on %v", b.span, s.id, u.stream.id, u.span)
	}
	if err := w.watch.MemsetD8Async(at, 0, max(bytes, 1), w.checker); err != nil {
		w.broken("a buffer is not all there: %w", err)
	}
}

// free is a caller's free of a live buffer, behind work that may still run.
func (s *stream) free(i int) {
	w := s.w
	b := s.held[i]
	s.held = slices.Delete(s.held, i, i+1)
	if w.shape.kernel > 0 && !s.shut && w.chance(50) {
		d := time.Duration(w.random.Int64N(int64(w.shape.kernel)))
		w.must(w.watch.Occupy(s.handle, d), "occupy")
		w.uses.add(use{b.span, s, s.busyUntil(d)})
	}
	w.ranges.leave(b)
	w.note("stream %d frees %#x", s.id, b.span.begin)
	if err := b.slot.Free(b.word); err != nil {
		w.broken("free of a live buffer: %w", err)
	}
	s.counts.frees++
	w.report.Frees++
	s.stale = append(s.stale, b.handle)
	if len(s.stale) > 16 {
		s.stale = s.stale[1:]
	}
}

// busyUntil is when the stream's work ends: what it had, or d from now.
func (s *stream) busyUntil(d time.Duration) time.Duration {
	until := s.w.watch.Now() + d
	for _, u := range s.w.uses.pending {
		if u.stream == s {
			until = max(until, u.until)
		}
	}
	return until
}

// freeAgain is a double free, or a free of a stale copy.
func (s *stream) freeAgain() {
	h := s.stale[s.w.random.IntN(len(s.stale))]
	if err := h.slot.Free(h.word); !errors.Is(err, magazine.ErrBadFree) {
		s.w.broken("a second free says %v", err)
	}
}

// cancel ends a request that waits.
func (w *world) cancel() {
	r := w.requests[w.random.IntN(len(w.requests))]
	w.note("cancel of %d bytes on stream %d", r.bytes, r.stream.id)
	r.finish("cancellation")
	w.report.Cancelled++
}
