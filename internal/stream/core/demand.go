package core

// SetWanted sets whether every free wakes the owner: see wanted.
func (c *Core) SetWanted(on bool) {
	if c.wanted.on == on {
		return
	}
	c.wanted = wanted{on: on}
	c.owner.Want(on)
	c.misses.stability.restart(c.misses.Turns)
	if !on {
		return
	}
	c.retention.evictAll()
	c.owner.Spans.ShelveAll()
	c.spans.closeShelved() // a free into them would not wake the owner
}

// DrainAll is Drain, and while requests wait for memory it also retires idle spans.
func (c *Core) DrainAll() {
	arrived := c.owner.HasParked()
	c.Drain()
	if !c.wanted.on {
		return
	}
	c.spans.retireIdle() // the last free into a magazine with free slots did not wake the owner
	c.wanted.came = c.wanted.came || arrived
}

// Trial runs a search, and undo if the search did not find everything. Memory that undo returns was free
// before and is not reported, including the spans that the search carved and no buffer uses. Trial reports
// whether the search found everything.
func (c *Core) Trial(search func() bool, undo func()) bool {
	spanUnits, retired := c.spans.units, c.wanted.retired
	if search() {
		return true
	}
	came := c.wanted.came
	undo()
	if c.wanted.on {
		c.spans.retireIdle()
		came = came || c.spans.units < spanUnits // spans that existed before
	}
	c.wanted.came, c.wanted.retired = came, retired
	return false
}

// NoteSpare reports free whole pages as freed memory: the pool granted pages for a request that left some,
// and no other event reports them.
func (c *Core) NoteSpare() {
	if c.wanted.on && c.ranges.heap.PageRanges(1) > 0 {
		c.wanted.came = true
	}
}
