package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-vram/vram/streams"
)

// share is a use of a buffer on a stream that is not over: announced for good, or to be ended.
type share struct {
	on  *stream
	use streams.Use
	end bool // by Done; else by the free
}

func (w *world) useRecorded(s *stream, act action) func() { return w.sharing(s, act, w.recordUse) }

func (w *world) useBegun(s *stream, act action) func() { return w.sharing(s, act, w.beginUse) }

func (w *world) handedOver(s *stream, act action) func() { return w.sharing(s, act, w.handOver) }

// sharing is something about a live buffer and a stream.
func (w *world) sharing(s *stream, act action, what func(*buffer, *stream)) func() {
	n := uint32(len(w.held))
	if n == 0 {
		return nil
	}
	b := w.held[act.b%n]
	return func() {
		if b.held { // nobody has freed it since
			what(b, s)
		}
	}
}

func (w *world) recordUse(b *buffer, s *stream) {
	handle := b.Buffer
	err := b.RecordStream(s.Stream)
	if w.shared(b, handle, s, err) && s != b.stream {
		b.shares = append(b.shares, share{on: s})
	}
}

func (w *world) beginUse(b *buffer, s *stream) {
	handle := b.Buffer
	u, err := b.Use(s.Stream)
	if w.shared(b, handle, s, err) && s != b.stream {
		b.shares = append(b.shares, share{s, u, true})
	}
}

// shared takes the answer of an announcement by a handle.
func (w *world) shared(b *buffer, handle streams.Buffer, s *stream, err error) bool {
	switch {
	case err == nil:
		w.report.Shares++
		w.note("stream %d uses %v of stream %d", s.id(), b.span, b.stream.id())
		return true
	case errors.Is(err, streams.ErrForeign) && s.era != b.stream.era, errors.Is(err, streams.ErrClosed) && s.closing:
	case errors.Is(err, streams.ErrNotLive) && (!b.held || b.Buffer != handle): // freed or handed over since the call began
	default:
		w.broken("answer", "a use of a live buffer is refused: %w", err)
	}
	return false
}

// useDone ends a use of some buffer, after work that may still run.
func (w *world) useDone(_ *stream, act action) func() {
	n := len(w.held)
	for i := range n {
		b := w.held[(int(act.a%uint32(n))+i)%n]
		at := slices.IndexFunc(b.shares, func(x share) bool { return x.end })
		if at < 0 {
			continue
		}
		return func() { w.endUse(b, act.c) }
	}
	return nil
}

func (w *world) endUse(b *buffer, kernel uint32) {
	at := slices.IndexFunc(b.shares, func(x share) bool { return x.end })
	if at < 0 || !b.held {
		return
	}
	x := b.shares[at]
	b.shares = slices.Delete(b.shares, at, at+1) // first: nothing is submitted for it any more
	w.submit(b, x.on, kernel)
	if err := x.use.Done(); err != nil && b.held {
		w.broken("answer", "the end of a use fails: %w", err)
	}
	if err := x.use.Done(); err == nil {
		w.broken("answer", "a use ends twice")
	}
}

// handOver gives a buffer to another stream. Nobody else has it then.
func (w *world) handOver(b *buffer, s *stream) {
	w.submit(b, b.user(), uint32(mixed(uint64(b.span.begin), 3))|1)
	w.unhold(b)
	from, since := b.user(), w.moment
	t := w.current
	t.transfers = true
	next, err := b.Transfer(s.Stream)
	t.transfers = false
	refused, why := w.refusedByCapture(err, since)
	if why != "" || err == nil && from != s && (from.capture.throughout(since) || s.capture.throughout(since)) {
		w.broken("answer", "stream %d hands a buffer over to stream %d while one is captured, or none: %v %s", from.id(), s.id(), err, why)
	}
	w.hold(b)
	if refused || errors.Is(err, streams.ErrTransferLimit) {
		return
	}
	if err != nil {
		if !w.disturbed() && !errors.Is(err, streams.ErrForeign) && !errors.Is(err, streams.ErrClosed) {
			w.broken("answer", "a buffer cannot be handed over: %w", err)
		}
		return
	}
	w.note("stream %d has %v of stream %d", s.id(), b.span, b.stream.id())
	w.retire(b)
	b.Buffer, b.holder = next, s
	w.report.Transfers++
}

// user returns the stream that a buffer belongs to.
func (b *buffer) user() *stream {
	if b.holder != nil {
		return b.holder
	}
	return b.stream
}

// submit gives a stream work on a buffer, now and then.
func (w *world) submit(b *buffer, s *stream, kernel uint32) {
	if w.shape.kernel == 0 || s.closing || s.era.closing || s.era != w.era || kernel%2 == 0 {
		return
	}
	d := time.Duration(uint64(kernel) * uint64(w.shape.kernel) >> 32)
	if s.capture.active {
		w.captured(b, s, d)
		return
	}
	w.must(w.watch.Occupy(s.Handle(), d), "occupy")
	w.uses.add(use{span: b.span, stream: s, of: b, until: w.busyUntil(s, d)})
}

// unhold removes a buffer from those that callers may free.
func (w *world) unhold(b *buffer) {
	b.held = false
	last := len(w.held) - 1
	w.held[last].place = b.place
	w.held[b.place] = w.held[last]
	w.held = w.held[:last]
}

// hold puts it back.
func (w *world) hold(b *buffer) {
	b.held = true
	b.place = len(w.held)
	w.held = append(w.held, b)
}

// waits reports whether anything waits for uses, as far as the streams say.
func (w *world) waits() bool {
	return slices.ContainsFunc(w.era.streams, func(s *stream) bool { return s.Waits() })
}

// unfinished reports whether a stream is closed whose work may not have finished: its memory is lost until the device is
// closed.
func (w *world) unfinished() bool {
	return slices.ContainsFunc(w.era.streams, func(s *stream) bool { return s.unsynced })
}

// let lets the device finish the work that pending memory waits for, and has callers notice, also on adopted streams.
func (w *world) let() {
	for range 3 {
		if !w.waits() {
			return
		}
		w.watch.AdvanceTo(w.watch.Drained())
		for _, s := range w.era.streams {
			_ = s.Sweep(context.Background()) // one that has ended has nothing to look at
		}
	}
}
