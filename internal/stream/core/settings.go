package core

import "github.com/go-vram/vram/internal/stream/magazine"

// Settings are the parameters that may change while a cache is in use.
type Settings struct {
	Budget Budget
	// Exact stops the magazines from serving, so that every allocation takes a turn, which counts live bytes.
	Exact bool
	// AgeTicks is the number of consecutive ticks that pages must be free to be surplus; 0: they never are.
	AgeTicks int
	// Share is the sampled share of the allocations: the caller's part is in package streams.
	Share magazine.Share
}

// SetSettings replaces the settings from the next turn on. A change of Exact visits every magazine.
func (c *Core) SetSettings(s Settings) {
	c.SetBudget(s.Budget)
	c.setExact(s.Exact)
	c.surplus.setWindow(s.AgeTicks)
	c.owner.SetShare(s.Share)
	c.misses.stability.restart(c.misses.Turns)
}

// setExact starts or stops exact counting.
func (c *Core) setExact(on bool) {
	if c.usage.exact == on {
		return
	}
	c.usage.exact = on
	if on {
		c.retention.evictAll()
		c.spans.shelve()
		c.spans.retireIdle()
	} else {
		c.spans.unshelve() // none while requests wait: see SetWanted
	}
	c.usage.publish()
}
