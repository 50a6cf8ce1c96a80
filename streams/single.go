package streams

import (
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// single is a claim for one buffer.
type single struct {
	claim
	Request
	slot           *magazine.Slot // found by the last search
	pages          [1]uint32      // missing after it
	requestedPages bool           // a Refill was sent
	wide           bool           // a grant did not serve its alignment: ask for more
	buffer         Buffer         // to be zeroed before the answer
	chance         uint32         // see sampler.drawn
	promise        futures.Promise[Buffer]
}

// request makes a claim for a buffer.
func (w *wiring) request(want Request) *single {
	r := &single{Request: want}
	r.Waits, r.priority, r.align, r.draws = want.Wait, want.Priority, want.Align, want.Reservation
	r.begin(w, r)
	r.chance, r.from = w.sampler.drawn(want.Bytes)
	return r
}

func (r *single) unanswered() bool      { return r.promise.Pending() }
func (r *single) tag() string           { return r.Tag }
func (*single) count() int              { return 1 }
func (r *single) missingBytes() int64   { return r.Bytes }
func (r *single) blockBytes() int64     { return blockBytes(r.Bytes) }
func (r *single) requestedBytes() int64 { return r.Bytes }
func (r *single) fail(err error)        { r.answer(Buffer{}, err) }

// answer completes the promise, unless it was cancelled.
func (r *single) answer(b Buffer, err error) bool {
	delivered := r.promise.Complete(b, err)
	if delivered && r.unwatch != nil {
		r.unwatch()
	}
	return delivered
}

func (r *single) search(s *searches) bool {
	r.slot, r.pages[0] = s.search(r.Bytes, r.Align, r.hint, r.wide)
	return r.slot != nil
}

func (r *single) searchAlone(s *searches) bool {
	r.slot = s.searchAlone(r.Bytes, r.Align)
	return r.slot != nil
}

func (r *single) searchParked(s *searches) bool { return r.search(s) || r.searchAlone(s) }

func (r *single) missingRuns(*searches) []uint32 {
	r.wide, r.requestedPages = true, true
	return r.pages[:]
}

func (r *single) parkedRuns(s *searches) []uint32 {
	r.wide = true
	find := func() *magazine.Slot {
		r.search(s)
		return r.slot
	}
	if s.state.core.Probe(find) { // no memory was freed since the last search, but a block outside of spans may fit
		r.pages[0] = 1
	}
	return r.pages[:]
}

// putBack does nothing: a single claim has a slot only while it is being answered.
func (*single) putBack(*searches) {}

func (r *single) deliver(s *searches) bool {
	slot := r.slot
	s.state.core.Served(r.requestedPages)
	s.state.inTransit.slot = slot
	s.state.reach(beforeAnswer)
	b := Buffer{slot, slot.Word(), r.Bytes}
	if !r.settle(b) { // cancelled and refunded
		return r.undo(s, slot)
	}
	if r.from != nil {
		s.wiring.sampler.allocated(b, r.Tag, r.tenant, r.chance, r.from)
	}
	r.name(b)
	s.state.inTransit.slot = nil // from here on the caller owns it, or the effect
	if r.Zero && r.Bytes > 0 {
		s.wiring.cuda.order()
		r.buffer = b
		effect.Push[filler](&s.state.effects().fills, r)
		r.countMapped(s)
		return true
	}
	if !r.answer(b, nil) {
		return r.undo(s, slot)
	}
	r.countMapped(s)
	return true
}

// countMapped counts a claim with pages that the driver mapped for it. The claim has its answer: nothing undoes
// the count.
func (r *single) countMapped(s *searches) {
	if r.mapped && r.requestedPages {
		s.state.core.ServedMapped()
	}
}

// undo puts back a slot that was counted as served: the claim was cancelled.
func (r *single) undo(s *searches, slot *magazine.Slot) bool {
	s.state.inTransit.slot = nil
	s.state.core.Undo(slot)
	return false
}

// fill implements filler.
func (r *single) fill(h *cudaStream) {
	err := h.zero(r.buffer)
	h.done()
	if err != nil {
		_ = r.buffer.Free()
		r.Fail(err)
	} else if !r.answer(r.buffer, nil) {
		_ = r.buffer.Free() // cancelled
	}
}
