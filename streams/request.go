package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// Request says what is wanted. The zero value of each option costs nothing.
type Request struct {
	// Bytes is the size, 0 or more; a size of 0 gives a valid buffer that holds nothing.
	Bytes int64
	// Align is what the address shall be a multiple of, in bytes: a power of two up to the device's limit, or
	// 0. Up to 512 every buffer has it. Beyond, the buffer is cut from a free range with such a place, and
	// no magazine serves it.
	Align int64
	// Zero has the memory set to zero by a memset on the stream: work submitted to the stream afterwards
	// finds zeros. It is a driver call.
	Zero bool
	// Tag names the buffer in reports of what lives. It costs a heap allocation of some 30 bytes.
	Tag string
	// Wait lets the request wait for other people's frees where memory is short, until the end of its context, rather
	// than fail: see the package comment. One that memory serves at once costs nothing more.
	Wait bool
	// Priority decides who of those that wait is served first: higher ones are, and of equal ones the older.
	Priority int
	// Tenant is whom the request is charged to, beside its stream; nil: nobody. It costs a heap allocation or two.
	Tenant *Tenant
	// Reservation is what the request may draw from: see Reservation. Nil: nothing.
	Reservation *Reservation
}

// plain reports whether a magazine's block is all that is wanted.
func (r *Request) plain() bool { return r.sized() && !r.Zero && r.Tag == "" && r.Tenant == nil }

// sized reports whether a magazine's block is aligned as it is wanted.
func (r *Request) sized() bool {
	return uint64(r.Align) <= sizeclass.UnitBytes && r.Align&(r.Align-1) == 0
}

// AllocFor is Alloc with options. It waits for the driver where memory must be mapped, and for other
// people's frees only with Request.Wait. The end of ctx ends the request, and is the error then; memory that arrives too late stays
// in the cache. Errors: those of Alloc, *AlignError, the context's, and what the driver said to the
// memset, after which nothing is held, *CaptureError, and with Request.Wait *pool.DeadlockError and, in place of the context's
// error by itself, *pool.WaitError.
func (s *Stream) AllocFor(ctx context.Context, want Request) (Buffer, error) {
	return s.AllocAsync(ctx, want).Await(context.Background()) //nolint:contextcheck // ctx ends the request itself, and so the wait
}

// AllocAsync is AllocFor as a future: complete at once when the stream's own memory serves it, without a
// heap allocation if it needs no Tag. The end of ctx, or the future's Cancel, ends the request; memory that
// arrives too late stays in the cache. It does not wait.
func (s *Stream) AllocAsync(ctx context.Context, want Request) futures.Future[Buffer] {
	if s != nil && ctx != nil && want.plain() {
		if slot, word := s.cache.Take(want.Bytes); slot != nil {
			return futures.Done(Buffer{slot, word, want.Bytes})
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

func (s *Stream) request(want Request) *request {
	return &request{Request: want, hint: magazine.Hint(), begun: s.beginning(), from: s.here()}
}

// allocCharged is AllocAsync of a request that was checked and names a tenant.
func (s *Stream) allocCharged(ctx context.Context, want Request) futures.Future[Buffer] {
	r := s.request(want)
	if err := r.charge(want.Tenant, blockBytes(want.Bytes), want.Wait); err != nil {
		return futures.Failed[Buffer](err)
	}
	if !r.owes() && !s.queues(want.Wait) {
		if b, ok := s.allocNow(&want); ok {
			r.settle(s, b)
			if err := s.finish(b, &want); err != nil {
				return futures.Failed[Buffer](err)
			}
			return futures.Done(b)
		}
	}
	return s.ask(ctx, r)
}

// ask sends a request to the stream.
func (s *Stream) ask(ctx context.Context, r *request) futures.Future[Buffer] {
	want := &r.Request
	r.wait, r.priority, r.align = want.Wait, want.Priority, want.Align
	r.draws = want.Reservation
	f := r.promise.Future()
	r.unwatch = watch(ctx, s, r, &r.promise)
	s.ref.Call(r)
	return f
}

// watch puts the promise of a claim on the host and ends it with the context. The result ends the watch, on a goroutine of its
// own: it is foreign code, and who answers is in a turn. It is nil if the context has no end. Of a claim that may wait the stream
// is told when nobody wants it any more, and who waits for it.
func watch[T any](ctx context.Context, s *Stream, c claim, p *futures.Promise[T]) (unwatch func()) {
	h := s.host
	p.On(h)
	gone := c.state().refund
	if c.patient() != nil {
		c.patient().asked = time.Now()
		p.OnAwait(func(begun bool) { s.await(c, begun) })
		gone = func() {
			c.state().refund()
			s.ref.Tell(&withdrawn{claim: c})
		}
	}
	if c.patient() != nil || c.state().tenant != nil {
		p.OnCancel(gone)
	}
	if ctx.Done() == nil {
		return nil
	}
	var stop func() bool
	// Not Cancel for the context's end: then there is nothing left to unwatch.
	p.OnCancel(func() {
		stop()
		gone()
	})
	stop = after(ctx, func() {
		var none T
		if p.Complete(none, s.ended(c, ctx.Err())) {
			gone()
		}
	})
	return func() { actors.Go(h, "", func() { stop() }) }
}

// after is context.AfterFunc, left to contexts that do it themselves, as that function's documentation has it: they spare
// a goroutine.
func after(ctx context.Context, f func()) (stop func() bool) {
	if own, ok := ctx.(interface{ AfterFunc(f func()) func() bool }); ok {
		return own.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

func (s *Stream) checkRequest(r *Request) error {
	if limit := s.limit.Load(); r.Align < 0 || r.Align&(r.Align-1) != 0 || r.Align > limit {
		return &AlignError{r.Align, limit}
	}
	if err := s.names(r.Tenant, r.Reservation); err != nil {
		return err
	}
	return s.check(r.Bytes)
}

// names says why a request on the stream may not name a tenant or a reservation; nil names none.
func (s *Stream) names(t *Tenant, r *Reservation) error {
	if t != nil {
		if err := t.Of(s.pool); err != nil {
			return fmt.Errorf("%w: the tenant", err)
		}
	}
	if r != nil {
		if err := r.Of(s.pool); err != nil {
			return fmt.Errorf("%w: the reservation", err)
		}
	}
	return nil
}

// allocNow serves a request that was checked from a magazine or inside the turn, if that is free.
func (s *Stream) allocNow(want *Request) (Buffer, bool) {
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
	b, ok := s.allocInline(want.Bytes, want.Align)
	if ok {
		s.witness.hand(b, want.Tag, s.here())
	}
	return b, ok
}

// finish does to a buffer what its request wants beside memory, on the caller's goroutine. If it fails, the
// buffer is freed.
func (s *Stream) finish(b Buffer, want *Request) error {
	if want.Tag != "" {
		b.slot.SetTag(b.word, want.Tag)
	}
	if !want.Zero || b.bytes == 0 {
		return nil
	}
	s.calls.Add(1)
	defer s.calls.Add(-1)
	err := ErrClosed
	if !s.closing.Load() { // from here on Close waits for the call
		err = s.zero(b)
	}
	if err != nil {
		_ = b.Free()
	}
	return err
}

// zero sets a buffer to zero on its stream.
func (s *Stream) zero(b Buffer) error {
	if err := s.uncaptured("cuMemsetD8Async"); err != nil {
		return err
	}
	err := s.guard(func() error { return s.device.MemsetD8Async(b.Ptr(), 0, b.bytes, s.handle) })
	if err != nil {
		return fmt.Errorf("vram: zeroing a buffer of %d bytes: %w", b.bytes, err)
	}
	return nil
}

// fill is a buffer that is zeroed before its request is answered, outside the turn.
type fill struct {
	request *request
	buffer  Buffer
}

func (f fill) perform(s *Stream) {
	err := s.zero(f.buffer)
	s.calls.Add(-1)
	if err != nil {
		_ = f.buffer.Free()
		f.request.Fail(err)
	} else if !f.request.answer(f.buffer, nil) {
		_ = f.buffer.Free() // cancelled meanwhile
	}
}

// serve answers a request, or sends it to the pool and keeps it.
func (r *request) serve(s *Stream) {
	if !r.promise.Pending() {
		s.core.Note()
		return
	}
	if s.draining {
		r.Fail(ErrClosed)
		return
	}
	if r.owes() || s.behind(r) {
		s.park(r, nil)
		return
	}
	s.hand.request = r
	s.reach(beforeSearch)
	slot, pages := s.search(r.Bytes, r.Align, r.hint, r.wide)
	r.before = s.seek(r.before, slot != nil, r.Bytes)
	if slot != nil {
		r.complete(s, slot)
		return
	}
	if r.before != firstSearch {
		s.effects().again = append(s.effects().again, r)
	} else {
		r.wide = true
		r.refill = s.wait(r, pages, nil)
	}
	s.hand.request = nil
}

// complete answers a request with a slot, and reports whether it was not cancelled meanwhile.
func (r *request) complete(s *Stream, slot *magazine.Slot) bool {
	s.waited(&r.patience)
	s.core.Served(r.refill != 0)
	s.hand.slot = slot
	s.reach(beforeAnswer)
	b := Buffer{slot, slot.Word(), r.Bytes}
	if !r.settle(s, b) { // cancelled meanwhile, and refunded
		s.hand = hand{}
		s.core.Undo(slot)
		s.core.Note()
		return false
	}
	s.witness.hand(b, r.Tag, r.from)
	if r.Tag != "" {
		slot.SetTag(b.word, r.Tag)
	}
	if r.Zero && r.Bytes > 0 {
		s.calls.Add(1)
		s.effects().fills = append(s.effects().fills, fill{r, b})
		s.hand = hand{}
		s.shed(forCaller)
		return true
	}
	s.hand.slot = nil // with the answer it is the caller's, whatever happens behind that
	delivered := r.answer(b, nil)
	s.hand = hand{}
	if !delivered {
		s.core.Undo(slot) // cancelled meanwhile
		s.core.Note()
		return false
	}
	s.shed(forCaller)
	return true
}

// drop puts nothing back: a request has no slot but while it is being answered.
func (*request) drop(*Stream) {}

// refuse searches once more, since memory may have come home meanwhile, and then fails the request.
func (r *request) refuse(s *Stream, err error, last bool) {
	if !r.promise.Pending() {
		return
	}
	s.hand.request = r
	if !s.draining {
		s.reach(beforeSearch)
		slot, _ := s.search(r.Bytes, r.Align, r.hint, r.wide)
		if slot == nil {
			slot = s.alone(r.Bytes, r.Align)
		}
		if slot != nil {
			r.complete(s, slot)
			return
		}
	}
	if put := !last && (s.consult(r, err) || s.delay(r, err)) || s.park(r, err); !put {
		s.waited(&r.patience)
		r.Fail(s.shortage(r, err))
	}
	s.hand.request = nil
}
