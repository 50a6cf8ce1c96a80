package core

// Settings are what may change while a cache is in use.
type Settings struct {
	Budget Budget
	// Exact lets no magazine serve any more, so that every allocation takes a turn, where what lives is counted.
	Exact bool
}

// SetSettings replaces the settings from the next turn on. Where Exact changes it visits every magazine.
func (c *Core) SetSettings(s Settings) {
	c.SetBudget(s.Budget)
	c.setExact(s.Exact)
	c.upset()
}

// Tick does what is due without a request: what callers handed over goes back.
func (c *Core) Tick() {
	c.Drain()
	c.shrink()
	c.unpin()
	c.slacken()
	if c.squeezed.eager { // memory that waits to share a fence is nobody's
		c.Press()
	}
	c.noteIdle()
	c.WantFence()
	if c.counting {
		c.closeShelved()
		c.publish()
	}
}
