package core

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/streams/magazine"
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
	PageBytes        int64 // whole pages in them: what can be released
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
		LargestFreeBytes: int64(c.ranges.heap.LargestFree()) << sizeclass.UnitShift,
		FreeRanges:       c.ranges.heap.FreeRanges(),
		NodeVisits:       c.ranges.heap.Visits(),
		FreeCount:        c.frees(),
		RangeCount:       c.misses.Turns - c.misses.Refill,
		RefillCount:      c.misses.Refill,
	}
	s.SpanBytes = int64(c.spans.units) << sizeclass.UnitShift
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
	c.inFlight.each(func(b *block) {
		if !b.slot.Magazine().Leased() { // those are told from live ones by their words
			s.LiveCount--
			s.LiveBytes -= int64(b.units) << sizeclass.UnitShift
		}
	})
	s.LaneCount, s.LaneBytes = c.Lanes(), c.LaneBytes()
	s.PendingBytes = c.PendingBytes()
	s.CachedBytes = s.HeldBytes - s.LiveBytes - s.PendingBytes
	s.RangeBytes = int64(c.ranges.heap.FreeUnits()) << sizeclass.UnitShift
	s.PageBytes = c.ranges.freePageBytes()
	s.MagazineBytes = s.CachedBytes - s.RangeBytes - s.SpanBytes
	s.PeakLiveBytes = max(s.LiveBytes, int64(c.usage.givenPeak<<sizeclass.UnitShift))
	s.AllocCount = s.FreeCount + s.LiveCount
	return s
}

// ResetPeak restarts the peak of live bytes at what lives now: what was freed since the last turn comes home
// first, and what magazines cache does not count before the next turn that allocates.
func (c *Core) ResetPeak() {
	c.usage.resetPeak(uint64(c.Snapshot().LiveBytes) >> sizeclass.UnitShift) //nolint:gosec // a sum of blocks
}

// Live visits the blocks that callers have, with the slots that know their tags and places.
func (c *Core) Live(visit func(p cudadrv.Ptr, bytes int64, s *magazine.Slot)) {
	c.Drain()
	freed := c.inFlight.all()
	c.owner.All(func(m *magazine.Magazine) {
		m.EachLive(func(s *magazine.Slot) {
			if freed[s] {
				return
			}
			visit(s.Address(), int64(m.UnitsOf(s))<<sizeclass.UnitShift, s)
		})
	})
}

// frees counts the buffers that were freed, without those that Undo took back.
func (c *Core) frees() uint64 { return c.owner.Frees() - c.misses.undone }
