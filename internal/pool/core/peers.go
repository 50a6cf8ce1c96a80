package core

// Mapped returns the pages that are mapped on the device, as of the last job that ended. The runs ascend and do not touch.
func (c *Core) Mapped() []Run { return c.memory.Mapped() }

// Closing reports whether the pool refuses further requests: after a Close, or after the actor has ended.
func (c *Core) Closing() bool { return c.phase.closing }

// Pause starts a job without operations, for which no other is in flight then. It does nothing while one is.
func (c *Core) Pause() *Effects {
	c.fx.reset()
	if c.scheduler.rests() {
		c.jobs.start(&Job{})
	}
	return &c.fx
}
