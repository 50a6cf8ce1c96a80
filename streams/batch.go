package streams

import (
	"context"
	"math/bits"
	"slices"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/batch"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// AllocBatch fills dst with buffers of the sizes in bytes, all or none: with an error dst holds
// zero Buffers. It costs less than as many calls of Alloc, and buffers of one batch lie side by
// side where possible. It waits as Alloc does and makes no heap allocation when the stream's own
// memory serves it; where memory is missing, one message asks the pool for all of it. Errors: those
// of Alloc, for the batch as a whole; *BatchError, which names the invalid size; *LengthError;
// *CaptureError while the stream is being captured, since the graph would not keep the memory: call
// cuda.Context.AllocBatch there.
func (s *Stream) AllocBatch(dst []Buffer, bytes []int64) error {
	if len(dst) != len(bytes) {
		clear(dst)
		err := &LengthError{len(dst), len(bytes)}
		if !s.opened() {
			return err
		}
		return s.tally.Refuse(err)
	}
	if !s.opened() {
		clear(dst)
		return ErrNotOpen
	}
	if err := s.batchable(bytes); err != nil {
		clear(dst)
		return err
	}
	found, whole := s.batchNow(dst, bytes)
	if whole {
		s.sampler.allSampled(dst, "", nil, s.sampler.here())
		return nil
	}
	r := &several{bytes: bytes}
	r.begin(&s.wiring, r)
	r.hold(dst, found)
	r.promise.On(s.host)
	if err := s.check(0); err != nil {
		r.dst = slices.Clone(dst) // a turn puts them back, if need be later
		clear(dst)
		r.answer(Batch{}, err)
		s.ref.Call(&r.claim)
		return err
	}
	r.from = s.sampler.here()
	s.ref.Call(&r.claim)
	_, err := r.promise.Await(context.Background())
	return err
}

// AllocBatchAsync is AllocBatch as a future, complete immediately when the stream's own memory serves
// it. The end of ctx, or the future's Cancel, ends the request; memory that arrives too late stays
// in the cache. It does not wait, and does not keep bytes.
func (s *Stream) AllocBatchAsync(ctx context.Context, bytes []int64) futures.Future[Batch] {
	return s.AllocBatchForAsync(ctx, BatchRequest{Bytes: bytes})
}

// BatchRequest is a request for a batch.
type BatchRequest struct {
	// Bytes are the sizes, 0 or more each.
	Bytes []int64
	// Wait and Priority are as in Request. A batch that waits holds nothing until it has all.
	Wait     bool
	Priority int
	// Tag names the batch's buffers in reports of live buffers. It costs a heap allocation of 64 bytes for
	// each of them.
	Tag string
	// Tenant is charged with the whole batch; nil: no tenant.
	Tenant *pool.Tenant
	// Reservation is as in Request.
	Reservation *pool.Reservation
}

// AllocBatchFor is AllocBatch with options. The end of ctx ends the request, and is the error then;
// memory that arrives too late stays in the cache. It waits for the driver where memory must be
// mapped, and for other callers' frees only with BatchRequest.Wait. Errors: the errors of AllocBatch,
// the context's, and with Wait *pool.DeadlockError and *pool.WaitError.
func (s *Stream) AllocBatchFor(ctx context.Context, want BatchRequest) (Batch, error) {
	return s.AllocBatchForAsync(ctx, want).Await(context.Background()) //nolint:contextcheck // ctx ends the request itself, and so the wait
}

// AllocBatchForAsync is AllocBatchFor as a future: see AllocBatchAsync, and for Wait AllocAsync.
func (s *Stream) AllocBatchForAsync(ctx context.Context, want BatchRequest) futures.Future[Batch] {
	bytes := want.Bytes
	if err := s.callable(ctx); err != nil {
		return futures.Failed[Batch](err)
	}
	if err := s.batchable(bytes); err != nil {
		return futures.Failed[Batch](err)
	}
	if err := ctx.Err(); err != nil {
		return futures.Failed[Batch](err)
	}
	if err := s.check(0); err != nil {
		return futures.Failed[Batch](err)
	}
	if err := s.names(want.Tenant, want.Reservation); err != nil {
		return futures.Failed[Batch](err)
	}
	if len(bytes) == 0 { // nothing to wait for, also if others wait
		return futures.Done(Batch{})
	}
	dst := make([]Buffer, len(bytes))
	if want.Tenant == nil {
		found, whole := s.batchNow(dst, bytes)
		if whole {
			s.sampler.allSampled(dst, want.Tag, want.Tenant, s.sampler.here())
			nameAll(dst, want.Tag)
			return futures.Done(Batch{dst})
		}
		r := &several{}
		r.hold(dst, found)
		return s.askBatch(ctx, want, r)
	}
	r := &several{dst: dst}
	r.stream, r.Waits = &s.wiring, want.Wait
	if err := r.charge(want.Tenant, sumOfBlocks(bytes)); err != nil {
		return futures.Failed[Batch](err)
	}
	if !r.Owes() && !s.queues(want.Wait) {
		found, whole := s.batchNow(dst, bytes)
		if whole {
			r.settle(dst...)
			s.sampler.allSampled(dst, want.Tag, want.Tenant, s.sampler.here())
			nameAll(dst, want.Tag)
			return futures.Done(Batch{dst})
		}
		r.hold(dst, found)
	}
	return s.askBatch(ctx, want, r)
}

// askBatch sends a batch to the stream, with the slots that it holds already.
func (s *Stream) askBatch(ctx context.Context, want BatchRequest, r *several) futures.Future[Batch] {
	r.bytes, r.label = append([]int64(nil), want.Bytes...), want.Tag
	r.Waits, r.priority, r.draws = want.Wait, want.Priority, want.Reservation
	r.begin(&s.wiring, r)
	r.from = s.sampler.here()
	f := r.promise.Future()
	r.unwatch = watch(ctx, &r.claim, &r.promise)
	s.ref.Call(&r.claim)
	return f
}

// batchable returns the error of sizes, or of a batch in a capture.
func (s *Stream) batchable(bytes []int64) error {
	if s.cuda.announcement.announced() {
		return s.tally.Refuse(&CaptureError{Stream: s.ID(), Call: "Stream.AllocBatch"})
	}
	return s.checkBatch(bytes)
}

// FreeBatch frees buffers of any streams of the device, from any goroutine. Buffers that are not
// live are skipped, all others are freed. It does not wait and allocates nothing. The error is a
// *BatchError that names the first buffer that was not live, or ErrClosed after the device was
// closed.
func (s *Stream) FreeBatch(b []Buffer) error { return freeBatch(b) }

// batchNow fills dst from the magazines and, if the turn is free, from the stream's ranges. It
// reports whether no buffer is missing; if one is, those in dst are booked as parts.
func (s *Stream) batchNow(dst []Buffer, bytes []int64) (f batchStart, whole bool) {
	return s.batchSince(s.parts.Reading(), dst, bytes)
}

// batchSince is batchNow after a reading of the books.
func (s *Stream) batchSince(reading uint64, dst []Buffer, bytes []int64) (f batchStart, whole bool) {
	clear(dst)
	if s.takeBatch(dst, bytes) {
		return batchStart{}, true
	}
	if !s.ref.TryEnter() {
		bookParts(s.parts, dst)
		return batchStart{counted: s.parts.Seen(reading)}, false
	}
	f, whole, left := s.batchTurn(dst, bytes, reading)
	if left != nil {
		s.ref.Perform(left)
	}
	return f, whole
}

// takeBatch fills dst from the magazines. It reports whether no buffer is missing.
func (s *Stream) takeBatch(dst []Buffer, bytes []int64) (whole bool) {
	var p batch.Plan
	whole = true
	for at := 0; at < len(bytes); at += batch.Width {
		end := min(at+batch.Width, len(bytes))
		chunk, into := bytes[at:end], dst[at:end]
		p.Make(chunk, batch.All)
		groups := p.Groups()
		for g := range groups {
			m, taken := s.cache.TakeMany(uint64(groups[g].Units), int(groups[g].Count))
			if whole = whole && bits.OnesCount64(taken) == int(groups[g].Count); taken == 0 {
				continue
			}
			for i := groups[g].First(); ; i = p.Next(i) {
				slot := m.At(bits.TrailingZeros64(taken))
				into[i] = Buffer{slot, slot.Word(), chunk[i]}
				if taken &= taken - 1; taken == 0 {
					break
				}
			}
		}
	}
	return whole
}

// batchTurn runs the core inside the turn that the caller has entered, and leaves the turn. Buffers
// in dst stay there, also when it panics: the message that follows continues with them, and counts
// all that were served.
func (s *Stream) batchTurn(dst []Buffer, bytes []int64, reading uint64) (f batchStart, whole bool, left actors.Effects) {
	t := &s.turn
	through, counted, booked := false, false, false
	book := func() {
		bookParts(s.parts, dst)
		f.counted, booked = s.parts.Seen(reading), true
	}
	defer func() {
		if !through {
			if counted {
				t.state.core.UnservedMany(f.byRanges)
			}
			if whole = false; !booked {
				book()
			}
			left, _ = s.ref.Fault(recover())
		}
	}()
	if !t.state.draining {
		if f.byRanges, whole = t.searches.fillBatch(dst, bytes, magazine.Hint()); whole {
			t.state.core.ServedMany(f.byRanges, 0)
			counted = true
		}
		t.lent.returnExcess(forCaller)
	}
	if !whole {
		book()
	}
	left = s.ref.Leave()
	through = true
	return f, whole, left
}
