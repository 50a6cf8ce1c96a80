package core

// Tick does the periodic work that needs no request.
func (c *Core) Tick() {
	c.Drain()
	c.retention.shrink()
	if c.spans.units > 0 && c.limits.overBytes() > 0 {
		// Pages that adjoin idle spans cannot be released otherwise. Turns over the budget release only
		// free pages; the tick retires spans, so an active class carves its span again at most ten times a
		// second.
		c.spans.retireIdle()
	}
	c.inFlight.tick()
	if c.limits.squeezed.eager { // memory must not wait for a shared fence
		c.Press()
	}
	c.idle.note()
	c.WantFence()
	if c.usage.exact {
		c.spans.retireIdle()
		c.usage.publish()
	}
}

// Idle reports whether nothing has happened for a while.
func (c *Core) Idle() bool { return c.idle.ticks >= c.limits.squeezed.idleTicks }

// Decay releases a part of an idle stream's cache: half of its free pages at each tick, then all,
// magazines included. If covered is set, only pages that a fence covers leave. The result is valid until the
// next call of the core.
func (c *Core) Decay(covered bool) []Run {
	if !c.Idle() || c.idle.spent {
		return nil
	}
	var runs []Run
	if s := c.limits.squeezed; c.idle.ticks >= s.idleTicks+s.decayTicks {
		runs = c.Release(^uint32(0), covered)
		c.idle.spent = true
	} else {
		pages := c.ranges.heap.FreeUnits() / uint64(c.ranges.pageUnits)
		runs = c.takeOut(uint32(pages+1)/2, covered) //nolint:gosec // pages of one arena
	}
	c.idle.skip()
	return runs
}
