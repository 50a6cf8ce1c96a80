package core

// Mapped are the pages that are mapped on the device while no job has begun that was planned since: those of a job in
// flight count as they were before it. The runs rise, and do not touch.
func (c *Core) Mapped() []Run { return c.memory.Mapped() }

// Closing reports whether the pool refuses what comes: a Close has come, or the actor has ended.
func (c *Core) Closing() bool { return c.phase.closing }

// Pause starts a job without operations, for which no other is in flight then. It does nothing while one is.
func (c *Core) Pause() *Effects {
	c.fx.reset()
	if c.scheduler.rests() {
		c.jobs.start(&Job{})
	}
	return &c.fx
}
