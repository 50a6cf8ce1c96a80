package core

// recycleFor makes room for a request by moving handles: into the window with the fewest missing pages,
// or, where the handles that reach into that window from outside are what is missing, into address space
// that was never used, where no handle is in the way. It starts no job if even that cannot serve it.
func (c *Core) recycleFor(r *request) {
	if w, ok := c.window(r.client, r.pages); ok && c.recycleInto(r, w) {
		return
	}
	if top := c.pages.top(); r.pages <= c.maxPages-top {
		c.recycleInto(r, window{run: Run{top, r.pages}, missing: r.pages})
	}
}

// recycleInto starts the job that fills a window, if the limit allows it.
func (c *Core) recycleInto(r *request, w window) bool {
	limit := c.settings.LimitBytes
	if r.capped {
		limit = min(limit, r.capBytes)
	}
	short := c.reservedBytes + c.bytes(w.missing) - min(limit, c.softBudget())
	var ids []int32
	if short > 0 {
		ids = c.victims(w.run)
	}
	var bytes int64
	for i, id := range ids {
		bytes += c.bytes(c.pages.handles[id].run.Pages)
		if bytes >= short {
			ids = ids[:i+1]
			break
		}
	}
	if c.reservedBytes+c.bytes(w.missing)-bytes > limit {
		return false
	}
	most := c.livePeakBytes / 1024 * c.settings.Policy.SteadySlack
	c.steadyBytes = max(c.steadyBytes, min(most, c.steadyBytes+bytes))
	c.startWindow(r, w.run, ids)
	return true
}
