package core

// Tick does the periodic work that needs no request.
func (c *Core) Tick() {
	c.Drain()
	c.retention.shrink()
	if c.limits.overBytes() > 0 {
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
	held, free := c.ranges.heap.HeldUnits(), c.ranges.heap.FreeUnits()
	s := c.limits.squeezed
	all := c.idle.ticks >= s.idleTicks+s.decayTicks
	if all {
		runs = c.Release(^uint32(0), covered)
	} else {
		runs = c.takeOut(uint32(free/uint64(c.ranges.pageUnits)+1)/2, covered) //nolint:gosec // pages of one arena
	}
	if c.ranges.heap.HeldUnits() != held || c.ranges.heap.FreeUnits() != free {
		c.idle.skip() // the next tick releases what callers have freed since the release
	} else {
		c.idle.spent = all // each later free is an event
	}
	return runs
}
