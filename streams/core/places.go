package core

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
)

// placeOf is the address of an offset in a plain segment.
func (c *Core) placeOf(offset uint32) cudadrv.Ptr {
	return c.places[offset/c.pageUnits] + cudadrv.Ptr(offset%c.pageUnits)<<sizeclass.UnitShift
}

// takeAligned takes a block whose address is a multiple of that many units, or heap.None.
func (c *Core) takeAligned(units, alignUnits uint32) int32 {
	if c.places == nil {
		return c.heap.TakeAligned(units, alignUnits, -uint32(c.base>>sizeclass.UnitShift)&(alignUnits-1))
	}
	return c.heap.TakeAlignedBy(units, alignUnits, func(offset uint32) uint32 {
		return offset - uint32(c.placeOf(offset)>>sizeclass.UnitShift)
	})
}

// takeAlignedRoom is takeAligned after magazines of large blocks were closed, one by one, until it works.
func (c *Core) takeAlignedRoom(units, alignUnits uint32) int32 {
	block := c.takeAligned(units, alignUnits)
	for block == heap.None && c.evictOldest() {
		block = c.takeAligned(units, alignUnits)
	}
	return block
}
