package core

import (
	"fmt"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
	"github.com/go-vram/vram/streams/magazine/lane"
)

// Snapshot is the state of a core's books, with the magazines as they were when each was looked at.
type Snapshot struct {
	HeldBytes        int64 // pages lent by the pool: the sum of the next three
	LiveBytes        int64 // blocks that callers have
	PendingBytes     int64 // freed, and other streams still use them
	CachedBytes      int64 // all else: the three parts that follow
	SpanBytes        int64 // free slots of the classes
	MagazineBytes    int64 // free slots of large blocks
	RangeBytes       int64 // free ranges
	PageBytes        int64 // whole pages in them: what can be given back
	PeakLiveBytes    int64 // of all but free ranges and parts of batches, at the turns that allocated: an upper bound
	LargestFreeBytes int64
	FreeRanges       int
	NodeVisits       uint64
	LaneCount        int
	LaneBytes        int64 // what lanes have, live or cached

	AllocCount, FreeCount, LiveCount uint64 // of buffers, without those that Undo gave back
	RangeCount, RefillCount          uint64 // of AllocCount: as Served counted
}

// Snapshot counts. It visits every slot, since no allocation or free counts: frees are what the
// generations sum up to, live buffers are the slots that are neither free nor home.
func (c *Core) Snapshot() Snapshot {
	c.Drain()
	s := Snapshot{
		HeldBytes:        c.HeldBytes(),
		LargestFreeBytes: int64(c.heap.LargestFree()) << sizeclass.UnitShift,
		FreeRanges:       c.heap.FreeRanges(),
		NodeVisits:       c.heap.Visits(),
		FreeCount:        c.frees(),
		RangeCount:       c.misses.Turns - c.misses.Refill,
		RefillCount:      c.misses.Refill,
	}
	s.SpanBytes = int64(c.spanUnits) << sizeclass.UnitShift
	c.owner.All(func(m *magazine.Magazine) {
		if units := m.Units(); units != 0 {
			live := m.LiveSlots()
			if m.Span() != nil {
				s.SpanBytes -= int64(live) * int64(units) << sizeclass.UnitShift
			}
			s.LiveCount += uint64(live)
			s.LiveBytes += int64(live) * int64(units) << sizeclass.UnitShift
			return
		}
		m.EachLive(func(slot *magazine.Slot) {
			s.LiveCount++
			s.LiveBytes += int64(slot.Units) << sizeclass.UnitShift
		})
	})
	c.pending.each(func(b *block) {
		if !b.slot.Magazine().Leased() { // those are told from live ones by their words
			s.LiveCount--
			s.LiveBytes -= int64(b.units) << sizeclass.UnitShift
		}
	})
	s.LaneCount, s.LaneBytes = c.Lanes(), c.LaneBytes()
	s.PendingBytes = c.PendingBytes()
	s.CachedBytes = s.HeldBytes - s.LiveBytes - s.PendingBytes
	s.RangeBytes = int64(c.heap.FreeUnits()) << sizeclass.UnitShift
	s.PageBytes = c.freePages()
	s.MagazineBytes = s.CachedBytes - s.RangeBytes - s.SpanBytes
	s.PeakLiveBytes = max(s.LiveBytes, int64(c.peakUnits<<sizeclass.UnitShift))
	s.AllocCount = s.FreeCount + s.LiveCount
	return s
}

// freePages is the bytes of the whole pages that lie in free ranges.
func (c *Core) freePages() int64 {
	var pages uint64
	c.heap.EachPages(func(first, end uint32) { pages += uint64(end - first) })
	return int64(pages*uint64(c.pageUnits)) << sizeclass.UnitShift
}

// ResetPeak restarts the peak of live bytes at what lives now: what was freed since the last turn comes home first, and what
// magazines cache does not count before the next turn that allocates.
func (c *Core) ResetPeak() {
	c.peakUnits = 0
	live := uint64(c.Snapshot().LiveBytes) >> sizeclass.UnitShift //nolint:gosec // a sum of blocks
	c.peakUnits = live - min(live, c.parts)
	if c.counting {
		c.publish()
	}
}

// Live visits the blocks that callers have, with the slots that know their tags and places.
func (c *Core) Live(visit func(p cudadrv.Ptr, bytes int64, s *magazine.Slot)) {
	c.Drain()
	freed := map[*magazine.Slot]bool{}
	c.pending.each(func(b *block) { freed[b.slot] = true })
	c.owner.All(func(m *magazine.Magazine) {
		m.EachLive(func(s *magazine.Slot) {
			if freed[s] {
				return
			}
			visit(s.Address(), int64(m.UnitsOf(s))<<sizeclass.UnitShift, s)
		})
	})
}

// frees counts the buffers that were freed, without those that Undo gave back.
func (c *Core) frees() uint64 {
	return c.owner.Frees() - c.undone
}

// eachBlock visits the spans that serve classes, with their magazines, and the slots that have a block of their own.
func (c *Core) eachBlock(span func(block int32, m *magazine.Magazine), single func(s *magazine.Slot)) {
	c.owner.Spans.Each(func(m *magazine.Span) {
		if m.Block != heap.None {
			span(m.Block, &m.Magazine)
		}
	})
	c.leases.Each(func(m *lane.Magazine) {
		if m.Block != heap.None {
			span(m.Block, &m.Magazine)
		}
	})
	c.owner.All(func(m *magazine.Magazine) {
		m.Each(func(s *magazine.Slot) {
			if s.Block != heap.None {
				single(s)
			}
		})
	})
}

// Check holds the books against the invariants of the package comment. It visits every block.
func (c *Core) Check() error {
	if err := c.heap.Check(); err != nil {
		return err
	}
	if err := c.pending.check(); err != nil {
		return err
	}
	var used, spans, kept, leased uint64
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
	c.leases.Each(func(m *lane.Magazine) { leased += m.LeasedUnits() })
	c.owner.Exacts.Each(func(m *magazine.Exact) {
		kept += uint64(m.Attached()) * uint64(m.Units())
		if m.Open != c.recent.has(m) {
			wrong = fmt.Errorf("streams: magazine of %d units open: %t, in the list of those with a block: %t", m.Units(), m.Open, !m.Open)
		}
	})
	c.eachBlock(func(block int32, m *magazine.Magazine) {
		units := sizeclass.SpanUnits(sizeclass.Of(uint64(m.UnitsOf(m.At(0)))))
		book(block, units)
		spans += uint64(units)
	}, func(s *magazine.Slot) {
		book(s.Block, s.Units)
	})
	if wrong != nil {
		return wrong
	}
	if d := c.directory; d != nil && d.tree.Count() != len(seen) {
		return fmt.Errorf("streams: %d blocks are used, the directory has %d", len(seen), d.tree.Count())
	}
	if err := c.checkPages(); err != nil {
		return err
	}
	if used+c.heap.FreeUnits() != c.heap.HeldUnits() {
		return fmt.Errorf("streams: %d units used and %d free of %d held", used, c.heap.FreeUnits(), c.heap.HeldUnits())
	}
	if spans != c.spanUnits || kept != c.keptUnits {
		return fmt.Errorf("streams: spans of %d units and %d kept, the books say %d and %d", spans, kept, c.spanUnits, c.keptUnits)
	}
	if leased != c.leases.LeasedUnits() {
		return fmt.Errorf("streams: lanes have %d units, the books say %d", leased, c.leases.LeasedUnits())
	}
	return nil
}
