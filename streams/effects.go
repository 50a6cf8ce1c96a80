package streams

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/pool"
)

// effects has the actions that a turn leaves to be performed after it, in field order.
type effects struct {
	stream      *wiring
	spare       func(*effects)              // stores them for reuse by a later turn
	returns     effect.List[outgoingReturn] // to the pool
	replies     effect.List[*callback]      // to calls that wait until the pool has the returns
	recordFence poolcore.Fence              // fence to record for later Returns; 0: none
	discards    effect.List[fence.Mark]     // unused marks
	withdrawals effect.List[uint64]         // parked claims, by token
	refills     effect.List[outgoingRefill]
	blocks      effect.List[poolcore.Block]
	suspends    bool // report suspensions to the pool
	offers      effect.List[answeredOffer]
	fills       effect.List[filler]
	fences      effect.List[fencing]
	advanced    bool                 // a fence has passed: pending memory may be free
	sought      claims.Searched      // kind of the caller's next search, if there is one
	again       effect.List[message] // claims to serve again after the fence queries
	reclaim     *reclaim             // to be answered after the fence queries
	consults    effect.List[consulting]
	waitFences  bool
	end         bool
}

// outgoingReturn is a Return that is not sent yet.
type outgoingReturn struct {
	poolcore.Return
	mark     fence.Mark // of a fence that was recorded before, with its first Return
	recorded bool       // the fence was recorded before this Return
}

// outgoingRefill is a Refill that is not sent yet, and the claim that it parks, or nil.
type outgoingRefill struct {
	poolcore.Refill
	parks parkedClaim
}

// parkedClaim is a claim that waits in the pool.
type parkedClaim interface {
	Tenant() *pool.Tenant
	Take(take func(bytes int64) bool) (taken, gone bool)
	isWanted() bool
	blocked() bool
	changed() message // message that has the stream look at it again
}

// answeredOffer is the answer to an offer.
type answeredOffer struct {
	token uint64
	taken bool
}

// filler is a claim whose buffer is zeroed before the answer.
type filler interface{ fill(h *cudaStream) }

// consulting is a refusal that goes to the caller's handler, or, if it has a claim, to the caller.
type consulting struct {
	token   uint64
	short   *pool.OutOfMemoryError // nil: the refusal is another error
	largest *[]LiveBuffer          // of the refusal, to be filled in first
	refused failingClaim           // nil: the refusal goes to the handler
	failed  error                  // answer to the claim
}

// failingClaim is a claim that fails.
type failingClaim interface{ Fail(err error) }

// Perform implements actors.Effects. It takes each effect from its list before it performs it: a panic costs
// that effect, and Perform performs the rest.
func (e *effects) Perform() {
	finished := false
	defer func() {
		if !finished { // then the panic continues
			e.Perform()
		}
	}()
	for e.performReturn() || e.performRequest() || e.performLook() || e.finish() {
	}
	finished = true
	e.recycle()
}

// performReturn performs the next effect that moves memory out of the stream. It reports whether there was one.
func (e *effects) performReturn() bool {
	w := e.stream
	if r, ok := effect.Pop(&e.returns); ok {
		if mark := e.record(&r); len(r.Runs) > 0 || r.Answer || r.Stirred || r.Kept > 0 {
			w.pool.Return(r.Return, mark)
		}
		return true
	}
	if e.reply(nil) {
		return true
	}
	if f := e.recordFence; f != 0 {
		e.recordFence = 0
		mark, err := w.cuda.mark()
		w.cuda.done()
		w.ref.Call(&recorded{stream: w, fence: f, mark: mark, failed: err != nil})
		return true
	}
	if m, ok := effect.Pop(&e.discards); ok {
		w.cuda.discard(m)
		return true
	}
	return false
}

// reply answers the next call that waits for the returns. It reports whether there was one.
func (e *effects) reply(err error) bool {
	c, ok := effect.Pop(&e.replies)
	if ok {
		c.promise.Complete(struct{}{}, err)
	}
	return ok
}

// performRequest sends the next message to the pool that returns no memory. It reports whether there was one.
func (e *effects) performRequest() bool {
	w := e.stream
	if token, ok := effect.Pop(&e.withdrawals); ok {
		w.pool.Withdraw(w.id, token)
		return true
	}
	if r, ok := effect.Pop(&e.refills); ok {
		e.refill(r)
		return true
	}
	if b, ok := effect.Pop(&e.blocks); ok {
		w.pool.Block(b)
		return true
	}
	if e.suspends {
		e.suspends = false
		w.suspensions.report()
		return true
	}
	if o, ok := effect.Pop(&e.offers); ok {
		w.pool.AnswerOffer(w.id, o.token, o.taken)
		return true
	}
	return false
}

// refill sends a Refill. If the claim changed before the pool knew of it, refill reports the change
// again.
func (e *effects) refill(r outgoingRefill) {
	w := e.stream
	if !r.Place.Unready {
		w.pool.Refill(w.client, r.Refill)
	} else {
		w.pool.RefillLater(w.client, r.Refill, r.parks)
	}
	switch c := r.parks; {
	case c == nil:
	case !c.isWanted():
		w.pool.Withdraw(w.id, r.Token)
	case c.blocked() != r.Place.Blocked:
		w.ref.Tell(c.changed())
	}
}

// performLook performs the next effect about fences, and then the effects that wait for them. It reports
// whether there was one.
func (e *effects) performLook() bool {
	w := e.stream
	if f, ok := effect.Pop(&e.fills); ok {
		f.fill(&w.cuda)
		return true
	}
	if f, ok := effect.Pop(&e.fences); ok {
		e.advanced = f.perform() || e.advanced
		return true
	}
	if e.advanced {
		if e.advanced = false; e.sought == claims.First {
			w.peer.entry.fencePassed()
		}
		return true
	}
	if c, ok := effect.Pop(&e.again); ok {
		w.ref.Call(c)
		return true
	}
	return false
}

// finish performs the next of the other effects. It reports whether there was one.
func (e *effects) finish() bool {
	w := e.stream
	if r := e.reclaim; r != nil {
		e.reclaim = nil
		w.ref.Call(r)
		return true
	}
	if c, ok := effect.Pop(&e.consults); ok {
		if l := w.peers.listed(); c.refused != nil && l != nil && !w.completes(c.short) {
			w.refuse(c, l.buffers())
		} else { // not here: goroutines of other streams may wait for this stream's turns
			w.spawn(func() { w.consult(c) })
		}
		return true
	}
	if e.waitFences {
		e.waitFences = false
		w.spawn(func() {
			watched := false
			defer func() { // also where a function of the caller, in the effects of a turn, ends the goroutine
				if !watched {
					w.ref.Call(&fenceWaited{})
				}
			}()
			watched = w.peers.watchFences(w.host)
		})
		return true
	}
	if e.end {
		e.end = false
		w.ref.Stop(w.cuda.closed())
		return true
	}
	return false
}

// recycle empties the effects and stores them for reuse.
func (e *effects) recycle() {
	effect.Reset(&e.returns)
	effect.Reset(&e.replies)
	effect.Reset(&e.discards)
	effect.Reset(&e.withdrawals)
	effect.Reset(&e.refills)
	effect.Reset(&e.blocks)
	effect.Reset(&e.offers)
	effect.Reset(&e.fills)
	effect.Reset(&e.fences)
	effect.Reset(&e.again)
	effect.Reset(&e.consults)
	e.sought = claims.First
	e.spare(e)
}

// record records the fence of a Return. An answer to a reclaim request needs none if the CUDA stream
// is idle: the pages were free before the query, so that their work has finished, and the request
// that needs them waits for no poll. If the driver refuses the record, it waits for the stream's
// work instead. If that fails too, or the stream is being captured, no other stream may have the
// pages: the stream keeps them, without a fence, until the next reclaim request.
func (e *effects) record(r *outgoingReturn) (mark fence.Mark) {
	if r.Fence == 0 || r.recorded {
		return r.mark
	}
	h := &e.stream.cuda
	defer h.done() // last: Close destroys the CUDA stream then
	if r.Answer && h.idle() {
		r.Fence = 0
		return fence.Mark{}
	}
	mark, err := h.mark()
	if err == nil {
		return mark
	}
	var captured *CaptureError
	if !errors.As(err, &captured) && h.synchronize() == nil {
		r.Fence = 0
		return fence.Mark{}
	}
	kept := &granted{stream: e.stream, runs: r.Runs, kept: true}
	r.Kept, r.Runs, r.Fence = len(r.Runs), nil, 0
	e.stream.ref.Call(kept)
	return fence.Mark{}
}

// searchAfter returns the kind of the search that follows a search that found nothing. First: no search follows.
func (e *effects) searchAfter(before claims.Searched) claims.Searched {
	switch {
	case e.sought != claims.First:
		return e.sought
	case len(effect.Left(&e.fences)) > 0 && before == claims.First:
		return claims.AfterFences
	default:
		return claims.First
	}
}

// refuse answers the claim of a refusal with an error that names these buffers.
func (w *wiring) refuse(c consulting, largest []LiveBuffer) {
	if *c.largest == nil {
		*c.largest = largest
	}
	c.refused.Fail(c.failed)
}

// consult completes a refusal, and answers its claim, or calls the caller's handler and tells the
// stream its answer. The claim has its answer also where a function of the caller ends the goroutine.
func (w *wiring) consult(c consulting) {
	if c.refused != nil {
		defer func() { w.refuse(c, *c.largest) }()
	} else {
		defer w.handle(c)
	}
	w.peers.fill(c.largest, w.host, true)
	if w.completes(c.short) {
		w.complete(c.short)
	}
}

// handle calls the caller's handler, and tells the stream its answer. A handler that does not return refuses.
func (w *wiring) handle(c consulting) {
	answer := &consulted{token: c.token, err: c.short}
	var failed error
	defer func() {
		if failed != nil {
			answer.err = errors.Join(c.short, failed)
		}
		w.ref.Call(answer)
	}()
	answer.retry = w.askHandler(c.short, &failed)
}

// askHandler returns the answer of the caller's handler. Where the handler does not return, it is false, and failed says why.
func (w *wiring) askHandler(short *pool.OutOfMemoryError, failed *error) (retry bool) {
	returned := false
	defer func() {
		if !returned {
			*failed = fmt.Errorf("vram: OnOutOfMemory panicked: %v", w.panics.Here("OnOutOfMemory", recover()))
		}
	}()
	retry = w.handler(short)
	returned = true
	return retry
}

// completes reports whether a refusal has facts to come.
func (w *wiring) completes(short *pool.OutOfMemoryError) bool {
	return w.complete != nil && short != nil && short.Cause != nil
}

// completed completes an error outside every turn, if it is a refusal.
func (w *wiring) completed(err error) error {
	if short := asOutOfMemory(err); w.completes(short) {
		w.complete(short)
	}
	return err
}
