package core

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Snapshot is the state of a core's books. Each magazine is read at its own moment.
type Snapshot struct {
	HeldBytes        int64 // pages lent by the pool: the sum of the next three
	LiveBytes        int64 // blocks that callers have
	PendingBytes     int64 // freed, but in use by other streams
	CachedBytes      int64 // the rest: the sum of the next three
	SpanBytes        int64 // free slots of the classes
	MagazineBytes    int64 // free slots of large blocks, and parts of batches
	RangeBytes       int64 // free ranges
	PageBytes        int64 // whole pages in them, which can be released
	PeakLiveBytes    int64 // maximum of all but free ranges, pending memory and parts of batches, at the turns that allocated: an upper bound
	LargestFreeBytes int64
	FreeRanges       int
	NodeVisits       uint64

	AllocCount, FreeCount, LiveCount uint64 // of buffers, without parts of batches and undone allocations
	// RangeCount and RefillCount are parts of AllocCount, MappedCount of RefillCount: see Served and ServedMapped.
	RangeCount, RefillCount, MappedCount uint64

	PeakPendingBytes, PeakHeldBytes int64 // since the last reset
	Sizes                           *[magazine.SizeCount]SizeCounts
}

// SizeCounts are the buffers of one size: see magazine.SizeOf.
type SizeCounts struct {
	AllocCount, FreeCount, LiveCount uint64
	LiveBytes, CachedBytes           int64 // of blocks, and of free slots of magazines
}

// counted are the counts of the last Snapshot, the minimum of the next.
type counted struct {
	magazineHits uint64
	allocs       [magazine.SizeCount]uint64
}

// Snapshot counts. It visits every slot, since allocations and frees update no counter: frees are the sum of
// the generations, and live buffers are the slots that are neither free nor collected.
//
// Counts never fall from one Snapshot to the next, even with concurrent callers. Frees are read before live
// slots. If a slot is freed in between, neither its allocation nor its free counts yet. None counts twice,
// unless a caller was preempted inside a free during the whole reading. Keeping the greatest reading corrects
// that case: it stays ahead until the next allocation that a magazine serves. The road not taken is to read
// live slots first: each free in between would count one too many.
//
// Parts of batches are read before live slots: all of them are live until a turn unbooks them. A part that
// a batch takes and books later counts as allocated in this reading, and the batch detects that.
func (c *Core) Snapshot() Snapshot {
	p := c.usage.parts
	p.readings.Add(1)
	defer p.readings.Add(1)
	sizes := new([magazine.SizeCount]SizeCounts)
	c.owner.AddFrees(func(size int, frees uint64) { sizes[size].FreeCount += frees })
	for i := range sizes {
		z, parts := &sizes[i], &p.sizes[i]
		z.FreeCount -= parts.unmade.Load()
		z.LiveCount -= uint64(parts.count.Load()) //nolint:gosec // not negative
		z.LiveBytes -= parts.units.Load() << sizeclass.UnitShift
	}
	c.Drain()
	s := Snapshot{
		Sizes:            sizes,
		HeldBytes:        c.HeldBytes(),
		LargestFreeBytes: int64(c.ranges.heap.LargestFree()) << sizeclass.UnitShift,
		FreeRanges:       c.ranges.heap.FreeRanges(),
		NodeVisits:       c.ranges.heap.Visits(),
		RangeCount:       c.misses.Turns - c.misses.Refill,
		RefillCount:      c.misses.Refill,
		MappedCount:      c.misses.Mapped,
	}
	s.SpanBytes = int64(c.spans.units) << sizeclass.UnitShift
	live := func(units uint32, count int) (bytes int64) {
		z := &s.Sizes[magazine.SizeOf(units)]
		bytes = int64(count) * int64(units) << sizeclass.UnitShift
		z.LiveCount += uint64(count) //nolint:gosec // a subtraction is added modulo 2^64
		z.LiveBytes += bytes
		return bytes
	}
	c.owner.All(func(m *magazine.Magazine) {
		if units := m.Units(); units != 0 {
			bytes := live(units, m.LiveSlots())
			if m.Span() != nil {
				s.SpanBytes -= bytes
			}
			s.Sizes[magazine.SizeOf(units)].CachedBytes += int64(m.FreeSlots()) * int64(units) << sizeclass.UnitShift
			return
		}
		m.EachLive(func(slot *magazine.Slot) { live(slot.Units, 1) })
	})
	c.inFlight.each(func(b *block) { live(b.units, -1) })
	var allocCount uint64
	for i := range s.Sizes {
		z := &s.Sizes[i]
		allocs := z.FreeCount + z.LiveCount
		raise(&c.counted.allocs[i], allocs)
		z.AllocCount = c.counted.allocs[i]
		allocCount += allocs
		s.FreeCount += z.FreeCount
		s.LiveCount += z.LiveCount
		s.LiveBytes += z.LiveBytes
	}
	s.PendingBytes = c.PendingBytes()
	s.CachedBytes = s.HeldBytes - s.LiveBytes - s.PendingBytes
	s.RangeBytes = int64(c.ranges.heap.FreeUnits()) << sizeclass.UnitShift
	s.PageBytes = c.ranges.freePageBytes()
	s.MagazineBytes = s.CachedBytes - s.RangeBytes - s.SpanBytes
	s.PeakLiveBytes = max(s.LiveBytes, c.usage.givenPeak.Peak()<<sizeclass.UnitShift)
	s.PeakPendingBytes, s.PeakHeldBytes = c.inFlight.peakUnits.Peak()<<sizeclass.UnitShift, c.ranges.heldPeak.Peak()<<sizeclass.UnitShift
	raise(&c.counted.magazineHits, allocCount-c.misses.Turns)
	s.AllocCount = c.counted.magazineHits + c.misses.Turns
	return s
}

// raise records a reading, modulo 2^64, that may be below zero with concurrent callers.
func raise(greatest *uint64, reading uint64) {
	if int64(reading) > int64(*greatest) { //nolint:gosec // a difference of counts
		*greatest = reading
	}
}

// ResetPeak restarts the peaks. The peak of live bytes starts at the present value: Drain comes first, and
// blocks cached in magazines do not count before the next turn that allocates.
func (c *Core) ResetPeak() {
	c.usage.resetPeak(c.liveUnits())
	c.inFlight.peakUnits.Reset(int64(c.inFlight.units))
	c.ranges.heldPeak.Reset(c.ranges.heldUnits())
}

func (c *Core) liveUnits() uint64 {
	return uint64(c.Snapshot().LiveBytes) >> sizeclass.UnitShift //nolint:gosec // a sum of blocks
}

// Peaks are the maxima inside a scope.
type Peaks struct{ LiveBytes, PendingBytes, HeldBytes int64 }

// BeginScope begins a scope of the peaks, as ResetPeak restarts them. The number must be unique.
func (c *Core) BeginScope(number uint64) {
	c.usage.beginScope(number, c.liveUnits())
	c.inFlight.peakUnits.Begin(number, int64(c.inFlight.units))
	c.ranges.heldPeak.Begin(number, c.ranges.heldUnits())
}

// EndScope ends a scope.
func (c *Core) EndScope(number uint64) Peaks {
	live := int64(c.liveUnits()) << sizeclass.UnitShift //nolint:gosec // units of one arena
	p := c.Inside(number)
	p.LiveBytes = max(p.LiveBytes, live)
	c.usage.givenPeak.End(number)
	c.inFlight.peakUnits.End(number)
	c.ranges.heldPeak.End(number)
	return p
}

// Inside returns the peaks inside a scope so far, as the turns that allocated recorded them. It changes
// nothing.
func (c *Core) Inside(number uint64) Peaks {
	return Peaks{
		LiveBytes:    c.usage.givenPeak.Inside(number) << sizeclass.UnitShift,
		PendingBytes: c.inFlight.peakUnits.Inside(number) << sizeclass.UnitShift,
		HeldBytes:    c.ranges.heldPeak.Inside(number) << sizeclass.UnitShift,
	}
}

// Live visits the blocks that callers have, with their slots, which hold tags and places.
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

// LiveHandles visits the blocks that callers have had since it was called, with words of their handles. It reads
// the words before it takes the lists, as Lookup does, so no word belongs to a slot's next handle.
func (c *Core) LiveHandles(visit func(bytes int64, s *magazine.Slot, word uint64)) {
	type handle struct {
		slot *magazine.Slot
		word uint64
	}
	var all []handle
	c.owner.All(func(m *magazine.Magazine) {
		m.EachLive(func(s *magazine.Slot) { all = append(all, handle{s, s.Word()}) })
	})
	c.Drain()
	freed := c.inFlight.all()
	for _, h := range all {
		if m := h.slot.Magazine(); !freed[h.slot] && m.IsLive(h.slot) && !h.slot.FreedSince(h.word) {
			visit(int64(m.UnitsOf(h.slot))<<sizeclass.UnitShift, h.slot, h.word)
		}
	}
}
