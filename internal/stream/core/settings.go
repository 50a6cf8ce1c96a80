package core

import "github.com/go-vram/vram/internal/stream/magazine"

// Settings are what may change while a cache is in use.
type Settings struct {
	Budget Budget
	// Exact lets no magazine serve any more, so that every allocation takes a turn, where what lives is counted.
	Exact bool
	// AgeTicks is for how many ticks in a row pages have to be free until they are surplus; 0: they never are.
	AgeTicks int
	// Share is that of the allocations that are sampled: the caller's part is in package streams.
	Share magazine.Share
}

// SetSettings replaces the settings from the next turn on. Where Exact changes it visits every magazine.
func (c *Core) SetSettings(s Settings) {
	c.SetBudget(s.Budget)
	c.setExact(s.Exact)
	c.surplus.setWindow(s.AgeTicks)
	c.owner.SetShare(s.Share)
	c.misses.stability.restart(c.misses.Turns)
}

// setExact begins or ends to count exactly.
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
		c.spans.unshelve()
		if c.wanted.on {
			c.owner.Spans.ShelveAll()
		}
	}
	c.usage.publish()
}
