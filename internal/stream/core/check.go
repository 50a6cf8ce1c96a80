package core

import (
	"fmt"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Check compares the books with the invariants of the package comment. It visits every block.
func (c *Core) Check() error {
	if err := c.ranges.heap.Check(); err != nil {
		return err
	}
	if err := c.inFlight.check(); err != nil {
		return err
	}
	var used, spans, kept uint64
	seen := map[int32]bool{}
	var wrong error
	book := func(block int32, units uint32) {
		switch {
		case seen[block]:
			wrong = fmt.Errorf("streams: block %d has two slots", block)
		case c.ranges.heap.Units(block) != units:
			wrong = fmt.Errorf("streams: block %d has %d units, its slot says %d", block, c.ranges.heap.Units(block), units)
		}
		seen[block] = true
		used += uint64(units)
	}
	c.owner.Exacts.Each(func(m *magazine.Exact) {
		kept += uint64(m.Attached()) * uint64(m.Units())
		if m.Open != c.retention.recent.has(m) {
			wrong = fmt.Errorf("streams: magazine of %d units open: %t, in the list of those with a block: %t",
				m.Units(), m.Open, !m.Open)
		}
	})
	eachBlock(c.owner, func(block int32, o occupant) {
		if o.slot != nil {
			book(block, o.slot.Units)
			return
		}
		units := sizeclass.SpanUnits(sizeclass.Of(uint64(o.magazine.UnitsOf(o.magazine.At(0)))))
		book(block, units)
		spans += uint64(units)
	})
	if wrong != nil {
		return wrong
	}
	if c.directory != nil {
		if err := c.directory.check(len(seen)); err != nil {
			return err
		}
	}
	if used+c.ranges.heap.FreeUnits() != c.ranges.heap.HeldUnits() {
		return fmt.Errorf("streams: %d units used and %d free of %d held",
			used, c.ranges.heap.FreeUnits(), c.ranges.heap.HeldUnits())
	}
	if spans != c.spans.units || kept != c.retention.units {
		return fmt.Errorf("streams: spans of %d units and %d kept, the books say %d and %d",
			spans, kept, c.spans.units, c.retention.units)
	}
	return nil
}
