package core

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/internal/watermark"
)

// ranges is the memory that the pool lent: a heap of free ranges and used blocks, and their addresses.
//
// Optional parts subscribe functions to the events below. An event without a subscriber costs one comparison.
type ranges struct {
	heap      *heap.Heap
	base      cudadrv.Ptr
	places    []cudadrv.Ptr // nil: pages are contiguous from base on
	pageUnits uint32
	taken     []Run // scratch of takePages
	kept      bool  // no page leaves

	onPlace  []func(block int32, o occupant) // a block gets an occupant
	onFree   []func(block int32)             // a block loses its occupant
	onGrant  []func(Run)                     // the pool lent pages
	onReturn []func(Run)                     // pages return to the pool; their places are still valid

	heldPeak watermark.Mark
}

// occupant is the user of a block: a slot, or a whole magazine.
type occupant struct {
	slot     *magazine.Slot
	magazine *magazine.Magazine
}

// placed tells subscribers that a block gets an occupant.
func (r *ranges) placed(block int32, o occupant) {
	if r.onPlace != nil { // inlined; most streams have no subscriber
		r.tellPlaced(block, o)
	}
}

func (r *ranges) tellPlaced(block int32, o occupant) {
	for _, tell := range r.onPlace {
		tell(block, o)
	}
}

// vacate frees the block of a slot.
func (r *ranges) vacate(s *magazine.Slot) {
	r.free(s.Block)
	s.Block = heap.None
}

// free frees a block that had an occupant.
func (r *ranges) free(block int32) {
	r.notifyFreed(block)
	r.heap.Give(block)
}

// notifyFreed tells subscribers that a used block is becoming free. Call it before Give.
func (r *ranges) notifyFreed(block int32) {
	if r.onFree != nil {
		r.tellFreed(block)
	}
}

func (r *ranges) tellFreed(block int32) {
	for _, tell := range r.onFree {
		tell(block)
	}
}

// grant adds pages that the pool lent.
func (r *ranges) grant(run Run) {
	for _, tell := range r.onGrant {
		tell(run)
	}
	r.heap.Grant(run.First, run.Pages)
	r.heldPeak.Raise(r.heldUnits())
}

// heldUnits returns the units of the pages that the pool lent.
func (r *ranges) heldUnits() int64 { return int64(r.heap.HeldUnits()) } //nolint:gosec // units of one arena

// takePages takes up to limit whole pages out of the heap until more reports false. within narrows each free
// run to the pages that may leave; nil: all may. The result is valid until the next call.
func (r *ranges) takePages(limit uint32, within func(first, end uint32) (from, to uint32), more func() bool) []Run {
	r.taken = r.taken[:0]
	return r.takeMore(limit, within, more)
}

// takeMore is takePages, and appends to its last result.
func (r *ranges) takeMore(limit uint32, within func(first, end uint32) (from, to uint32), more func() bool) []Run {
	visit := func(first, pages uint32) bool {
		r.leave(first, pages)
		return more()
	}
	if r.kept {
		return r.taken
	}
	if within == nil {
		r.heap.TakePages(limit, visit)
		return r.taken
	}
	for { // the rest of a range may hold more pages that may leave
		n := r.heap.TakeSomePages(limit, within, visit)
		if n == 0 || !more() {
			break
		}
		limit -= n
	}
	return r.taken
}

// takeLongest takes the pages of the longest free ranges out of the heap until they add up to so many. If
// whole is set it takes all of the last range.
func (r *ranges) takeLongest(pages uint32, whole bool, within func(first, end uint32) (from, to uint32)) []Run {
	r.taken = r.taken[:0]
	if r.kept {
		return nil
	}
	r.heap.TakeLongest(pages, whole, within, r.leave)
	return r.taken
}

// takeFitting takes the pages of about the shortest free range that has so many out of the heap, or nothing.
func (r *ranges) takeFitting(pages uint32) []Run {
	r.taken = r.taken[:0]
	if r.kept {
		return nil
	}
	if first, count, ok := r.heap.TakeFitting(pages); ok {
		r.leave(first, count)
	}
	return r.taken
}

// leave adds a run to the taken ones and tells subscribers.
func (r *ranges) leave(first, pages uint32) {
	run := Run{First: first, Pages: pages}
	for _, tell := range r.onReturn {
		tell(run)
	}
	r.taken = append(r.taken, run)
}

// freePages returns upper bounds of the pages that may leave in all free ranges, and in the longest.
func (r *ranges) freePages() (all, longest uint32) {
	if r.kept {
		return 0, 0
	}
	return uint32(r.heap.FreeUnits() / uint64(r.pageUnits)), r.heap.LongestBound() / r.pageUnits //nolint:gosec // of one arena
}

// address returns the address of a block.
func (r *ranges) address(block int32) cudadrv.Ptr {
	offset := r.heap.Offset(block)
	if r.places != nil {
		return r.placeOf(offset)
	}
	return r.base + cudadrv.Ptr(offset)<<sizeclass.UnitShift
}

// placeOf returns the address of an offset in a plain segment.
func (r *ranges) placeOf(offset uint32) cudadrv.Ptr {
	return r.places[offset/r.pageUnits] + cudadrv.Ptr(offset%r.pageUnits)<<sizeclass.UnitShift
}

// takeAligned takes a block whose address is a multiple of that many units, or heap.None.
func (r *ranges) takeAligned(units, alignUnits uint32) int32 {
	if r.places == nil {
		return r.heap.TakeAligned(units, alignUnits, -uint32(r.base>>sizeclass.UnitShift)&(alignUnits-1))
	}
	return r.heap.TakeAlignedBy(units, alignUnits, func(offset uint32) uint32 {
		return offset - uint32(r.placeOf(offset)>>sizeclass.UnitShift)
	})
}

// pagesOf returns the pages of a block.
func (r *ranges) pagesOf(block int32) Run {
	offset := r.heap.Offset(block)
	first := offset / r.pageUnits
	return Run{First: first, Pages: (offset+r.heap.Units(block)-1)/r.pageUnits - first + 1}
}

// pagesFor returns how many pages hold that many units.
func (r *ranges) pagesFor(units uint64) uint32 {
	return uint32((units + uint64(r.pageUnits) - 1) / uint64(r.pageUnits)) //nolint:gosec // of one arena
}

func (r *ranges) pageBytes() int64 { return int64(r.pageUnits) << sizeclass.UnitShift }

// usedUnits returns the units in no free range.
func (r *ranges) usedUnits() uint64 { return r.heap.HeldUnits() - r.heap.FreeUnits() }

// HeldBytes returns the bytes of the pages that the pool lent.
func (r *ranges) HeldBytes() int64 { return int64(r.heap.HeldUnits() << sizeclass.UnitShift) }

// UsedBytes returns the bytes of the stream's pages in no free range: in buffers, and cached in magazines.
func (r *ranges) UsedBytes() int64 { return int64(r.usedUnits()) << sizeclass.UnitShift }

// freePageBytes returns the bytes of the whole pages in free ranges.
func (r *ranges) freePageBytes() int64 {
	var pages int64
	r.heap.EachPages(func(first, end uint32) { pages += int64(end - first) })
	return pages * r.pageBytes()
}
