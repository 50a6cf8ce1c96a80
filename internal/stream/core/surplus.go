package core

import "math"

// surplus is memory that a stream at work has not needed for a while: the least that was free at the end of a turn, over a
// window of ticks. A loop that is shorter than the window needs each of its pages once in it.
type surplus struct {
	windowTicks  int    // 0: nothing is surplus
	ticks        int    // of this window that have passed
	minFreeUnits uint64 // that were free in it
}

// everything is more than is ever free.
const everything = math.MaxUint64

// newSurplus begins a window of so many ticks.
func newSurplus(windowTicks int) surplus {
	return surplus{windowTicks: windowTicks, minFreeUnits: everything}
}

// setWindow begins another window if its length changes.
func (s *surplus) setWindow(ticks int) {
	if ticks != s.windowTicks {
		*s = newSurplus(ticks)
	}
}

// note takes how much is free.
func (s *surplus) note(freeUnits uint64) { s.minFreeUnits = min(s.minFreeUnits, freeUnits) }

// tick returns how much is surplus: 0 but at the end of a window.
func (s *surplus) tick() (units uint64) {
	if s.windowTicks == 0 {
		return 0
	}
	if s.ticks++; s.ticks < s.windowTicks {
		return 0
	}
	if units = s.minFreeUnits; units == everything {
		units = 0
	}
	*s = newSurplus(s.windowTicks)
	return units
}

// NoteMinFree notes at the end of a turn how much is free.
func (c *Core) NoteMinFree() { c.surplus.note(c.ranges.heap.FreeUnits()) }

// NoteFree is NoteMinFree. It returns how many pages the free ranges hold, and how many the longest of them does, both at most.
func (c *Core) NoteFree() (all, longest uint32) {
	c.NoteMinFree()
	return c.ranges.freePages()
}

// Surplus releases the longest of the free pages that the stream has not needed for a window of ticks, or nothing. It is called once
// a tick. With covered only pages that a fence covers leave. The result is valid until the next call of the core.
func (c *Core) Surplus(covered bool) []Run {
	pages := uint32(c.surplus.tick() / uint64(c.ranges.pageUnits)) //nolint:gosec // of one arena
	if pages == 0 {
		return nil
	}
	return c.ranges.takeLongest(pages, false, c.coverage.within(covered))
}
