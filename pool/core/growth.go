package core

// growFor maps a window for a request that is longer than what it wants, as far as the soft budget allows that, or as long, or
// as its first run.
func (c *Core) growFor(r *request) {
	wanted := uint32(r.wanted()) // no more than the arena has
	n := max(wanted, c.share(c.settings.Policy.Step))
	if !r.raised {
		n = wanted + c.share(c.settings.Policy.SteadyStep)
	}
	if c.plain { // one allocation, and not more than that
		n = max(wanted, min(n, c.settings.Policy.HandlePages))
	}
	_ = c.growWithin(r, n) || n > wanted && c.growWithin(r, wanted+c.spare(r, wanted, n-wanted)) ||
		wanted > r.pages && c.growWithin(r, r.pages)
}

// spare is how many pages more than it wants a request may have within the soft budget, at most that many.
func (c *Core) spare(r *request, wanted, most uint32) uint32 {
	w, ok := c.room(r.client, wanted)
	left := (r.within(c.softBudget()) - c.reservedBytes - c.bytes(w.missing)) / c.pageBytes
	if !ok || left <= 0 {
		return 0
	}
	return uint32(min(int64(most), left)) //nolint:gosec // between 0 and most
}

// growWithin maps a window of n pages if the soft budget allows it, and the driver for all that is known.
func (c *Core) growWithin(r *request, n uint32) bool {
	soft := r.within(c.softBudget())
	w, ok := c.room(r.client, n)
	if !ok || c.reservedBytes+c.bytes(w.missing) > soft {
		return false
	}
	c.grow(r, w)
	return true
}

// share is a part of the live peak, given in 1/1024 of it, in pages.
func (c *Core) share(part int64) uint32 {
	return uint32(c.livePeakBytes / 1024 * part / c.pageBytes)
}

// softBudget is what may be reserved while there is something to recycle, and to begin with.
func (c *Core) softBudget() int64 {
	p := &c.settings.Policy
	slack := p.Slack
	if c.holdingClients() > 1 {
		slack = max(slack, p.SharedSlack)
	}
	soft := c.livePeakBytes + c.livePeakBytes/1024*slack + p.SpareBytes + c.steadyBytes
	return min(c.settings.LimitBytes, soft)
}

// holdingClients is how many clients have memory, or had and may have it back.
func (c *Core) holdingClients() (n int) {
	for _, cl := range c.clients {
		if cl.liveBytes > 0 || cl.heldPages > 0 {
			n++
		}
	}
	return n
}

// notePeak raises the live peak to what the clients last reported and to what one wants that has not reported it, and says whether it
// did. A rise ends the steady state.
func (c *Core) notePeak(wantedBytes int64) bool {
	live := c.liveBytes() + wantedBytes
	if live > c.livePeakBytes {
		c.livePeakBytes = live
		c.steadyBytes = 0
		return true
	}
	return false
}
