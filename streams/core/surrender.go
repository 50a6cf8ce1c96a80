package core

import "github.com/go-vram/vram/streams/magazine"

// Surrender gives up whole pages: magazines of large blocks are closed, spans that nobody uses are retired, and up to limit
// pages leave the heap, with covered those that a fence covers. The result is valid until the next call of the core.
func (c *Core) Surrender(limit uint32, covered bool) []Run {
	c.Drain()
	c.closeIdle()
	return c.takePages(limit, covered)
}

// Coalesce merges all that is free: what callers gave back comes home, magazines of large blocks with a free slot are
// closed, spans that nobody uses are retired, and lanes are told to give back what they do not use. The pages stay.
func (c *Core) Coalesce() {
	c.AskLanes()
	c.Drain()
	c.closeIdle()
}

// retireIdle gives the spans that nobody uses back to the heap.
func (c *Core) retireIdle() {
	spans := c.spanUnits
	c.retireOf(c.owner.Spans.Idle())
	c.retireOf(c.shelved)
	c.wanted.retired = c.wanted.retired || c.wanted.on && c.spanUnits < spans
}

func (c *Core) retireOf(all []*magazine.Span) {
	for _, m := range all {
		if m.Open && c.owner.Spans.CloseIdle(m) {
			c.retire(m)
		}
	}
}

// takePages takes whole pages out of the heap. The result is valid until the next call.
func (c *Core) takePages(limit uint32, covered bool) []Run {
	c.taken = c.taken[:0]
	c.takeInto(limit, covered, func() bool { return true })
	return c.taken
}

// takeInto adds pages to those that were taken, until more says false.
func (c *Core) takeInto(limit uint32, covered bool, more func() bool) {
	visit := func(first, pages uint32) bool {
		c.leavePages(first, pages)
		c.taken = append(c.taken, Run{first, pages})
		return more()
	}
	if !covered || c.cover == nil {
		c.heap.TakePages(limit, visit)
		return
	}
	for limit > 0 { // what is left of a range may hold more that is covered
		n := c.heap.TakeSomePages(limit, c.cover.longest, visit)
		if n == 0 || !more() {
			return
		}
		limit -= n
	}
}
