package core

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Lookup finds the live buffer whose block contains an address. It returns the slot, its word and the length
// of the block. The first call visits every block; later ones are logarithmic.
//
// It reads the word before it takes the lists, and compares it afterwards. A slot that was freed before is then
// collected, and one that is freed later has another word. The word of a free slot must not be returned: it is
// the word of the slot's next handle. What remains is a caller who has changed the word in a free and has not
// returned the slot yet.
func (c *Core) Lookup(p cudadrv.Ptr) (s *magazine.Slot, word uint64, bytes int64, found bool) {
	if c.directory == nil {
		c.directory = newDirectory(&c.ranges, func(visit func(block int32, o occupant)) {
			eachBlock(c.owner, visit)
		})
	}
	if s = c.directory.find(p); s == nil {
		return nil, 0, 0, false
	}
	word = s.Word()
	c.Drain()
	if c.directory.find(p) != s || c.inFlight.has(s) || !s.Magazine().IsLive(s) || !s.Live(word) || !s.Settled(word) {
		return nil, 0, 0, false
	}
	return s, word, int64(s.Magazine().UnitsOf(s)) << sizeclass.UnitShift, true
}

// Alert reports whether callers have freed blocks that no turn has collected. It also arms
// magazine.Waker.Freed for the next free. It may be called outside the turn.
func (c *Core) Alert() bool { return c.owner.Alert() }

// Pending visits the memory of the pending blocks: freed, with announced uses in flight.
func (c *Core) Pending(visit func(p cudadrv.Ptr, bytes int64)) {
	c.Drain()
	c.inFlight.each(func(b *block) { visit(b.slot.Address(), int64(b.units)<<sizeclass.UnitShift) })
}
