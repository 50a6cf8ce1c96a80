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
// Optional parts follow what happens here: each subscribes a function to the events that concern it. An
// event without a subscriber costs one comparison.
type ranges struct {
	heap      *heap.Heap
	base      cudadrv.Ptr
	places    []cudadrv.Ptr // nil: pages lie side by side from base on
	pageUnits uint32
	taken     []Run // scratch of takePages
	kept      bool  // no page leaves

	onPlace  []func(block int32, o occupant) // a block serves an occupant from now on
	onHome   []func(block int32)             // a block that served an occupant becomes free
	onGrant  []func(Run)                     // the pool lent pages
	onReturn []func(Run)                     // pages go back to the pool; their places are still valid

	heldPeak watermark.Mark
}

// occupant is what a used block serves: a slot, or all of a magazine.
type occupant struct {
	slot     *magazine.Slot
	magazine *magazine.Magazine
}

// placed tells the subscribers of a block that serves an occupant.
func (r *ranges) placed(block int32, o occupant) {
	if r.onPlace != nil { // the loop is elsewhere: most streams have no subscriber, and this is inlined
		r.tellPlaced(block, o)
	}
}

func (r *ranges) tellPlaced(block int32, o occupant) {
	for _, tell := range r.onPlace {
		tell(block, o)
	}
}

// vacate makes the block of a slot free.
func (r *ranges) vacate(s *magazine.Slot) {
	r.free(s.Block)
	s.Block = heap.None
}

// free makes a block free that served an occupant.
func (r *ranges) free(block int32) {
	r.home(block)
	r.heap.Give(block)
}

// home tells the subscribers of a block that served an occupant and becomes free: it goes before Give, for
// every block that comes home.
func (r *ranges) home(block int32) {
	if r.onHome != nil {
		r.tellHome(block)
	}
}

func (r *ranges) tellHome(block int32) {
	for _, tell := range r.onHome {
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

// heldUnits are those of the pages that the pool lent.
func (r *ranges) heldUnits() int64 { return int64(r.heap.HeldUnits()) } //nolint:gosec // units of one arena

// takePages takes up to limit whole pages out of the heap until more reports false. within narrows
// each free run to the pages that may leave; nil: all may. The result is valid until the next call.
func (r *ranges) takePages(limit uint32, within func(first, end uint32) (from, to uint32), more func() bool) []Run {
	r.taken = r.taken[:0]
	return r.takeMore(limit, within, more)
}

// takeMore is takePages and adds to its last result.
func (r *ranges) takeMore(limit uint32, within func(first, end uint32) (from, to uint32), more func() bool) []Run {
	visit := func(first, pages uint32) bool {
		run := Run{First: first, Pages: pages}
		for _, tell := range r.onReturn {
			tell(run)
		}
		r.taken = append(r.taken, run)
		return more()
	}
	if r.kept {
		return r.taken
	}
	if within == nil {
		r.heap.TakePages(limit, visit)
		return r.taken
	}
	for limit > 0 { // the rest of a range may hold more pages that may leave
		n := r.heap.TakeSomePages(limit, within, visit)
		if n == 0 || !more() {
			break
		}
		limit -= n
	}
	return r.taken
}

// takeLongest takes the pages of the longest free ranges out of the heap until they come to so many: with whole all of the last one
// as well.
func (r *ranges) takeLongest(pages uint32, whole bool, within func(first, end uint32) (from, to uint32)) []Run {
	r.taken = r.taken[:0]
	if r.kept {
		return nil
	}
	r.heap.TakeLongest(pages, whole, within, func(first, count uint32) {
		run := Run{First: first, Pages: count}
		for _, tell := range r.onReturn {
			tell(run)
		}
		r.taken = append(r.taken, run)
	})
	return r.taken
}

// takeFitting takes the pages of about the shortest free range that has so many out of the heap, or nothing.
func (r *ranges) takeFitting(pages uint32) []Run {
	r.taken = r.taken[:0]
	if r.kept {
		return nil
	}
	if first, count, ok := r.heap.TakeFitting(pages); ok {
		run := Run{First: first, Pages: count}
		for _, tell := range r.onReturn {
			tell(run)
		}
		r.taken = append(r.taken, run)
	}
	return r.taken
}

// freePages is how many pages that may leave the free ranges hold, and how many the longest of them does, both at most.
func (r *ranges) freePages() (all, longest uint32) {
	if r.kept {
		return 0, 0
	}
	return uint32(r.heap.FreeUnits() / uint64(r.pageUnits)), r.heap.LongestBound() / r.pageUnits //nolint:gosec // of one arena
}

// address is where a block lies.
func (r *ranges) address(block int32) cudadrv.Ptr {
	offset := r.heap.Offset(block)
	if r.places != nil {
		return r.placeOf(offset)
	}
	return r.base + cudadrv.Ptr(offset)<<sizeclass.UnitShift
}

// placeOf is the address of an offset in a plain segment.
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

// pagesOf are the pages on which a block lies.
func (r *ranges) pagesOf(block int32) Run {
	offset := r.heap.Offset(block)
	first := offset / r.pageUnits
	return Run{First: first, Pages: (offset+r.heap.Units(block)-1)/r.pageUnits - first + 1}
}

// pagesFor is how many pages hold so many units.
func (r *ranges) pagesFor(units uint64) uint32 {
	return uint32((units + uint64(r.pageUnits) - 1) / uint64(r.pageUnits)) //nolint:gosec // of one arena
}

func (r *ranges) pageBytes() int64 { return int64(r.pageUnits) << sizeclass.UnitShift }

// usedUnits are those in no free range.
func (r *ranges) usedUnits() uint64 { return r.heap.HeldUnits() - r.heap.FreeUnits() }

// HeldBytes are those of the pages that the pool lent.
func (r *ranges) HeldBytes() int64 { return int64(r.heap.HeldUnits() << sizeclass.UnitShift) }

// UsedBytes are those of the stream's pages in no free range: in buffers, and cached in magazines.
func (r *ranges) UsedBytes() int64 { return int64(r.usedUnits()) << sizeclass.UnitShift }

// freePageBytes are those of the whole pages in free ranges.
func (r *ranges) freePageBytes() int64 {
	var pages int64
	r.heap.EachPages(func(first, end uint32) { pages += int64(end - first) })
	return pages * r.pageBytes()
}
