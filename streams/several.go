package streams

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/stream/core"
)

// several is a claim for a batch. dst holds its slots; a missing one is a zero Buffer. With the
// answer the caller owns dst, and the claim drops it.
type several struct {
	claim
	dst            []Buffer
	bytes          []int64
	label          string // tag of its buffers
	missing        int64  // bytes to get from the pool
	booked         bool   // its blocks are in the books of parts: see core.Parts
	counted        bool   // a reading may have counted its blocks before they were booked
	requestedPages bool   // the pool
	byRanges       int    // slots from the stream's ranges
	byPool         int
	promise        futures.Promise[Batch]
}

func (r *several) unanswered() bool    { return r.promise.Pending() }
func (r *several) tag() string         { return r.label }
func (r *several) count() int          { return len(r.bytes) }
func (r *several) missingBytes() int64 { return r.missing }
func (r *several) blockBytes() int64   { return sumOfBlocks(r.bytes) }

func (r *several) requestedBytes() (sum int64) {
	for _, n := range r.bytes {
		sum += n
	}
	return sum
}

// batchStart describes the buffers that a batch got before it became a claim. They are booked as parts.
type batchStart struct {
	byRanges int  // of the stream
	counted  bool // see several.counted
}

// hold gives the claim the buffers that its caller found.
func (r *several) hold(dst []Buffer, f batchStart) {
	r.dst, r.byRanges, r.counted, r.booked = dst, f.byRanges, f.counted, true
}

// book books the blocks that it holds as parts, also those that were found since the last time.
func (r *several) book() {
	r.booked = true
	bookParts(r.stream.parts, r.dst)
}

// unbook takes the blocks from the books.
func (r *several) unbook() {
	if r.booked {
		r.booked = false
		sum := partsOf(r.dst)
		r.stream.parts.Unbook(&sum)
	}
}

func bookParts(p *core.Parts, dst []Buffer) {
	sum := partsOf(dst)
	p.Book(&sum)
}

func partsOf(dst []Buffer) (sum core.PartSum) {
	for i := range dst {
		if slot := dst[i].slot; slot != nil {
			sum.Add(slot.Magazine().UnitsOf(slot))
		}
	}
	return sum
}

// answer completes the promise, unless it was cancelled.
func (r *several) answer(b Batch, err error) bool {
	delivered := r.promise.Complete(b, err)
	if delivered && r.unwatch != nil {
		r.unwatch()
	}
	return delivered
}

// fail frees its blocks as callers do: after a panic the core cannot be trusted, and after the
// stream's end there is no turn.
func (r *several) fail(err error) {
	r.unbook()
	for i := range r.dst {
		slot := r.dst[i].slot
		if slot == nil {
			continue
		}
		units := slot.Magazine().UnitsOf(slot)
		if freed := !errors.Is(r.dst[i].Free(), ErrBadFree); freed && !r.counted {
			r.stream.parts.Drop(units)
		}
	}
	clear(r.dst)
	r.dst = nil
	r.answer(Batch{}, err)
}

func (r *several) putBack(s *searches) {
	s.state.core.Note() // other requests may have failed since
	r.unbook()
	for i := range r.dst {
		slot := r.dst[i].slot
		if slot == nil {
			continue
		}
		if r.counted {
			s.state.core.PutBackCounted(slot)
		} else {
			s.state.core.PutBack(slot)
		}
		r.dst[i] = Buffer{} // a panic on the way puts no block back twice
	}
	r.byRanges, r.byPool, r.counted = 0, 0, false
}

func (r *several) search(s *searches) bool {
	whole := r.fillIn(s)
	r.sum()
	return whole
}

// fillIn searches once and reports whether no slot is missing.
func (r *several) fillIn(s *searches) bool {
	r.unbook()
	defer r.book()
	served, whole := s.fillBatch(r.dst, r.bytes, r.hint)
	if r.requestedPages {
		r.byPool += served
	} else {
		r.byRanges += served
	}
	return whole
}

func (r *several) searchAlone(s *searches) bool {
	whole := r.fillAlone(s)
	r.sum()
	return whole
}

// fillAlone searches for blocks outside of spans and reports whether no slot is missing.
func (r *several) fillAlone(s *searches) bool {
	r.unbook()
	defer r.book()
	for i, n := range r.bytes {
		if r.dst[i].slot != nil {
			continue
		}
		slot := s.state.core.AllocPart(max(n, 1))
		if slot == nil {
			return false
		}
		r.dst[i] = Buffer{slot, slot.Word(), n}
		r.byPool++
	}
	return true
}

// sum sums the missing bytes.
func (r *several) sum() {
	r.missing = 0
	for i, n := range r.bytes {
		if r.dst[i].slot == nil {
			r.missing += n
		}
	}
}

func (r *several) searchParked(s *searches) bool {
	return s.state.core.Trial(func() bool { return r.fillIn(s) || r.fillAlone(s) }, func() { r.putBack(s) })
}

func (r *several) missingRuns(s *searches) []uint32 {
	r.requestedPages = true
	return slices.Clone(s.missing)
}

// parkedRuns are, the first time, the pages that the stream's unreturnable pages cannot serve; the
// second time all pages, since other requests may have taken those; then all pages in one run.
func (r *several) parkedRuns(s *searches) []uint32 {
	if r.Parks() == 1 {
		s.lent.releaseAll(s.lent.coveredOnly(inBackground))
		var runs []uint32
		s.state.core.Trial(func() bool {
			if !r.fillIn(s) {
				runs = slices.Clone(s.missing)
			}
			return false
		}, func() { r.putBack(s) })
		if runs != nil {
			return runs
		}
	}
	runs := s.allRuns(r.bytes)
	if r.Parks() <= 2 {
		return runs
	}
	var pages uint32
	for _, n := range runs { // best fit placed the blocks elsewhere than planned
		pages += n
	}
	return []uint32{pages}
}

func (r *several) deliver(s *searches) bool {
	s.state.reach(beforeAnswer)
	dst := r.dst
	if !r.settle(dst...) { // cancelled
		r.putBack(s)
		return false
	}
	s.wiring.sampler.allSampled(dst, r.label, r.tenant, r.from)
	r.name(dst...)
	// With the answer the caller owns them: fail must not free them any more.
	r.unbook()
	r.dst = nil
	if !r.answer(Batch{dst}, nil) { // cancelled
		r.dst = dst
		r.putBack(s)
		return false
	}
	s.state.core.ServedMany(r.byRanges, r.byPool)
	if r.mapped && r.byPool > 0 {
		s.state.core.ServedMapped()
	}
	return true
}
