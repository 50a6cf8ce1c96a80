package core

import "github.com/go-vram/vram/internal/stream/magazine"

// Release returns up to limit whole pages for the pool. It closes magazines of large blocks and retires spans
// that no buffer uses. If covered is set, only pages that a fence covers leave. The result is valid until the
// next call of the core.
func (c *Core) Release(limit uint32, covered bool) []Run {
	c.Coalesce()
	return c.takeOut(limit, covered)
}

// ReleaseSome returns free runs for the pool: about the shortest one that has that many pages, whole, so that
// longer ones stay; else the longest ones until they add up to so many. If covered is set, it takes only
// pages that a fence covers, of the longest. It closes no magazine. The result is valid until the next call
// of the core.
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

// Over reports whether the stream keeps more than its budget, or a fence is requested. Every turn calls it,
// and most streams have neither.
func (c *Core) Over() bool { return c.FenceWanted() || c.limits.bounded && c.limits.exceeded() }

// Excess releases the excess over the budget, or nothing: first the excess of magazines, then
// pages of the shortest ranges until the bytes fit, then whole ranges until their number fits. If covered is
// set, only pages that a fence covers leave. The result is valid until the next call of the core.
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

// Coalesce merges all free memory: it collects freed slots, closes magazines of large blocks with a
// free slot, and retires spans that no buffer uses. The pages stay.
func (c *Core) Coalesce() {
	c.Drain()
	c.room.closeIdle()
}

// Close closes the magazines. Free memory goes to the heap; each later free of a live block wakes the owner.
// The pages stay until Return.
func (c *Core) Close() {
	c.Keep(false)
	c.inFlight.endSlack()
	c.owner.Drain()
	c.Drain()
	c.retention.evictAll()
	c.spans.closeAll()
}

// Return collects slots freed after Close and returns all whole pages.
func (c *Core) Return() []Run {
	c.Drain()
	return c.takeOut(^uint32(0), false)
}

// Keep sets whether all pages stay in the stream: a captured graph has their addresses. Close clears it.
func (c *Core) Keep(keep bool) { c.ranges.kept = keep }

// Shut only closes the magazines: they serve no caller any more, and free and freed blocks stay where they
// are.
func (c *Core) Shut() {
	c.owner.LetTakeBack(0)
	c.owner.Spans.Each(c.owner.Spans.Close)
	c.owner.Exacts.Each(func(m *magazine.Exact) { c.owner.Exacts.Close(m, func(*magazine.Slot) {}) })
}

// End makes every later free return that the device is closed.
func (c *Core) End() {
	c.inFlight.endSlack()
	c.owner.End()
}
