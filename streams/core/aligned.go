package core

import (
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// AllocAligned serves a request whose address must be a multiple of align bytes with a block of its own, or
// says how many pages it needs; wide, after a grant of that many did not help, asks for so many that any place
// does. Preconditions: those of Alloc; align is a power of two, 512 or more, and its units fit 31 bits.
func (c *Core) AllocAligned(bytes, align int64, wide bool) (s *magazine.Slot, needPages uint32) {
	if s, needPages = c.allocAligned(bytes, align, wide); s != nil {
		c.noteGiven()
	}
	return s, needPages
}

// AllocPart serves one request of a batch with a block of its own, nil if there is none: see AllocMany. Precondition: 0 < bytes, and
// the units fit an uint32.
func (c *Core) AllocPart(bytes int64) *magazine.Slot {
	s, _ := c.allocAligned(bytes, sizeclass.UnitBytes, false)
	return s
}

func (c *Core) allocAligned(bytes, align int64, wide bool) (s *magazine.Slot, needPages uint32) {
	units, alignUnits := uint32(sizeclass.Units(bytes)), uint32(align>>sizeclass.UnitShift)
	c.Drain()
	block := c.takeAlignedRoom(units, alignUnits)
	if block == heap.None {
		need := uint64(units)
		if wide || alignUnits > c.pageUnits {
			need += uint64(alignUnits) - 1
		}
		return nil, uint32((need + uint64(c.pageUnits) - 1) / uint64(c.pageUnits))
	}
	s = c.owner.Loose.Take()
	c.settleIn(s, block, units)
	c.noteUse()
	return s, 0
}
