package core

import "fmt"

// LimitError says that memory cannot be mapped ahead, since the limit leaves no room.
type LimitError struct {
	WantedBytes int64 // more than is held
	LimitBytes  int64
}

// Error says the facts in one line.
func (e *LimitError) Error() string {
	return fmt.Sprintf("pool: the limit of %d bytes leaves no room for %d more", e.LimitBytes, e.WantedBytes)
}

// climbWarm goes on with a warm-up: it holds the runs that it has got until all are there, so that no
// run is counted twice, and then frees them all. It never takes from others and never breaks the limit; plain
// segments that are free and too short make room for it.
func (c *Core) climbWarm(r *request) bool {
	for len(r.got) < len(r.warm) && r.err == nil {
		n := r.warm[len(r.got)]
		if first, ok := c.pages.fit(0, n); ok {
			run := Run{first, n}
			c.pages.takeFree(first, run, lent, warmClient)
			r.got = append(r.got, run)
			continue
		}
		w, ok := c.room(0, n)
		if r.foreseen {
			if w, ok = c.ahead(r, w, ok); !ok {
				break
			}
		}
		short := c.reservedBytes + c.bytes(w.missing) - c.settings.LimitBytes
		if ids, bytes := c.victimsOf(short, w.run); ok && c.plain && short > 0 && bytes >= short {
			c.startWindow(r, w.run, ids) // segments that nobody uses and that are too short
			return false
		}
		if !ok || short > 0 {
			r.err = &LimitError{WantedBytes: c.bytes(n), LimitBytes: c.settings.LimitBytes}
			break
		}
		c.grow(r, w)
		return false
	}
	c.letGo(r)
	if r.foreseen && r.err != nil {
		c.forecast.spoiled = true
	}
	c.end(r, r.err)
	return true
}

// Warmed says how far the Warm that a job was for has come: what was mapped for it, and all that it wants, in bytes; 0
// where it was for none.
func (c *Core) Warmed(j *Job) (mappedBytes, wantedBytes int64) {
	r := j.request
	if r == nil || r.kind != warm || r.token == 0 {
		return 0, 0
	}
	for _, pages := range r.warm {
		wantedBytes += c.bytes(pages)
	}
	return r.freed, wantedBytes
}

// letGo frees what a warm-up holds. It has to look for all of it again.
func (c *Core) letGo(r *request) {
	for _, run := range r.got {
		c.pages.addFree(run, 0, 0)
	}
	r.got = r.got[:0]
}

// yield lets warm-ups that hold memory start over when a refill waits: what they hold is nobody's, and a
// refill is never denied or kept waiting for it. It reports whether there was any.
func (c *Core) yield() bool {
	if len(c.queue.refills) == 0 || c.closing {
		return false
	}
	held := false
	for _, r := range c.queue.others {
		held = held || len(r.got) > 0
		c.letGo(r)
	}
	return held
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
		c.poll(r)
	case rungRecycle:
		r.rung = rungDeny
		if r.err == nil && c.release(r, c.reservedBytes-r.keep) {
			return false
		}
	case rungOffer, rungSearch, rungAskOwn, rungLook, rungGrow, rungWait, rungHold, rungDeny:
		c.end(r, r.err)
		return true
	}
	return false
}

// bound gives back what is free beyond the budget of the pool, in bytes and in runs, and beyond a limit that was
// lowered below what was held. After a failure it rests until the next Tick, so that a driver that refuses is not
// asked without end.
func (c *Core) bound() {
	if c.boundFailed {
		return
	}
	over := c.reservedBytes - c.settings.LimitBytes
	held := c.heldBytes()
	if c.settings.CacheBytes > 0 {
		over = max(over, min(c.FreeBytes()-c.settings.CacheBytes, c.reservedBytes-held))
	}
	if over > 0 && c.release(nil, over) {
		return
	}
	if c.settings.CacheRuns > 0 && held == 0 && c.pages.clean.bins.Count() > c.settings.CacheRuns {
		c.release(nil, 1) // the shortest run first
	}
}

// obeyLimit begins a trim of the pool's own where a limit was lowered below what is held: clients are asked for what
// they do not use, tick by tick.
func (c *Core) obeyLimit() {
	if c.reservedBytes > c.settings.LimitBytes && c.queue.empty() && !c.closing {
		c.enqueue(&request{kind: trim, keep: c.settings.LimitBytes, rung: rungAskAll})
	}
}

// close denies what waits and gives all memory back in one job, behind the job in flight.
func (c *Core) close(m Close) {
	if c.closed || c.closing && !c.abandoned {
		c.fx.Ends = append(c.fx.Ends, End{Token: m.Token, Err: ErrClosed})
		return
	}
	c.closing, c.abandoned, c.closeToken = true, false, m.Token
	c.denyAll(ErrClosed)
	c.finishClose()
}

// finishClose starts the last job once nothing is in flight, and ends the close after it.
func (c *Core) finishClose() {
	if !c.closing || c.closed || c.abandoned || c.job != nil {
		return
	}
	j := &Job{purpose: forClose}
	for id := range c.pages.handles {
		h := &c.pages.handles[id]
		if !h.live {
			continue
		}
		if c.plain {
			j.Ops = append(j.Ops, Op{Verb: Free, Index: int32(id), Run: h.run, Address: h.at})
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
			cl.heldPages, cl.reserved = 0, nil
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
