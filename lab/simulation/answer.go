package simulation

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// pending is a future that somebody waits for.
type pending struct {
	cancel   func() bool
	ctx      *deadline // nil: none
	canceled bool      // somebody tried
	won      bool      // and the future said that it was in time
	expired  bool
}

func (p *pending) String() string { return fmt.Sprintf("a future (cancelled: %t)", p.canceled) }

// expect makes a future known to those who cancel.
func (w *world) expect(cancel func() bool, d *deadline) *pending {
	p := &pending{cancel: cancel, ctx: d}
	if d == nil {
		p.ctx = w.newDeadline() // ends in vain
	}
	w.pending = append(w.pending, p)
	return p
}

// cease ends that.
func (w *world) cease(p *pending) {
	for i := range w.pending {
		if w.pending[i] == p {
			w.pending = append(w.pending[:i], w.pending[i+1:]...)
			return
		}
	}
}

// cancel is a caller who does not want the answer any more.
func (w *world) cancel(p *pending) {
	p.canceled = true
	if p.cancel() {
		if p.won {
			w.broken("answer", "a future was cancelled twice")
		}
		p.won, w.canceled = true, true
		w.report.Cancelled++
	}
}

// answered takes the answer of a request. A buffer becomes live; the result is nil for a refusal.
func (w *world) answered(s *stream, p *pending, b streams.Buffer, bytes, align int64, err error) *buffer {
	if err != nil {
		w.refused(s, p, max(bytes, align), err)
		return nil
	}
	w.current.since = w.moment
	if p != nil && p.won {
		w.broken("answer", "a future that was cancelled delivers a buffer")
	}
	return w.enter(s, b, bytes, align)
}

// batchAnswered takes the answer of a batch.
func (w *world) batchAnswered(s *stream, p *pending, got []streams.Buffer, sizes []int64, err error) {
	if err != nil {
		var sum int64
		for _, bytes := range sizes {
			sum += bytes
		}
		for _, b := range got {
			if b != (streams.Buffer{}) {
				w.broken("answer", "a batch that failed holds a buffer: %w", err)
			}
		}
		w.refused(s, p, sum, err)
		return
	}
	if p != nil && p.won {
		w.broken("answer", "a batch that was cancelled delivers buffers")
	}
	w.report.Batches++
	for i, b := range got {
		w.enter(s, b, sizes[i], 0)
	}
}

// refused checks that a refusal has a possible reason.
func (w *world) refused(s *stream, p *pending, bytes int64, err error) {
	w.report.Refused++
	w.note("refused: %v", err)
	defer func() { w.current.since = w.moment }()
	if why := w.reason(s, p, bytes, err); why != "" {
		w.broken("answer", "a request of %d bytes is refused with %v: %s", bytes, err, why)
	}
}

// reason says why an error cannot be the answer of a request.
func (w *world) reason(s *stream, p *pending, bytes int64, err error) string {
	var (
		short  *pool.OutOfMemoryError
		crash  *actors.PanicError
		failed *cudadrv.CallError
		inner  *futures.PanicError
	)
	if refused, why := w.refusedByCapture(err, w.current.since); refused {
		return why
	}
	switch {
	case errors.Is(err, streams.ErrQuarantined):
		return "the books did not balance"
	case errors.As(err, &inner):
		return "no callback panicked"
	case errors.Is(err, streams.ErrClosed), errors.Is(err, pool.ErrClosed):
		if w.era.closing || s == nil || s.closing || s.era.closing || w.closingAny() {
			return ""
		}
		return "nothing was closed"
	case errors.As(err, &short):
		w.report.OutOfMemory++
		return ""
	case w.isWait(err):
		return ""
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		if p != nil && (p.canceled || p.expired) {
			return ""
		}
		return "nobody gave it up"
	case errors.Is(err, streams.ErrTooLarge):
		if bytes > w.era.leastLimit {
			return ""
		}
		return fmt.Sprintf("the limit was never below %d", w.era.leastLimit)
	case errors.As(err, &crash), errors.Is(err, pool.ErrDriverPanic):
		if w.panicked() {
			return ""
		}
		return "nothing panicked"
	case errors.As(err, &failed):
		if w.disturbed() {
			return ""
		}
		return "the driver worked"
	}
	var align *streams.AlignError
	if errors.As(err, &align) && bytes > w.era.leastLimit || w.panicked() {
		return ""
	}
	return "it is no error that is known"
}

// closingAny reports whether any stream is closed: a request that names several may mean that one.
func (w *world) closingAny() bool {
	for _, s := range w.era.streams {
		if s.closing {
			return true
		}
	}
	return false
}

// kept checks the error of a call that is no request.
func (w *world) kept(err error) {
	if err == nil || w.disturbed() || w.closingAny() || w.era.closing {
		return
	}
	w.broken("answer", "it failed though nothing was wrong: %w", err)
}

// buffer is a live allocation.
type buffer struct {
	streams.Buffer
	stream *stream
	span   span
	asked  int64   // bytes; the length that Lookup returned
	place  int     // in world.held
	held   bool    // by its caller
	gone   bool    // freed
	holder *stream // to which it was handed over; nil: its own
	shares []share
	tenant *pool.Tenant // that it is charged to; nil: none
	crossed
}

// enter is a buffer in a caller's hands.
func (w *world) enter(s *stream, b streams.Buffer, bytes, align int64) *buffer {
	at := b.Ptr()
	x := &buffer{Buffer: b, stream: s, span: span{at, at + cudadrv.Ptr(max(bytes, 1))}, asked: bytes, place: len(w.held), held: true}
	w.note("stream %d: %d bytes at %#x", s.id(), bytes, at)
	s.allocs++
	w.report.Allocs++
	w.mix(uint64(at))
	if s.era != w.era || w.era.unmapping { // the caller was held up until the memory was gone
		x.held = false
		_ = b.Free()
		s.frees++
		return x
	}
	page := at / cudadrv.Ptr(w.shape.pageBytes)
	if before := w.last[page]; before != nil && before != s {
		w.report.Shared++
	}
	w.last[page] = s
	if uint64(at)%uint64(max(align, sizeclass.UnitBytes)) != 0 {
		w.broken("align", "a buffer at %#x is not aligned to %d", at, align)
	}
	if b.Bytes() != bytes || !b.Live() {
		w.broken("answer", "a buffer of %d bytes says %d, live: %t", bytes, b.Bytes(), b.Live())
	}
	if err := w.ranges.enter(x); err != nil {
		w.broken("overlap", "%w", err)
	}
	if u, ok := w.uses.hit(x.span, s, w.watch); ok {
		w.broken("reuse", "buffer %v of stream %d is handed out while stream %d works on %v", x.span, s.id(), u.stream.id(), u.span)
	}
	if err := w.watch.MemsetD8Async(at, 0, max(bytes, 1), w.era.checker); err != nil {
		w.broken("mapped", "a part of a buffer is not mapped: %w", err)
	}
	w.held = append(w.held, x)
	s.live++
	return x
}
