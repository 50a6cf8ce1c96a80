package core

// SetWanted begins or ends that no block comes home unseen: see wanted.
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
	c.spans.closeShelved() // a block that comes home to them would not wake the owner
}

// DrainAll is Drain, and while requests wait for memory it also retires idle spans.
func (c *Core) DrainAll() {
	arrived := c.owner.HasParked()
	c.Drain()
	if !c.wanted.on {
		return
	}
	c.spans.retireIdle() // a last buffer that came home to a magazine with free slots did not wake the owner
	c.wanted.came = c.wanted.came || arrived
}

// Trial runs a search, and undo if that has not found everything: what comes home then was free before, and
// is not reported. That goes for the spans, too, which the search made and no buffer uses any more. It
// reports whether everything was found.
func (c *Core) Trial(search func() bool, undo func()) bool {
	spanUnits, retired := c.spans.units, c.wanted.retired
	if search() {
		return true
	}
	came := c.wanted.came
	undo()
	if c.wanted.on {
		c.spans.retireIdle()
		came = came || c.spans.units < spanUnits // one of those that were there before
	}
	c.wanted.came, c.wanted.retired = came, retired
	return false
}

// NoteSpare reports free whole pages as memory that came home: the core was granted pages for a request,
// which left some, and no other event says so.
func (c *Core) NoteSpare() {
	if c.wanted.on && c.ranges.heap.PageRanges(1) > 0 {
		c.wanted.came = true
	}
}
