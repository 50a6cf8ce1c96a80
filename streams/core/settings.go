package core

import "github.com/go-vram/vram/internal/heap"

// Settings are what may change while a cache is in use.
type Settings struct {
	Budget   Budget
	Strategy heap.Strategy // which free range a search takes
	// CoalesceBytes is the length below which a range that comes back is merged with its free neighbours only at
	// the next tick, when a search finds nothing, or when pages are given back. 0: all are merged at once.
	CoalesceBytes int64
	// Exact lets no magazine serve any more, so that every allocation takes a turn, where what lives is counted.
	Exact bool
	// Tape lets the stream learn the sequence of its large requests and place them by a plan.
	Tape bool
}

// SetSettings replaces the settings from the next turn on. Where anything but the budget changes it visits every
// block or magazine.
func (c *Core) SetSettings(s Settings) {
	c.strategy, c.coalesceBytes = s.Strategy, s.CoalesceBytes
	c.SetBudget(s.Budget)
	c.configure()
	c.setExact(s.Exact)
	c.setTape(s.Tape && !s.Exact)
	c.upset()
}

// Tick does what is due without a request: what callers handed over goes back, and what was kept apart is merged.
func (c *Core) Tick() {
	c.Drain()
	c.shrink()
	c.unpin()
	c.heap.Merge()
	c.slacken()
	if c.squeezed.eager { // memory that waits to share a fence is nobody's
		c.Press()
	}
	c.noteIdle()
	c.wakeTape()
	c.WantFence()
	if c.counting {
		c.closeShelved()
		c.publish()
	}
}
