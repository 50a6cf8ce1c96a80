package core

import "math"

// surplus is how many pages a stream at work has not needed for a while: as many as were free whenever it looked, over a window of
// ticks. A loop that is shorter than the window needs each of its pages once in it.
type surplus struct {
	window     int    // ticks; 0: nothing is surplus
	ticks      int    // of this window that have passed
	leastPages uint32 // that were free in it
}

// everything is more than is ever free.
const everything = math.MaxUint32

// setWindow begins another window if its length changes.
func (s *surplus) setWindow(ticks int) {
	if ticks != s.window {
		*s = surplus{window: ticks, leastPages: everything}
	}
}

// note takes how many pages are free.
func (s *surplus) note(freePages uint32) { s.leastPages = min(s.leastPages, freePages) }

// tick returns how many pages are surplus: 0 but at the end of a window.
func (s *surplus) tick() (pages uint32) {
	if s.window == 0 {
		return 0
	}
	if s.ticks++; s.ticks < s.window {
		return 0
	}
	pages = s.leastPages
	s.ticks, s.leastPages = 0, everything
	return pages
}

// NoteFree notes at the end of a turn how many pages are free, and returns what FreePages does.
func (c *Core) NoteFree() (all, longest uint32) {
	all, longest = c.ranges.freePages()
	c.surplus.note(all)
	return all, longest
}

// Surplus releases the pages that the stream has not needed for a while, or nothing. It is called once a tick. With covered only
// pages that a fence covers leave. The result is valid until the next call of the core.
func (c *Core) Surplus(covered bool) []Run {
	pages := c.surplus.tick()
	if pages == 0 || pages == everything {
		return nil
	}
	return c.ranges.takeLongest(pages, false, c.coverage.within(covered))
}
