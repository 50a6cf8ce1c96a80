package core

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// directory finds the occupant of an address. The first Lookup creates it, so a stream without lookups has
// none; after that it follows the ranges.
type directory struct {
	ranges    *ranges
	tree      heap.Tree              // the used blocks by offset
	occupants []occupant             // by block
	pages     map[cudadrv.Ptr]uint32 // by address, of plain segments: pages that have had a block
}

// newDirectory returns the directory of the blocks that each visits.
func newDirectory(r *ranges, each func(visit func(block int32, o occupant))) *directory {
	d := &directory{ranges: r, pages: map[cudadrv.Ptr]uint32{}}
	d.tree.Reset()
	each(d.enter)
	r.onPlace = append(r.onPlace, d.enter)
	r.onFree = append(r.onFree, d.leave)
	r.onReturn = append(r.onReturn, d.leavePages)
	return d
}

// enter records the occupant of a block.
func (d *directory) enter(block int32, o occupant) {
	d.tree.Insert(block, d.ranges.heap.Offset(block))
	for int32(len(d.occupants)) <= block { //nolint:gosec // an index of the heap's
		d.occupants = append(d.occupants, occupant{})
	}
	d.occupants[block] = o
	if d.ranges.places != nil {
		run := d.ranges.pagesOf(block)
		for page := run.First; page < run.End(); page++ {
			d.pages[d.ranges.places[page]] = page
		}
	}
}

// leave records that a block has no occupant.
func (d *directory) leave(block int32) {
	d.tree.Remove(block)
	d.occupants[block] = occupant{}
}

// leavePages deletes the addresses of pages that return to the pool: the driver may give an address to
// another segment, and the page another address.
func (d *directory) leavePages(run Run) {
	if d.ranges.places != nil {
		for page := run.First; page < run.End(); page++ {
			delete(d.pages, d.ranges.places[page])
		}
	}
}

// find returns the slot whose block contains an address; nil if there is none.
func (d *directory) find(p cudadrv.Ptr) *magazine.Slot {
	offset, ok := d.offset(p)
	if !ok {
		return nil
	}
	h := d.ranges.heap
	block := d.tree.Below(offset)
	if block == heap.None || offset-h.Offset(block) >= h.Units(block) {
		return nil
	}
	if m := d.occupants[block].magazine; m != nil {
		return m.Carved(offset - h.Offset(block))
	}
	return d.occupants[block].slot
}

// offset returns the unit of an address, if its page may be one of the stream's.
func (d *directory) offset(p cudadrv.Ptr) (unit uint32, ok bool) {
	r := d.ranges
	if r.places == nil {
		units := uint64(p-r.base) >> sizeclass.UnitShift
		return uint32(units), p >= r.base && units < 1<<32 //nolint:gosec // looked at
	}
	pageBytes := cudadrv.Ptr(r.pageBytes())
	at := p / pageBytes * pageBytes
	page, ok := d.pages[at]
	return page*r.pageUnits + uint32((p-at)>>sizeclass.UnitShift), ok //nolint:gosec // within a page
}

// check compares the directory with the number of used blocks and with the stream's pages.
func (d *directory) check(usedBlocks int) error {
	if d.tree.Count() != usedBlocks {
		return fmt.Errorf("streams: %d blocks are used, the directory has %d", usedBlocks, d.tree.Count())
	}
	return d.checkPages()
}

// checkPages compares the addresses with the stream's pages.
func (d *directory) checkPages() error {
	held := map[uint32]bool{}
	d.ranges.heap.EachRun(func(block int32, _ heap.State) {
		run := d.ranges.pagesOf(block)
		for page := run.First; page < run.End(); page++ {
			held[page] = true
		}
	})
	for at, page := range d.pages {
		switch {
		case !held[page]:
			return fmt.Errorf("streams: the directory has address %#x for page %d, which was returned", uint64(at), page)
		case d.ranges.places[page] != at:
			return fmt.Errorf("streams: the directory has address %#x for page %d, which is at %#x",
				uint64(at), page, uint64(d.ranges.places[page]))
		}
	}
	return nil
}
