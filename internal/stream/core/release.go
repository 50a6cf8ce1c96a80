package core

import "github.com/go-vram/vram/internal/stream/magazine"

// Release gives whole pages to the caller, for the pool: magazines of large blocks are closed, spans that no buffer uses are
// retired, and up to limit pages leave the heap, with covered those that a fence covers. The result is valid
// until the next call of the core.
func (c *Core) Release(limit uint32, covered bool) []Run {
	c.Drain()
	c.room.closeIdle()
	return c.takeOut(limit, covered)
}

// ReleaseSome gives free runs to the caller, for the pool: about the shortest one that has so many pages, whole, so that longer ones
// stay; else the longest, until they come to so many. With covered only pages that a fence covers leave, of the longest. No magazine
// is closed for it. The result is valid until the next call of the core.
func (c *Core) ReleaseSome(pages uint32, covered bool) []Run {
	c.Drain()
	within := c.coverage.within(covered)
	if within == nil {
		if runs := c.ranges.takeFitting(pages); len(runs) > 0 {
			return runs
		}
	}
	return c.ranges.takeLongest(pages, true, within)
}

// takeOut takes whole pages out of the heap. The result is valid until the next call.
func (c *Core) takeOut(limit uint32, covered bool) []Run {
	return c.ranges.takePages(limit, c.coverage.within(covered), func() bool { return true })
}

// Over reports whether the stream keeps more than its budget, or a fence is wanted. Every turn asks, and
// most streams have neither.
func (c *Core) Over() bool { return c.FenceWanted() || c.limits.bounded && c.limits.exceeded() }

// Excess releases what is over the budget, or nothing: first what magazines hold beyond their part, then
// pages of the shortest ranges until the bytes fit, then whole ranges until their number does. The result is
// valid until the next call of the core. With covered only pages that a fence covers leave.
func (c *Core) Excess(covered bool) []Run {
	if !c.limits.exceeded() {
		return nil
	}
	c.Drain()
	for c.limits.overBytes() > 0 && c.retention.units > c.retention.limit() && c.retention.evictOldest() {
	}
	runs := c.takeOut(c.limits.overPages(), covered)
	if ranges := c.limits.overRanges(c.ranges.heap.FreeRanges()); ranges > 0 {
		until := len(runs) + ranges
		runs = c.ranges.takeMore(^uint32(0), c.coverage.within(covered), func() bool { return len(c.ranges.taken) < until })
	}
	return runs
}

// Coalesce merges all that is free: what callers freed comes home, magazines of large blocks with a free
// slot are closed, and spans that no buffer uses are retired. The pages stay.
func (c *Core) Coalesce() {
	c.Drain()
	c.room.closeIdle()
}

// Close ends the magazines: what is free goes to the heap, what is live comes home one by one and wakes the
// owner. The pages stay until Return.
func (c *Core) Close() {
	c.Keep(false)
	c.inFlight.endSlack()
	c.owner.Drain()
	c.Drain()
	c.retention.evictAll()
	c.spans.closeAll()
}

// Return takes home what was freed after Close and returns all whole pages.
func (c *Core) Return() []Run {
	c.Drain()
	return c.takeOut(^uint32(0), false)
}

// Keep keeps all pages in the stream, or lets them leave again: a captured graph has their addresses. Close ends it.
func (c *Core) Keep(keep bool) { c.ranges.kept = keep }

// Shut ends the magazines and nothing else: no caller is served any more, what is free or comes home stays
// where it is.
func (c *Core) Shut() {
	c.owner.LetTakeBack(0)
	c.owner.Spans.Each(c.owner.Spans.Close)
	c.owner.Exacts.Each(func(m *magazine.Exact) { c.owner.Exacts.Close(m, func(*magazine.Slot) {}) })
}

// End makes every later free say that the device is closed.
func (c *Core) End() {
	c.inFlight.endSlack()
	c.owner.End()
}
