package streams

import (
	"context"
	"time"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Alloc returns a buffer of that many bytes for use on the stream. It does not wait for other
// callers' frees, but the driver may have to map memory first. A size of 0 gives a valid buffer
// that holds nothing. Errors: ErrNegative, *SizeError, *pool.OutOfMemoryError, ErrClosed,
// ErrQuarantined, and the driver's.
func (s *Stream) Alloc(bytes int64) (b Buffer, err error) { // named results keep this short enough to be inlined
	if s == nil { // replaces the nil check of each access
		return b, ErrNotOpen
	}
	b.slot, b.word, b.bytes, err = s.cache.Alloc(bytes)
	return b, err
}

// AllocFor is Alloc with options. It waits for the driver where memory must be mapped, and for
// other callers' frees only with Request.Wait. The end of ctx ends the request, and is the error
// then; memory that arrives too late stays in the cache. Errors: the errors of Alloc, *AlignError, the
// context's, *CaptureError, and the errors of the memset, after which nothing is held; with Request.Wait
// *pool.DeadlockError, and *pool.WaitError instead of the context's error alone.
func (s *Stream) AllocFor(ctx context.Context, want Request) (Buffer, error) {
	return s.AllocAsync(ctx, want).Await(context.Background()) //nolint:contextcheck // ctx ends the request itself, and so the wait
}

// AllocAsync is AllocFor as a future: complete immediately when the stream's own memory serves it,
// without a heap allocation if it needs no Tag. The end of ctx, or the future's Cancel, ends the
// request; memory that arrives too late stays in the cache. It does not wait. With Request.Wait the
// end of the context of an Await, which leaves the request as it is, has a *pool.WaitError, too.
func (s *Stream) AllocAsync(ctx context.Context, want Request) futures.Future[Buffer] {
	if s != nil && ctx != nil && want.plain() && ctx.Err() == nil {
		if slot, word := s.cache.Take(want.Bytes); slot != nil {
			b := Buffer{slot, word, want.Bytes}
			if s.cache.Share() != 0 { // the call is spared
				s.sampler.sampled(b, "", nil)
			}
			return futures.Done(b)
		}
	}
	if err := s.callable(ctx); err != nil {
		return futures.Failed[Buffer](err)
	}
	if err := s.checkRequest(&want); err != nil {
		return futures.Failed[Buffer](err)
	}
	if err := ctx.Err(); err != nil {
		return futures.Failed[Buffer](err)
	}
	if want.Tenant != nil {
		return s.allocCharged(ctx, want)
	}
	if b, ok := s.allocNow(&want); ok {
		if err := s.finish(b, &want); err != nil {
			return futures.Failed[Buffer](err)
		}
		return futures.Done(b)
	}
	return s.ask(ctx, s.request(want))
}

// allocCharged is AllocAsync of a request that was checked and names a tenant.
func (s *Stream) allocCharged(ctx context.Context, want Request) futures.Future[Buffer] {
	r := s.request(want)
	if err := r.charge(want.Tenant, blockBytes(want.Bytes)); err != nil {
		return futures.Failed[Buffer](err)
	}
	if !r.Owes() && !s.queues(want.Wait) {
		if b, ok := s.allocNow(&want); ok {
			r.settle(b)
			if err := s.finish(b, &want); err != nil {
				return futures.Failed[Buffer](err)
			}
			return futures.Done(b)
		}
	}
	return s.ask(ctx, r)
}

// ask sends a request to the stream.
func (s *Stream) ask(ctx context.Context, r *single) futures.Future[Buffer] {
	f := r.promise.Future()
	r.unwatch = watch(ctx, &r.claim, &r.promise)
	s.ref.Call(&r.claim)
	return f
}

// watch puts the promise of a claim on the host and ends it with the context. The result ends the
// watch, on a goroutine of its own: a context's code is foreign, and the answer is given in a turn.
// It is nil if the context has no end. A claim that may wait tells its stream when it was
// cancelled, and whether a goroutine waits for it.
func watch[T any](ctx context.Context, c *claim, p *futures.Promise[T]) (unwatch func()) {
	h := c.stream.host
	p.On(h)
	if c.Waits {
		c.createdAt = time.Now()
		c.deadline, _ = ctx.Deadline()
		p.OnAwait(c.await)
		p.OnGiveUp(c.givenUp)
	}
	if c.Waits || c.tenant != nil {
		p.OnCancel(c.cancelled)
	}
	if ctx.Done() == nil {
		return nil
	}
	var stop func() bool
	// The context's end does not call Cancel: there is nothing left to unwatch.
	p.OnCancel(func() {
		c.cancelled() // first: a context's code is foreign, and may panic
		stop()
	})
	stop = afterFunc(ctx, func() {
		var none T
		if p.Complete(none, c.ended(ctx.Err())) {
			if c.Waits {
				c.stream.tally.EndWait()
			}
			c.cancelled()
		}
	})
	return func() { actors.Go(h, "", func() { stop() }) }
}

// afterFunc is context.AfterFunc, left to contexts that do it themselves, as that function's
// documentation has it: they spare a goroutine.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if own, ok := ctx.(interface{ AfterFunc(f func()) func() bool }); ok {
		return own.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// allocNow serves a checked request from a magazine, or inside the turn if no goroutine is in it.
func (s *Stream) allocNow(want *Request) (Buffer, bool) {
	b, ok := s.findNow(want)
	if ok && s.cache.Share() != 0 {
		s.sampler.sampled(b, want.Tag, want.Tenant)
	}
	return b, ok
}

func (s *Stream) findNow(want *Request) (Buffer, bool) {
	if want.sized() && !want.plain() {
		if slot, word := s.cache.Take(want.Bytes); slot != nil {
			return Buffer{slot, word, want.Bytes}, true
		}
	}
	if want.plain() {
		if slot, word := s.cache.TakeBack(want.Bytes); slot != nil {
			return Buffer{slot, word, want.Bytes}, true
		}
	}
	if !s.ref.TryEnter() {
		return Buffer{}, false
	}
	return s.allocInline(want.Bytes, want.Align)
}

// finish sets a buffer's tag and zeroes it, if its request says so, on the caller's goroutine. If that
// fails, finish frees the buffer.
func (s *Stream) finish(b Buffer, want *Request) error {
	if want.Tag != "" {
		b.slot.SetTag(b.word, b.bytes, want.Tag, time.Now())
	}
	if !want.Zero || b.bytes == 0 {
		return nil
	}
	var err error
	if s.cuda.begin() { // from here on Close waits for the call
		err = s.cuda.zero(b)
		s.cuda.done()
	} else {
		err = s.cuda.closed()
	}
	if err != nil {
		_ = b.Free()
	}
	return err
}

// allocInline runs the core inside the turn that the caller has entered, and leaves it. ok is false
// when the pool must help, or the turn panicked: the request that follows then gets the answer.
func (s *Stream) allocInline(bytes, align int64) (b Buffer, ok bool) {
	slot, left := s.searchHere(bytes, align, claims.First)
	if left != nil {
		slot = s.perform(slot, left, bytes, align)
	}
	if slot == nil {
		return Buffer{}, false
	}
	return Buffer{slot, slot.Word(), bytes}, true
}

// perform performs the effects of an allocation's turn, and searches again if they query fences.
func (s *Stream) perform(slot *magazine.Slot, left actors.Effects, bytes, align int64) *magazine.Slot {
	for next := claims.First; ; {
		if e, ok := left.(*effects); ok && slot == nil {
			next = e.searchAfter(next)
		} else {
			next = claims.First
		}
		s.ref.Perform(left)
		if next == claims.First || !s.ref.TryEnter() {
			return slot
		}
		if slot, left = s.searchHere(bytes, align, next); left == nil {
			return slot
		}
	}
}

// searchHere searches once in the turn that the caller has entered, and leaves the turn.
func (s *Stream) searchHere(bytes, align int64, before claims.Searched) (slot *magazine.Slot, left actors.Effects) {
	t := &s.turn
	through := false
	defer func() { // cheaper than Exit on the way without a panic: no recover
		if !through {
			slot = nil
			left, _ = s.ref.Fault(recover())
		}
	}()
	if !t.state.draining {
		if align <= sizeclass.UnitBytes { // search, without the call
			slot, _ = t.state.core.Alloc(max(bytes, 1), magazine.Hint())
		} else {
			slot, _ = t.state.core.AllocAligned(max(bytes, 1), align, false)
		}
		if slot == nil || before != claims.First {
			t.searches.seek(before, slot != nil, bytes)
		}
		if slot != nil {
			t.state.core.ServedHere()
			if t.state.core.Over() {
				t.state.inTransit.slot = slot
				t.lent.returnExcess(forCaller)
				t.state.inTransit.slot = nil
			}
		}
	}
	t.outdate()
	if t.hasEffects() {
		if e := t.detachOutdated(); e != nil {
			left = e
		}
	}
	s.ref.End()
	through = true
	return slot, left
}

// beyondCache serves the requests that no magazine serves.
type beyondCache Stream

// AllocBeyond implements magazine.AllocBeyond: it enters the turn, or else sends a request.
func (c *beyondCache) AllocBeyond(bytes int64) (*magazine.Slot, uint64, int64, error) {
	s := (*Stream)(c)
	if uint64(bytes) > uint64(s.limit.Load()) || s.cuda.closing.Load() { //nolint:gosec // a negative one is too large
		if err := s.check(bytes); err != nil {
			return nil, 0, 0, err
		}
	}
	var (
		slot *magazine.Slot
		word uint64
	)
	if s.cache.HasFreed() {
		slot, word = s.cache.TakeBack(bytes)
	}
	if slot == nil && s.ref.TryEnter() {
		var left actors.Effects
		if slot, left = s.searchHere(bytes, 0, claims.First); left != nil {
			slot = s.perform(slot, left, bytes, 0)
		}
		if slot != nil {
			word = slot.Word()
		}
	}
	if slot != nil {
		if s.cache.Share() != 0 { // checked here: this path is hot
			s.sampler.sampled(Buffer{slot, word, bytes}, "", nil)
		}
		return slot, word, bytes, nil
	}
	r := s.request(Request{Bytes: bytes})
	r.promise.On(s.host)
	s.ref.Call(&r.claim)
	b, err := r.promise.Await(context.Background())
	return b.slot, b.word, b.bytes, err
}

// AllocSampled implements magazine.AllocSampled.
func (c *beyondCache) AllocSampled(slot *magazine.Slot, word uint64, bytes int64) (*magazine.Slot, uint64, int64, error) {
	c.sampler.sampled(Buffer{slot, word, bytes}, "", nil)
	return slot, word, bytes, nil
}
