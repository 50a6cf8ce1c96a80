package core

import (
	"fmt"
	"slices"
)

// climbWarm goes on with a warm-up: it holds the runs that it has got until all are there, so that no
// run is counted twice, and then frees them all. It never takes from others and never breaks the limit.
func (c *Core) climbWarm(r *request) bool {
	for len(r.warm) > 0 && r.err == nil {
		n := r.warm[0]
		if first, ok := c.pages.fit(0, n); ok {
			run := Run{first, n}
			c.pages.takeFree(first, run, lent, warmClient)
			r.got = append(r.got, run)
			r.warm = r.warm[1:]
			continue
		}
		w, ok := c.window(0, n)
		if !ok || c.reservedBytes+c.bytes(w.missing) > c.settings.LimitBytes {
			r.err = fmt.Errorf("pool: the limit of %d bytes leaves no room for %d more", c.settings.LimitBytes, c.bytes(n))
			break
		}
		c.grow(r, w)
		return false
	}
	for _, run := range r.got {
		c.pages.addFree(run, 0, 0)
	}
	c.end(r, r.err)
	return true
}

// climbTrim goes on with a trim: clients return what they do not use, fences are polled, clean handles
// go back to the driver.
func (c *Core) climbTrim(r *request) bool {
	switch r.rung {
	case rungAskAll:
		r.rung = rungPoll
		if c.reservedBytes > r.keep {
			c.ask(r, func(cl *client) bool { return cl.heldPages > 0 })
		}
	case rungPoll:
		r.rung = rungRecycle
		c.poll()
	case rungRecycle:
		r.rung = rungDeny
		if r.err == nil && c.release(r, c.reservedBytes-r.keep) {
			return false
		}
	case rungSearch, rungAskOwn, rungGrow, rungWait, rungDeny:
		c.end(r, r.err)
		return true
	}
	return false
}

// bound gives back what is free beyond the budget of the pool, in bytes and in runs.
func (c *Core) bound() {
	if over := c.FreeBytes() - c.settings.CacheBytes; c.settings.CacheBytes > 0 && over > 0 {
		if c.release(nil, over) {
			return
		}
	}
	if c.settings.CacheRuns > 0 && c.pages.clean.bins.Count() > c.settings.CacheRuns {
		c.release(nil, 1) // the shortest run first
	}
}

// close denies what waits and gives all memory back in one job, behind the job in flight.
func (c *Core) close(m Close) {
	if c.closing {
		c.fx.Ends = append(c.fx.Ends, End{Token: m.Token, Err: ErrClosed})
		return
	}
	c.closing, c.closeToken = true, m.Token
	for _, r := range c.queue {
		if c.job == nil || c.job.request != r {
			c.deny(r, ErrClosed)
		}
	}
	c.queue = slices.DeleteFunc(c.queue, func(r *request) bool { return c.job == nil || c.job.request != r })
	c.finishClose()
}

// finishClose starts the last job once nothing is in flight, and ends the close after it.
func (c *Core) finishClose() {
	if !c.closing || c.closed || c.job != nil {
		return
	}
	for _, r := range c.queue { // its job has just ended without serving it
		c.deny(r, ErrClosed)
	}
	c.queue = nil
	j := &Job{purpose: forClose}
	for id := range c.pages.handles {
		h := &c.pages.handles[id]
		if !h.live || h.mapd && c.lostAt(h.run) {
			continue
		}
		if h.mapd {
			j.Ops = append(j.Ops, Op{Verb: Unmap, Run: h.run})
		}
		j.Ops = append(j.Ops, Op{Verb: Release, Index: int32(id), Handle: h.id, Run: h.run})
	}
	if len(j.Ops) > 0 && !c.closeTried {
		c.closeTried = true
		for at := uint32(0); at < c.pages.top(); { // every mapped page is part of the job
			st := c.pages.table[at].state
			if st == free {
				n := c.pages.table[at].run
				c.pages.takeFree(at, Run{at, n}, busy, 0)
				at += n
				continue
			}
			if st == lent {
				c.pages.setState(Run{at, 1}, busy, 0)
			}
			at++
		}
		for _, cl := range c.clients {
			cl.heldPages = 0
		}
		c.start(j)
		return
	}
	c.closed = true
	var err error
	if c.reservedBytes > 0 {
		err = fmt.Errorf("pool: the driver did not take back %d bytes", c.reservedBytes)
	}
	c.fx.Ends = append(c.fx.Ends, End{Token: c.closeToken, Err: err})
}

// lostAt reports whether the pages belong to a handle that the driver would not take back.
func (c *Core) lostAt(r Run) bool {
	return c.pages.table[r.First].state == busy && c.job == nil
}
