package core

// recycleFor makes room for a request by moving handles: into the window with the fewest missing pages,
// or, where the handles that reach into that window from outside are what is missing, into holes only,
// where no handle is in the way. It starts no job if even that cannot serve it.
func (c *Core) recycleFor(r *request) {
	if w, ok := c.room(r.client, r.pages); ok && (c.plain || r.refusals < holesRefusals) && c.recycleInto(r, w) {
		return
	}
	if c.plain {
		return
	}
	if run, ok := c.holes(r.pages); ok {
		c.recycleInto(r, window{run: run, missing: r.pages})
	}
}

// holes finds the first run of n pages that are all holes.
func (c *Core) holes(n uint32) (run Run, ok bool) {
	top := c.pages.top()
	for at := c.pages.idle.next(0, top, true); ; {
		end := c.pages.idle.next(at, top, false)
		if end == top {
			end = c.maxPages
		}
		c.eachRun(Run{at, end - at}, func(f Run) {
			if !ok && f.First-at >= n {
				run, ok = Run{at, n}, true
			}
			at = f.First + f.Pages
		})
		if !ok && end-at >= n {
			run, ok = Run{at, n}, true
		}
		if ok || end == c.maxPages {
			return run, ok
		}
		at = c.pages.idle.next(end, top, true)
	}
}

// recycleInto starts the job that fills a window, if the limit allows it.
func (c *Core) recycleInto(r *request, w window) bool {
	limit := r.within(c.settings.LimitBytes)
	budget := min(limit, c.softBudget())
	if c.plain && !r.deviceIdle { // freeing a segment waits for all work of the device: not before there is no other way
		budget = limit
	}
	short := c.reservedBytes + c.bytes(w.missing) - budget
	if r.refusals >= clearingRefusals {
		short = max(short, c.reservedBytes)
	}
	ids, bytes := c.victimsOf(short, w.run)
	if c.reservedBytes+c.bytes(w.missing)-bytes > limit {
		return false
	}
	if longer, ok := c.overgrown(r, limit+bytes); ok && bytes < short {
		w = longer
		ids, bytes = c.victimsOf(c.reservedBytes, w.run)
	}
	if !c.stands() {
		c.standing.recycledBytes += bytes
	}
	most := c.livePeakBytes / 1024 * c.settings.Policy.SteadySlack
	c.steadyBytes = max(c.steadyBytes, min(most, c.steadyBytes+bytes))
	c.startWindow(r, w.run, ids)
	return true
}

// overgrown is a window that is longer than a request wants, for growth beyond the soft budget.
func (c *Core) overgrown(r *request, mostBytes int64) (w window, ok bool) {
	n := c.share(c.settings.Policy.OverStep)
	if c.plain || r.capped || !r.raised || n <= r.pages || len(r.more) > 0 {
		return window{}, false
	}
	w, ok = c.room(r.client, n)
	return w, ok && c.reservedBytes+c.bytes(w.missing) <= mostBytes
}

// victimsOf are the first victims that come to that many bytes, or all if they do not. The result is valid until
// the next call.
func (c *Core) victimsOf(short int64, keep Run) (ids []int32, bytes int64) {
	if short <= 0 {
		return nil, 0
	}
	ids = c.victims(keep)
	for i, id := range ids {
		if bytes += c.bytes(c.pages.handles[id].run.Pages); bytes >= short {
			return ids[:i+1], bytes
		}
	}
	return ids, bytes
}
