package simulation

import (
	"context"
	"slices"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/streams"
)

// anyStream returns one that is open, for the most part: closed ones have live buffers to be freed.
func (w *world) anyStream(draw uint32) *stream {
	all := w.era.streams
	n := uint64(draw)
	for range 4 {
		if s := all[n%uint64(len(all))]; !s.closing || n%11 == 0 {
			return s
		}
		n = mixed(n, 6)
	}
	return all[len(all)-1]
}

func (w *world) openCount() (n int) {
	for _, s := range w.era.streams {
		if !s.closing {
			n++
		}
	}
	return n
}

func (w *world) alloc(s *stream, act action) func() {
	bytes := w.shape.size(act.b)
	return func() {
		b, err := s.Alloc(bytes)
		w.answered(s, nil, b, bytes, 0, err)
	}
}

func (w *world) allocAsync(s *stream, act action) func() {
	want := streams.Request{Bytes: w.shape.size(act.b)}
	return func() { w.async(s, want, act.c%3 == 0) }
}

func (w *world) allocFor(s *stream, act action) func() {
	want := streams.Request{Bytes: w.shape.size(act.b), Zero: act.c%2 == 0}
	if act.c%3 == 0 {
		want.Align = 1 << (act.c / 8 % 24)
	}
	if act.c%5 == 0 {
		want.Tag = "tag"
	}
	return func() { w.async(s, want, act.c%7 != 0) }
}

// async asks for a future and waits for it.
func (w *world) async(s *stream, want streams.Request, bounded bool) *buffer {
	var d *deadline
	ctx := context.Background()
	if bounded {
		d = w.newDeadline()
		ctx = d
	}
	f := s.AllocAsync(ctx, want)
	p := w.expect(f.Cancel, d)
	b, err := f.Await(context.Background())
	w.cease(p)
	w.unchanged(f, b, err)
	if err == nil && want.Zero && want.Bytes > 0 && s.capture.throughout(w.current.since) {
		w.broken("answer", "memory is set to zero while stream %d is captured", s.id())
	}
	return w.answered(s, p, b, want.Bytes, want.Align, err)
}

// unchanged says that a future that was answered has the same answer for ever.
func (w *world) unchanged(f futures.Future[streams.Buffer], b streams.Buffer, err error) {
	again, completed, againErr := f.Poll()
	if !completed || again != b || againErr != err { //nolint:errorlint // the very same
		w.broken("answer", "a future answered %v, %v and then %v, %v", b, err, again, againErr)
	}
	if f.Cancel() {
		w.broken("answer", "a future was cancelled after it was answered")
	}
}

// loop is a caller that takes and gives the same size again and again, as programs do.
func (w *world) loop(s *stream, act action) func() {
	bytes := w.shape.size(act.b)
	return func() {
		for i := range 3 + act.c%24 {
			b, err := s.Alloc(bytes)
			got := w.answered(s, nil, b, bytes, 0, err)
			if got == nil {
				return
			}
			if mixed(uint64(act.c), uint64(i))%100 < 92 && got.held {
				w.free(got, 0)
			}
		}
	}
}

// batch asks for several buffers and waits.
func (w *world) batch(s *stream, act action) func() {
	sizes := w.batchSizes(act)
	return func() {
		dst := make([]streams.Buffer, len(sizes))
		err := s.AllocBatch(dst, sizes)
		w.batchAnswered(s, nil, dst, sizes, err)
	}
}

// batchAsync asks for several buffers as a future.
func (w *world) batchAsync(s *stream, act action) func() {
	sizes := w.batchSizes(act)
	return func() {
		d := w.newDeadline()
		f := s.AllocBatchAsync(d, sizes)
		p := w.expect(f.Cancel, d)
		got, err := f.Await(context.Background())
		w.cease(p)
		w.batchAnswered(s, p, got.Buffers(), sizes, err)
	}
}

func (w *world) batchSizes(act action) []int64 {
	sizes := make([]int64, 1+act.c%12)
	for i := range sizes {
		sizes[i] = w.shape.size(uint32(mixed(uint64(act.b), uint64(i)/3)))
	}
	return sizes
}

// gather makes one future of several.
func (w *world) gather(s *stream, act action) func() {
	want := func(i uint64) streams.Request {
		return streams.Request{Bytes: w.shape.size(uint32(mixed(uint64(act.b), i)))}
	}
	if act.c%3 == 0 {
		return func() { w.chain(s, want(0), act.c%5 == 0) }
	}
	return func() {
		d := w.newDeadline()
		var parts []futures.Future[streams.Buffer]
		var of []*stream
		var sizes []int64
		for i := range 2 + uint64(act.c)%2 {
			part := w.anyStream(uint32(mixed(uint64(act.a), i)))
			of, sizes = append(of, part), append(sizes, want(i).Bytes)
			parts = append(parts, part.AllocAsync(d, want(i)))
		}
		if act.c%3 == 1 {
			w.all(of, sizes, parts, d)
		} else {
			w.first(of, sizes, parts, d)
		}
	}
}

// chain hands a buffer through a function.
func (w *world) chain(s *stream, want streams.Request, panics bool) {
	f := s.AllocAsync(context.Background(), want)
	g := futures.Then(f, func(b streams.Buffer) (streams.Buffer, error) {
		if panics {
			panic(plantedError{"in a callback"})
		}
		return b, nil
	})
	p := w.expect(g.Cancel, nil)
	_, derived := g.Await(context.Background())
	w.cease(p)
	b, err := f.Await(context.Background())
	switch {
	case derived == nil && err != nil, derived == nil && panics:
		w.broken("answer", "a callback delivered though %v", err)
	case derived != nil && err == nil && !p.won && !panics:
		w.broken("answer", "a callback failed: %w", derived)
	}
	w.answered(s, nil, b, want.Bytes, 0, err)
}

// all wants several buffers or none.
func (w *world) all(of []*stream, sizes []int64, parts []futures.Future[streams.Buffer], d *deadline) {
	f := futures.All(w.release, parts...)
	p := w.expect(f.Cancel, d)
	got, err := f.Await(context.Background())
	w.cease(p)
	if err != nil {
		w.refused(of[0], p, slices.Max(sizes), err)
		return
	}
	for i, b := range got {
		w.answered(of[i], p, b, sizes[i], 0, nil)
	}
}

// first wants one of several buffers.
func (w *world) first(of []*stream, sizes []int64, parts []futures.Future[streams.Buffer], d *deadline) {
	f := futures.First(w.release, parts...)
	p := w.expect(f.Cancel, d)
	b, err := f.Await(context.Background())
	w.cease(p)
	if err != nil {
		w.refused(of[0], p, slices.Max(sizes), err)
		return
	}
	if err := w.give(b); err != nil {
		w.broken("free", "a buffer that came first: %w", err)
	}
}

// release gives back a buffer that nobody wants any more.
func (w *world) release(b streams.Buffer) {
	if err := w.give(b); err != nil {
		w.broken("free", "a buffer that nobody wants: %w", err)
	}
}
