package core

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// directory says whose a block is. It is made by the first Lookup, so that streams which nobody asks keep none.
type directory struct {
	tree    heap.Tree  // the used blocks by offset
	tenants []occupant // by block
	pending map[*magazine.Slot]bool
	pages   map[cudadrv.Ptr]uint32 // the pages of plain segments by address, of those that blocks lie on or have lain on
}

// occupant is what a block serves: a slot, or all of a magazine.
type occupant struct {
	slot     *magazine.Slot
	magazine *magazine.Magazine
}

// Lookup finds the live buffer in whose block an address lies: its slot, its word and the length of the block. The first call
// visits every block; later ones are logarithmic. A buffer whose free is under way may still be found.
func (c *Core) Lookup(p cudadrv.Ptr) (s *magazine.Slot, word uint64, bytes int64, found bool) {
	c.Drain()
	if c.directory == nil {
		c.direct()
	}
	offset, ok := c.offset(p)
	if !ok {
		return nil, 0, 0, false
	}
	if s = c.tenant(offset); s == nil {
		return nil, 0, 0, false
	}
	word = s.Word()
	if c.directory.pending[s] || !s.Magazine().IsLive(s) || !s.Live(word) || !s.Settled(word) {
		return nil, 0, 0, false
	}
	return s, word, int64(s.Magazine().UnitsOf(s)) << sizeclass.UnitShift, true
}

// tenant is the slot that a unit serves; nil if there is none.
func (c *Core) tenant(offset uint32) *magazine.Slot {
	d := c.directory
	if block := d.tree.Below(offset); block != heap.None && offset-c.heap.Offset(block) < c.heap.Units(block) {
		if m := d.tenants[block].magazine; m != nil {
			return m.Carved(offset - c.heap.Offset(block))
		}
		return d.tenants[block].slot
	}
	return nil
}

// offset is the unit of an address, if its page may be one of the stream's.
func (c *Core) offset(p cudadrv.Ptr) (unit uint32, ok bool) {
	if c.places == nil {
		units := uint64(p-c.base) >> sizeclass.UnitShift
		return uint32(units), p >= c.base && units < 1<<32 //nolint:gosec // looked at
	}
	pageBytes := cudadrv.Ptr(c.pageUnits) << sizeclass.UnitShift
	at := p / pageBytes * pageBytes
	page, ok := c.directory.pages[at]
	return page*c.pageUnits + uint32((p-at)>>sizeclass.UnitShift), ok //nolint:gosec // within a page
}

// direct makes the directory of what is there.
func (c *Core) direct() {
	d := &directory{pending: map[*magazine.Slot]bool{}, pages: map[cudadrv.Ptr]uint32{}}
	d.tree.Reset()
	c.directory = d
	c.pending.each(func(b *block) { d.pending[b.slot] = true })
	c.eachBlock(func(block int32, m *magazine.Magazine) { c.enter(block, nil, m) }, func(s *magazine.Slot) {
		c.enter(s.Block, s, nil)
	})
}

// enter books that a block serves a slot, or a magazine.
func (c *Core) enter(block int32, s *magazine.Slot, m *magazine.Magazine) {
	d := c.directory
	if d == nil {
		return
	}
	offset, units := c.heap.Offset(block), c.heap.Units(block)
	d.tree.Insert(block, offset)
	for int32(len(d.tenants)) <= block { //nolint:gosec // an index of the heap's
		d.tenants = append(d.tenants, occupant{})
	}
	d.tenants[block] = occupant{s, m}
	c.enterPages(offset, units)
}

// enterPages books the addresses of plain segments.
func (c *Core) enterPages(offset, units uint32) {
	if c.places != nil {
		for page := offset / c.pageUnits; page <= (offset+units-1)/c.pageUnits; page++ {
			c.directory.pages[c.places[page]] = page
		}
	}
}

// leavePages forgets the addresses of pages that go back to the pool: the driver may give an address to another segment,
// and the page another address. It comes before the pages are returned, since their places are the pool's afterwards.
func (c *Core) leavePages(first, pages uint32) {
	if c.directory != nil && c.places != nil {
		for page := first; page < first+pages; page++ {
			delete(c.directory.pages, c.places[page])
		}
	}
}

// checkPages holds the addresses in the directory against the pages that the core has.
func (c *Core) checkPages() error {
	if c.directory == nil || c.places == nil {
		return nil
	}
	held := map[uint32]bool{}
	c.heap.EachRun(func(block int32, _ heap.State) {
		offset := c.heap.Offset(block)
		for page := offset / c.pageUnits; page <= (offset+c.heap.Units(block)-1)/c.pageUnits; page++ {
			held[page] = true
		}
	})
	for at, page := range c.directory.pages {
		switch {
		case !held[page]:
			return fmt.Errorf("streams: the directory has address %#x for page %d, which was returned", uint64(at), page)
		case c.places[page] != at:
			return fmt.Errorf("streams: the directory has address %#x for page %d, which is at %#x", uint64(at), page, uint64(c.places[page]))
		}
	}
	return nil
}

// leave books that a block serves nobody any more.
func (d *directory) leave(block int32) {
	d.tree.Remove(block)
	d.tenants[block] = occupant{}
}

// settleIn puts a block into a slot.
func (c *Core) settleIn(s *magazine.Slot, block int32, units uint32) {
	s.Block, s.Units = block, units
	s.SetAddress(c.address(block))
	if c.directory != nil {
		c.enter(block, s, nil)
	}
}
