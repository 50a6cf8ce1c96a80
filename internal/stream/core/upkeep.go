package core

import "github.com/go-vram/vram/internal/pressure"

// Tick does what is due without a request.
func (c *Core) Tick() {
	c.Drain()
	c.retention.shrink()
	if c.spans.units > 0 && c.limits.overBytes() > 0 {
		// Pages beside idle spans cannot be released otherwise. Every turn over the budget releases what
		// it can; a tick does this, so that a class at work has its span carved anew ten times a second
		// at most.
		c.spans.retireIdle()
	}
	c.inFlight.tick()
	if c.limits.squeezed.eager { // no memory shall wait to share a fence
		c.Press()
	}
	c.idle.note()
	c.WantFence()
	if c.usage.exact {
		c.spans.retireIdle()
		c.usage.publish()
	}
}

// SetPressure sets the level. What magazines of large blocks hold beyond their part goes back to the heap at
// the next tick.
func (c *Core) SetPressure(level pressure.Level) {
	if level == c.limits.level {
		return
	}
	c.limits.press(level)
}

// Idle reports whether nothing has happened for a while.
func (c *Core) Idle() bool { return c.idle.ticks >= c.limits.squeezed.idleTicks }

// Decay releases a part of what an idle stream keeps: half of its free pages at each tick, then all,
// magazines included. With covered only pages that a fence covers leave. The result is valid until the next call of the core.
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
