package streams

import (
	"context"
	"fmt"
	"math/bits"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/batch"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// Batch is buffers that were allocated together.
type Batch struct{ buffers []Buffer }

// Buffers are those of the batch, in the order of the sizes. The slice is the caller's.
func (b Batch) Buffers() []Buffer { return b.buffers }

// Free frees all buffers of the batch as Stream.FreeBatch does.
func (b Batch) Free() error { return freeBatch(b.buffers) }

// AllocBatch fills dst with buffers of the sizes in bytes, all or none: with an error dst holds zero Buffers. It
// costs less than as many calls of Alloc, and buffers of one batch lie side by side where that can be had.
// It waits as Alloc does and makes no heap allocation when the stream's own memory serves it; where memory is
// missing, one message asks the pool for all of it. Errors: those of Alloc, for the batch as a whole;
// *BatchError, which names the size that cannot be; *LengthError.
func (s *Stream) AllocBatch(dst []Buffer, bytes []int64) error {
	if len(dst) != len(bytes) {
		clear(dst)
		return &LengthError{len(dst), len(bytes)}
	}
	if !s.opened() {
		clear(dst)
		return ErrNotOpen
	}
	if err := s.checkBatch(bytes); err != nil {
		clear(dst)
		return err
	}
	served, whole := s.batchNow(dst, bytes)
	if whole {
		s.witness.handAll(dst, s.here())
		return nil
	}
	if err := s.check(0); err != nil {
		release(dst)
		return err
	}
	r := &batching{dst: dst, bytes: bytes, hint: magazine.Hint(), byRanges: served, begun: s.beginning(), from: s.here()}
	r.promise.On(s.host)
	s.ref.Call(r)
	_, err := r.promise.Future().Await(context.Background())
	return err
}

// AllocBatchAsync is AllocBatch as a future, complete at once when the stream's own memory serves it. The end
// of ctx, or the future's Cancel, ends the request; memory that arrives too late stays in the cache. It does
// not wait, and does not keep bytes.
func (s *Stream) AllocBatchAsync(ctx context.Context, bytes []int64) futures.Future[Batch] {
	return s.AllocBatchForAsync(ctx, BatchRequest{Bytes: bytes})
}

// BatchRequest says what batch is wanted.
type BatchRequest struct {
	// Bytes are the sizes, 0 or more each.
	Bytes []int64
	// Wait and Priority are as in Request. A batch that waits holds nothing until it has all.
	Wait     bool
	Priority int
	// Tenant is whom all of the batch is charged to; nil: nobody.
	Tenant *Tenant
	// Reservation is as in Request.
	Reservation *Reservation
}

// AllocBatchFor is AllocBatch with options. The end of ctx ends the request, and is the error then; memory that arrives too
// late stays in the cache. It waits for the driver where memory must be mapped, and for other people's frees only with
// BatchRequest.Wait. Errors: those of AllocBatch, the context's, and with Wait *pool.DeadlockError and *pool.WaitError.
func (s *Stream) AllocBatchFor(ctx context.Context, want BatchRequest) (Batch, error) {
	return s.AllocBatchForAsync(ctx, want).Await(context.Background()) //nolint:contextcheck // ctx ends the request itself, and so the wait
}

// AllocBatchForAsync is AllocBatchFor as a future: see AllocBatchAsync.
func (s *Stream) AllocBatchForAsync(ctx context.Context, want BatchRequest) futures.Future[Batch] {
	bytes := want.Bytes
	if err := s.callable(ctx); err != nil {
		return futures.Failed[Batch](err)
	}
	if err := s.checkBatch(bytes); err != nil {
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
	if len(bytes) == 0 { // nothing to wait for, whoever waits before
		return futures.Done(Batch{})
	}
	dst := make([]Buffer, len(bytes))
	if want.Tenant == nil {
		served, whole := s.batchNow(dst, bytes)
		if whole {
			s.witness.handAll(dst, s.here())
			return futures.Done(Batch{dst})
		}
		return s.askBatch(ctx, want, &batching{dst: dst, byRanges: served})
	}
	r := &batching{dst: dst}
	if err := r.charge(want.Tenant, sumOfBlocks(bytes), want.Wait); err != nil {
		return futures.Failed[Batch](err)
	}
	if !r.owes() && !s.queues(want.Wait) {
		served, whole := s.batchNow(dst, bytes)
		if whole {
			r.settle(s, dst...)
			s.witness.handAll(dst, s.here())
			return futures.Done(Batch{dst})
		}
		r.byRanges = served
	}
	return s.askBatch(ctx, want, r)
}

// askBatch sends a batch to the stream, with what it has got.
func (s *Stream) askBatch(ctx context.Context, want BatchRequest, r *batching) futures.Future[Batch] {
	r.bytes, r.hint, r.from = append([]int64(nil), want.Bytes...), magazine.Hint(), s.here()
	r.begun = s.beginning()
	r.wait, r.priority, r.draws = want.Wait, want.Priority, want.Reservation
	f := r.promise.Future()
	r.unwatch = watch(ctx, s, r, &r.promise)
	s.ref.Call(r)
	return f
}

// FreeBatch frees buffers of any streams of the device, from any goroutine. Buffers that are not live are
// skipped, all others are freed. It does not wait and allocates nothing. The error is a *BatchError that names
// the first buffer that was not live, or ErrClosed after the device was closed.
func (s *Stream) FreeBatch(b []Buffer) error { return freeBatch(b) }

func freeBatch(b []Buffer) error {
	var frees magazine.Frees
	refused := BatchError{}
	for i := range b {
		err := ErrBadFree
		if b[i].slot != nil {
			err = frees.Free(b[i].slot, b[i].word)
		}
		if err == nil {
			continue
		}
		if refused.Count == 0 {
			refused.Index, refused.Err = i, err
		}
		refused.Count++
	}
	err := frees.Flush()
	if refused.Count > 0 {
		return &BatchError{refused.Index, refused.Count, refused.Err}
	}
	return err
}

// release frees those that there are and leaves zero Buffers.
func release(b []Buffer) {
	for i := range b {
		if b[i].slot != nil {
			_ = b[i].Free()
		}
	}
	clear(b)
}

func (s *Stream) checkBatch(bytes []int64) error {
	limit := s.limit.Load()
	var sum int64
	for i, n := range bytes {
		if n < 0 {
			return &BatchError{i, 1, fmt.Errorf("%w: %d bytes", ErrNegative, n)}
		}
		if n > limit {
			return &BatchError{i, 1, &SizeError{n, limit}}
		}
		if sum += n; sum > limit {
			return &SizeError{sum, limit}
		}
	}
	return nil
}

// batchNow fills dst from the magazines and, if the turn is free, from the stream's ranges. It reports
// how many came from those, and whether nothing is missing.
func (s *Stream) batchNow(dst []Buffer, bytes []int64) (served int, whole bool) {
	clear(dst)
	if s.takeBatch(dst, bytes) {
		return 0, true
	}
	if !s.ref.TryEnter() {
		return 0, false
	}
	served, whole, left := s.batchTurn(dst, bytes)
	if left != nil {
		s.ref.Perform(left)
	}
	return served, whole
}

// takeBatch fills dst from the magazines.
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

// batchTurn runs the core inside the turn that the caller has entered, and leaves it. What it has put into dst
// is dst's, also when it panics: the message that follows goes on from there, and counts all that was served.
func (s *Stream) batchTurn(dst []Buffer, bytes []int64) (served int, whole bool, left actors.Effects) {
	through, counted := false, false
	defer func() {
		if !through {
			if counted {
				s.core.UnservedMany(served)
			}
			whole = false
			left, _ = s.ref.Fault(recover())
		}
	}()
	if !s.draining {
		if served, whole = s.fillBatch(dst, bytes, magazine.Hint()); whole {
			s.core.ServedMany(served, 0)
			counted = true
		}
		s.shed(forCaller)
	}
	left = s.ref.Leave()
	through = true
	return served, whole, left
}

// fillBatch puts buffers in the places of dst that have none, from the magazines and the stream's ranges, the
// longest of each chunk first. It reports how many, and whether none is missing; s.runs then are the runs of
// pages that are.
func (s *Stream) fillBatch(dst []Buffer, bytes []int64, hint int) (served int, whole bool) {
	s.core.Drain()
	missing := batch.NewPacking(s.pool.PageBytes(), s.runs)
	for at := 0; at < len(bytes); at += batch.Width {
		end := min(at+batch.Width, len(bytes))
		chunk, into := bytes[at:end], dst[at:end]
		p := &s.plan
		var wanted uint64
		for i := range into {
			if into[i].slot == nil {
				wanted |= 1 << i
			}
		}
		p.Make(chunk, wanted)
		p.Order()
		groups := p.Groups()
		for g := range groups {
			i, left := groups[g].First(), int(groups[g].Count)
			got := s.core.AllocMany(groups[g].Units, left, hint, func(slot *magazine.Slot) {
				into[i] = Buffer{slot, slot.Word(), chunk[i]}
				if left--; left > 0 {
					i = p.Next(i)
				}
			})
			served += got
			if left > 0 {
				missing.Add(groups[g].Units, left)
			}
		}
	}
	s.runs = missing.Runs()
	return served, len(s.runs) == 0
}

// batching is a batch that did not end on the fast path. dst holds what it has got; what is missing is a
// zero Buffer. With the answer dst is the caller's: the batch has it no more, whatever happens afterwards.
type batching struct {
	actors.Link
	patience
	begun
	dst      []Buffer
	bytes    []int64
	hint     int
	missing  int64 // bytes that the pool was asked for
	parts    int64 // bytes of the blocks that it has got
	asked    bool  // the pool
	before   searching
	byRanges int // served before that
	byPool   int
	parks    int // how often it began to wait for other people's frees
	promise  futures.Promise[Batch]
	unwatch  func()
	from     site.Stack
}

func (r *batching) missingBytes() int64 { return r.missing }
func (r *batching) partBytes() int64    { return r.parts }
func (r *batching) blockBytes() int64   { return sumOfBlocks(r.bytes) }

func (r *batching) requestedBytes() (sum int64) {
	for _, n := range r.bytes {
		sum += n
	}
	return sum
}

// answer completes the batch, unless it was cancelled.
func (r *batching) answer(b Batch, err error) bool {
	delivered := r.promise.Complete(b, err)
	if delivered && r.unwatch != nil {
		r.unwatch()
	}
	return delivered
}

// Fail answers the batch in the stream's place and frees what it has got. Of a batch that was answered it does
// nothing: a turn may panic when it has answered, and two may report the panic.
func (r *batching) Fail(err error) {
	r.refund()
	release(r.dst)
	r.dst = nil
	r.answer(Batch{}, err)
}

// drop puts back what a batch has got that will not be served.
func (r *batching) drop(s *Stream) {
	s.core.Note() // others may have looked meanwhile
	for i := range r.dst {
		if slot := r.dst[i].slot; slot != nil {
			s.core.PutBack(slot)
		}
	}
	clear(r.dst)
	r.byRanges, r.byPool, r.parts = 0, 0, 0
}

// serve answers a batch, or sends what is missing to the pool and keeps the rest.
func (r *batching) serve(s *Stream) {
	if !r.promise.Pending() {
		r.drop(s)
		s.core.Note()
		return
	}
	if s.draining {
		r.drop(s)
		r.Fail(ErrClosed)
		return
	}
	if r.owes() || s.behind(r) {
		s.park(r, nil)
		return
	}
	s.hand.request = r
	s.reach(beforeSearch)
	whole := r.fill(s)
	r.count()
	r.before = s.seek(r.before, whole, r.missing)
	if whole {
		r.complete(s)
		return
	}
	if r.before != firstSearch {
		s.effects().again = append(s.effects().again, r)
	} else {
		r.asked = true
		s.wait(r, s.runs[0], append([]uint32(nil), s.runs[1:]...))
	}
	s.hand.request = nil
}

// count sums what is missing, and what is there.
func (r *batching) count() {
	r.missing, r.parts = 0, 0
	for i, n := range r.bytes {
		if slot := r.dst[i].slot; slot == nil {
			r.missing += n
		} else {
			r.parts += int64(slot.Magazine().UnitsOf(slot)) << sizeclass.UnitShift
		}
	}
}

// fill searches once and reports whether nothing is missing.
func (r *batching) fill(s *Stream) bool {
	served, whole := s.fillBatch(r.dst, r.bytes, r.hint)
	if r.asked {
		r.byPool += served
	} else {
		r.byRanges += served
	}
	return whole
}

// fillAlone searches for blocks of their own and reports whether nothing is missing.
func (r *batching) fillAlone(s *Stream) bool {
	for i, n := range r.bytes {
		if r.dst[i].slot != nil {
			continue
		}
		slot := s.core.AllocPart(max(n, 1))
		if slot == nil {
			return false
		}
		r.dst[i] = Buffer{slot, slot.Word(), n}
		r.byPool++
	}
	return true
}

// complete answers a batch that has all, and reports whether it was not cancelled meanwhile.
func (r *batching) complete(s *Stream) bool {
	s.waited(&r.patience)
	s.reach(beforeAnswer)
	dst := r.dst
	if !r.settle(s, dst...) { // cancelled meanwhile
		s.hand = hand{}
		r.drop(s)
		return false
	}
	s.witness.handAll(dst, r.from)
	r.dst = nil
	delivered := r.answer(Batch{dst}, nil)
	s.hand = hand{}
	if !delivered { // cancelled meanwhile
		r.dst = dst
		r.drop(s)
		s.core.Note()
		return false
	}
	r.dst = nil // the caller's: Fail has nothing to free any more
	s.core.ServedMany(r.byRanges, r.byPool)
	s.shed(forCaller)
	return true
}

// refuse searches once more, since memory may have come home meanwhile, and then fails the batch.
func (r *batching) refuse(s *Stream, err error, last bool) {
	if !r.promise.Pending() {
		r.drop(s)
		return
	}
	s.hand.request = r
	if !s.draining {
		s.reach(beforeSearch)
		if r.fill(s) || r.fillAlone(s) {
			r.complete(s)
			return
		}
	}
	r.count()
	if put := !last && (s.consult(r, err) || s.delay(r, err)) || s.park(r, err); !put {
		r.drop(s)
		s.waited(&r.patience)
		r.Fail(s.shortage(r, err))
	}
	s.hand.request = nil
}
