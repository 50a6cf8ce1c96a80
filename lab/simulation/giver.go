package simulation

import (
	"errors"
	"slices"
	"time"

	"github.com/go-vram/vram/streams"
)

func (w *world) freed(_ *stream, act action) func() {
	n := uint32(len(w.held))
	if n == 0 {
		return nil
	}
	b := w.held[act.a%n]
	return func() { w.free(b, act.c) }
}

func (w *world) batchFreed(_ *stream, act action) func() {
	if len(w.held) == 0 {
		return nil
	}
	return func() { w.freeBatch(act) }
}

func (w *world) freedAgain(_ *stream, act action) func() {
	n := uint32(len(w.stale))
	if n == 0 {
		return nil
	}
	b := w.stale[act.a%n]
	return func() { w.freeAgain(b) }
}

func (w *world) allFreed(s *stream, _ action) func() {
	return func() { w.freeAll(s) }
}

// free is a caller's free of a live buffer, after work that may still run.
func (w *world) free(b *buffer, kernel uint32) {
	w.freeBy(b, kernel, b.Free)
}

// freeBy is free by a way of the caller's choice.
func (w *world) freeBy(b *buffer, kernel uint32, free func() error) {
	w.part(b, kernel)
	if err := free(); err != nil && (!errors.Is(err, streams.ErrClosed) || !b.stream.era.closing) {
		w.broken("free", "free of a live buffer: %w", err)
	}
	b.gone = true
	w.retire(b)
}

// part removes a buffer from the live ones.
func (w *world) part(b *buffer, kernel uint32) {
	s := b.stream
	w.unhold(b)
	s.live--
	s.frees++
	w.report.Frees++
	w.submit(b, b.user(), kernel)
	for i, x := range b.shares {
		w.submit(b, x.on, kernel+uint32(i))
	}
	w.ranges.leave(b)
	if w.freedAt = append(w.freedAt, b.span.begin); len(w.freedAt) > freedLimit {
		w.freedAt = w.freedAt[1:]
	}
	w.note("stream %d: %#x is freed", s.id(), b.span.begin)
}

// retire keeps a buffer that was freed, to be freed again.
func (w *world) retire(b *buffer) {
	if b.stream.era != w.era {
		return
	}
	w.stale = append(w.stale, b.Buffer)
	if len(w.stale) > 32 {
		w.stale = w.stale[1:]
	}
}

// busyUntil returns the end of the stream's work: the known end, or d from now.
func (w *world) busyUntil(s *stream, d time.Duration) time.Duration {
	until := w.watch.Now() + d
	for _, u := range w.uses.pending {
		if u.stream == s {
			until = max(until, u.until)
		}
	}
	return until
}

// freeAgain is a double free, or a free of a stale copy.
func (w *world) freeAgain(b streams.Buffer) {
	if err := b.Free(); !errors.Is(err, streams.ErrBadFree) {
		w.broken("free", "a second free returns %v", err)
	}
	if b.Live() {
		w.broken("free", "a buffer that was freed is live")
	}
}

// freeBatch frees several buffers at once, a stale one among them now and then.
func (w *world) freeBatch(act action) {
	var all []streams.Buffer
	var gone []*buffer
	s := w.held[act.a%uint32(len(w.held))].stream
	closing := false
	for range min(len(w.held), int(1+act.b%8)) {
		b := w.held[int(act.a)%len(w.held)]
		closing = closing || b.stream.era.closing
		w.part(b, act.c)
		all, gone = append(all, b.Buffer), append(gone, b)
	}
	bad := act.c%4 == 0 && len(w.stale) > 0
	if bad {
		all = append(all, w.stale[0])
	}
	err := s.FreeBatch(all)
	for _, b := range gone {
		b.gone = true
		w.retire(b)
	}
	switch {
	case closing && errors.Is(err, streams.ErrClosed):
	case bad && !errors.Is(err, streams.ErrBadFree), !bad && err != nil:
		w.broken("free", "a batch of %d frees, a stale one among them: %t, returns %v", len(all), bad, err)
	}
}

// freeAll frees all buffers of a stream.
func (w *world) freeAll(s *stream) {
	for _, b := range slices.Clone(w.held) {
		if b.held && b.stream == s {
			w.free(b, 0)
		}
	}
}

// give frees a buffer that never was in a caller's hands.
func (w *world) give(b streams.Buffer) error {
	err := b.Free()
	if errors.Is(err, streams.ErrClosed) && w.era.closing {
		return nil
	}
	return err
}
