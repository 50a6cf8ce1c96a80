package core

import "github.com/go-vram/vram/internal/sizeclass"

// Budget bounds what a stream keeps. Zero means no bound of its own: what is kept is asked back by the
// pool when somebody needs it. Only whole pages can be given back: what is free in smaller pieces stays.
type Budget struct {
	CacheBytes  int64 // in free ranges, and at most half of it in magazines of large blocks
	CacheRanges int   // free ranges that hold a whole page
}

// SetBudget replaces the budget from the next turn on.
func (c *Core) SetBudget(b Budget) {
	c.asked = b
	c.budget = b.under(c.squeezed)
	c.watch()
}

// watch notes whether a turn has to look at anything.
func (c *Core) watch() {
	c.watchful = c.budget != (Budget{}) || c.FenceWanted()
}

// Over reports whether the stream keeps more than its budget, or a fence is wanted. Every turn asks, and most streams have
// neither.
func (c *Core) Over() bool {
	return c.watchful && (c.FenceWanted() || c.overBudget())
}

func (c *Core) overBudget() bool { return c.overBytes() > 0 || c.overRanges(1) > 0 }

// overBytes is what the stream keeps beyond the budget's bytes. What magazines hold counts whether it is
// free or in use, since frees do not count.
func (c *Core) overBytes() int64 {
	if c.budget.CacheBytes <= 0 {
		return 0
	}
	return max(0, int64((c.heap.FreeUnits()+c.keptUnits)<<sizeclass.UnitShift)-c.budget.CacheBytes)
}

// overRanges is the number of free ranges beyond the budget's, counted no further than limit. Most often
// there are not so many ranges at all, and none is looked at.
func (c *Core) overRanges(limit int) int {
	most := c.budget.CacheRanges
	if most <= 0 || c.heap.FreeRanges() <= most {
		return 0
	}
	limit = min(limit, c.heap.FreeRanges()-most)
	return max(0, c.heap.PageRanges(most+limit)-most)
}

// unpin retires the spans that nobody uses where the stream keeps more than its budget of bytes: the pages beside them cannot be given
// back otherwise. Every turn that is over the budget gives back what it can; a tick does this, so that a class at work has its span
// carved anew ten times a second at most.
func (c *Core) unpin() {
	if c.spanUnits > 0 && c.overBytes() > 0 {
		c.retireIdle()
	}
}

// MostPages is how many pages the stream can take for a request of some without being over its budget of bytes; 0: as many
// as there are.
func (c *Core) MostPages(pages uint32) uint32 {
	if c.budget.CacheBytes <= 0 {
		return 0
	}
	pageBytes := int64(c.pageUnits) << sizeclass.UnitShift
	kept := int64(c.heap.FreeUnits()+c.keptUnits) << sizeclass.UnitShift //nolint:gosec // of one arena
	spare := max(pageBytes, c.budget.CacheBytes-kept)/pageBytes - 1      // the last of the pages may hardly be used
	return uint32(min(int64(pages)+spare, 1<<32-1))                      //nolint:gosec // bounded here
}

// keptLimit is what may lie in magazines of large blocks, in units.
func (c *Core) keptLimit() uint64 {
	limit := max(c.livePeak/magazineShare, magazineFloor) >> c.squeezed.keptShift
	if c.budget.CacheBytes > 0 {
		limit = min(limit, uint64(c.budget.CacheBytes)>>sizeclass.UnitShift/2)
	}
	return limit
}

// Excess gives up what is over the budget, or nothing: first what magazines hold beyond their part, then
// pages of the shortest ranges until the bytes fit, then whole ranges until their number does. The
// result is valid until the next call of the core. With covered only pages that a fence covers leave.
func (c *Core) Excess(covered bool) []Run {
	if !c.overBudget() {
		return nil
	}
	c.Drain()
	for c.overBytes() > 0 && c.keptUnits > c.keptLimit() && c.evictOldest() {
	}
	pageBytes := int64(c.pageUnits) << sizeclass.UnitShift
	c.taken = c.taken[:0]
	c.takeInto(uint32((c.overBytes()+pageBytes-1)/pageBytes), covered, func() bool { return true })
	if ranges := c.overRanges(c.heap.FreeRanges()); ranges > 0 {
		until := len(c.taken) + ranges
		c.takeInto(^uint32(0), covered, func() bool { return len(c.taken) < until })
	}
	return c.taken
}
