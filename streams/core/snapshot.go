package core

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
)

// Snapshot is the state of a core's books, with the magazines as they were when each was looked at.
type Snapshot struct {
	HeldBytes, LiveBytes, CachedBytes, PeakLiveBytes, LargestFreeBytes int64
	FreeRanges                                                         int
	NodeVisits                                                         uint64
	AllocCount, FreeCount, LiveCount                                   uint64
	RangeCount, RefillCount                                            uint64
}

// Snapshot counts. It visits every slot, since no allocation or free counts: frees are what the
// generations sum up to, live buffers are the slots that are neither free nor home.
func (c *Core) Snapshot() Snapshot {
	c.Drain()
	s := Snapshot{
		HeldBytes:        c.HeldBytes(),
		CachedBytes:      int64(c.heap.FreeUnits() << sizeclass.UnitShift),
		LargestFreeBytes: int64(c.heap.LargestFree()) << sizeclass.UnitShift,
		FreeRanges:       c.heap.FreeRanges(),
		NodeVisits:       c.heap.Visits(),
		FreeCount:        c.frees(),
		RangeCount:       c.misses.Ranges,
		RefillCount:      c.misses.Refill,
	}
	c.owner.All(func(m *magazine.Magazine) {
		s.CachedBytes += int64(m.FreeSlots()) * int64(m.Units()) << sizeclass.UnitShift
		s.LiveCount += uint64(m.LiveSlots())
	})
	s.LiveBytes = s.HeldBytes - s.CachedBytes
	s.PeakLiveBytes = max(s.LiveBytes, int64(c.peakUnits<<sizeclass.UnitShift))
	s.AllocCount = s.FreeCount + s.LiveCount
	return s
}

// ResetPeak restarts the peak of live bytes at the present value.
func (c *Core) ResetPeak() { c.peakUnits = c.heap.HeldUnits() - c.heap.FreeUnits() }

// Live visits the blocks that callers have.
func (c *Core) Live(visit func(p cudadrv.Ptr, bytes int64)) {
	c.Drain()
	c.owner.All(func(m *magazine.Magazine) {
		m.EachLive(func(s *magazine.Slot) {
			units := s.Units
			if m.Class >= 0 {
				units = m.Units()
			}
			visit(s.Address(), int64(units)<<sizeclass.UnitShift)
		})
	})
}

// frees counts the buffers that were freed, without those that Undo gave back.
func (c *Core) frees() uint64 {
	var n uint64
	c.owner.All(func(m *magazine.Magazine) { n += m.Frees() })
	return n + c.owner.ForgottenFrees() - c.undone
}

// Check holds the books against the invariants of the package comment. It visits every block.
func (c *Core) Check() error {
	if err := c.heap.Check(); err != nil {
		return err
	}
	var used uint64
	seen := map[int32]bool{}
	var wrong error
	book := func(block int32, units uint32) {
		switch {
		case seen[block]:
			wrong = fmt.Errorf("streams: block %d has two slots", block)
		case c.heap.Units(block) != units:
			wrong = fmt.Errorf("streams: block %d has %d units, its slot says %d", block, c.heap.Units(block), units)
		}
		seen[block] = true
		used += uint64(units)
	}
	c.owner.All(func(m *magazine.Magazine) {
		if m.Class >= 0 {
			if m.Span != heap.None {
				book(m.Span, sizeclass.SpanUnits(int(m.Class)))
			}
			return
		}
		m.Each(func(s *magazine.Slot) {
			if s.Block != heap.None {
				book(s.Block, s.Units)
			}
		})
	})
	if wrong != nil {
		return wrong
	}
	if used+c.heap.FreeUnits() != c.heap.HeldUnits() {
		return fmt.Errorf("streams: %d units used and %d free of %d held", used, c.heap.FreeUnits(), c.heap.HeldUnits())
	}
	return nil
}
