package core

import "github.com/go-vram/vram/streams/magazine"

const (
	// idleTicks is how many ticks in a row nothing may have happened before a stream counts as idle. Not fewer: a program
	// that looks at its results, loads data or waits for a request pauses for a good part of a second and goes on as before, and
	// what was given back costs a request to the pool each. Not more: until then what the stream keeps serves others
	// only if they ask, and is not given back to the driver.
	idleTicks = 10
	// decayTicks is for how many ticks an idle stream gives back half of what is left before it gives back all. Not fewer: who
	// comes back after a little longer finds a part. Not more: by then a hundredth is left.
	decayTicks = 6
)

// idle is what a core remembers from tick to tick.
type idle struct {
	digest uint64
	ticks  int  // since something has happened
	spent  bool // there was nothing left to give back
}

// noteIdle looks whether anything has happened since the last tick: a request that took a turn, a block that came home,
// pages that came or went, or an allocation or free that a magazine served. A lane at work is not seen.
func (c *Core) noteIdle() {
	digest := c.misses.Turns
	mix := func(n uint64) { digest = (digest ^ n) * 0x9E3779B97F4A7C15 }
	mix(c.heap.HeldUnits())
	mix(c.heap.FreeUnits())
	c.owner.EachInstalled(func(m *magazine.Magazine) {
		mix(m.Frees())
		mix(uint64(m.FreeSlots())) //nolint:gosec // a count
	})
	if digest == c.idle.digest {
		c.idle.ticks++
		return
	}
	c.idle = idle{digest: digest}
}

// Idle reports whether nothing has happened for a while.
func (c *Core) Idle() bool { return c.idle.ticks >= c.squeezed.idleTicks }

// Decay gives up a part of what an idle stream keeps: half of its free pages at each tick, then all, magazines included;
// lanes are told to give back what they do not use. With covered only pages that a fence covers leave. The result is
// valid until the next call of the core.
func (c *Core) Decay(covered bool) []Run {
	if !c.Idle() || c.idle.spent {
		return nil
	}
	var runs []Run
	if s := c.squeezed; c.idle.ticks >= s.idleTicks+s.decayTicks {
		c.AskLanes()
		runs = c.Surrender(^uint32(0), covered)
		c.idle.spent = true
	} else {
		pages := c.heap.FreeUnits() / uint64(c.pageUnits)
		runs = c.takePages(uint32(pages+1)/2, covered) //nolint:gosec // pages of one arena
	}
	c.forgetPages()
	return runs
}

// forgetPages makes what the core itself has just given up no sign of life.
func (c *Core) forgetPages() {
	ticks, spent := c.idle.ticks, c.idle.spent
	c.noteIdle()
	c.idle.ticks, c.idle.spent = ticks, spent
}
