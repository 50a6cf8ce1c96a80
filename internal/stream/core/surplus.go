package core

import "math"

// surplus tracks memory that an active stream has not needed for a while: the least that was free at the end
// of a turn, over a window of ticks. A loop shorter than the window needs each of its pages once in it.
type surplus struct {
	windowTicks  int    // 0: nothing is surplus
	ticks        int    // elapsed in this window
	minFreeUnits uint64 // least that was free in it
}

// everything exceeds any amount of free memory.
const everything = math.MaxUint64

// newSurplus begins a window of so many ticks.
func newSurplus(windowTicks int) surplus {
	return surplus{windowTicks: windowTicks, minFreeUnits: everything}
}

// setWindow starts another window if its length changes.
func (s *surplus) setWindow(ticks int) {
	if ticks != s.windowTicks {
		*s = newSurplus(ticks)
	}
}

// note records how much is free.
func (s *surplus) note(freeUnits uint64) { s.minFreeUnits = min(s.minFreeUnits, freeUnits) }

// tick reports whether a window ends, and then returns how much was surplus in it.
func (s *surplus) tick() (units uint64, ends bool) {
	if s.windowTicks == 0 {
		return 0, false
	}
	if s.ticks++; s.ticks < s.windowTicks {
		return 0, false
	}
	if units = s.minFreeUnits; units == everything {
		units = 0
	}
	*s = newSurplus(s.windowTicks)
	return units, true
}

// NoteMinFree records at the end of a turn how much is free.
func (c *Core) NoteMinFree() { c.surplus.note(c.ranges.heap.FreeUnits()) }

// NoteFree is NoteMinFree. It returns upper bounds of the pages in all free ranges and in the longest.
func (c *Core) NoteFree() (all, longest uint32) {
	c.NoteMinFree()
	return c.ranges.freePages()
}

// Surplus releases the longest of the free pages that the stream has not needed for a window of ticks, or
// nothing. Memory that lay unused in magazines for a window becomes free: it may be surplus in the next. Call
// Surplus once a tick. If covered is set, only pages that a fence covers leave. The result is valid until the
// next call of the core.
func (c *Core) Surplus(covered bool) []Run {
	units, ends := c.surplus.tick()
	if !ends {
		return nil
	}
	var runs []Run
	if pages := uint32(units / uint64(c.ranges.pageUnits)); pages > 0 { //nolint:gosec // of one arena
		runs = c.ranges.takeLongest(pages, false, c.coverage.within(covered))
	}
	c.room.closeUnused()
	return runs
}
