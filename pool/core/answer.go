package core

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
)

// grantFree reports whether the request has all that it wants.
func (c *Core) grantFree(r *request) bool {
	for {
		first, ok := c.pages.fit(r.client, r.pages)
		if !ok {
			return false
		}
		run := Run{first, c.lendPages(r, c.pages.table[first].run)}
		if r.keepsParts() {
			r.keepPart(part{run, c.pages.table[first].client, c.pages.table[first].fence})
		}
		c.lend(first, run, r.client)
		if c.grant(r, run) {
			return true
		}
	}
}

// grant answers a request with a run, if that is all it wants; else the run is kept for the answer, and the
// request looks for the next. A run that is longer than wanted serves the next as far as it goes.
func (c *Core) grant(r *request, run Run) (all bool) {
	spare := run.Pages - r.pages
	for len(r.more) > 0 && r.more[0] <= spare {
		spare -= r.more[0]
		r.more = r.more[1:]
	}
	if len(r.more) > 0 {
		r.lent = append(r.lent, run)
		r.pages, r.more = r.more[0], r.more[1:]
		next := rungAskAll // the others may not have been needed up to now
		if r.askedAll {
			next = rungGrow
		}
		r.rung = min(r.rung, next)
		c.queue.searchAgain()
		return false
	}
	r.done = true
	c.fx.Grants = append(c.fx.Grants, Grant{Client: r.client, Token: r.token, Run: run, More: r.lent})
	if cl := c.clients[r.client]; cl.reserves {
		c.setAside(cl, run, r.pages)
	} else {
		c.setGiven(cl, cl.givenBytes+r.blockBytes)
	}
	c.served(r)
	return true
}

// lendShare is the part of a long free run that is lent at once: an eighth, so that a stream which works
// its way into memory that was mapped ahead asks seldom. Not more: another stream may need the rest, and
// would have to ask for it. Where there is no other stream all of it is lent: one search sees all that is free, and one request
// is enough. Not while a warm-up is at it: what it has let go it would map again. While requests wait, or
// where the run does not hold all that is wanted, no more is lent than is wanted.
const lendShare = 8

// lendPages is how much of a free run a request gets: no more than its client would give back at once.
func (c *Core) lendPages(r *request, runPages uint32) uint32 {
	if c.waiters.table.Waiting() > 0 { // it is one of them, or passes them
		return r.pages
	}
	if len(r.more) > 0 && r.wanted() > uint64(runPages) {
		return r.pages
	}
	n := runPages
	if len(c.ids) > 1 || slices.ContainsFunc(c.queue.others, func(q *request) bool { return q.kind == warm }) {
		n /= lendShare
	}
	if r.most > 0 {
		n = min(n, r.most)
	}
	return max(r.pages, n)
}

func (c *Core) lend(runFirst uint32, r Run, id Client) {
	c.pages.takeFree(runFirst, r, lent, id)
	c.clients[id].heldPages += uint64(r.Pages)
}

// fail ends a climb that has found nothing: a request that waits goes on waiting, any other is denied.
func (c *Core) fail(r *request) {
	if r.id != 0 && (r.err == nil || errors.Is(r.err, cudadrv.OutOfMemory)) {
		c.letWait(r)
		return
	}
	c.deny(r, r.err)
}

// assemble grants a window that is free as it is: runs side by side with tags of which the client may use
// each, so that no single run was long enough.
func (c *Core) assemble(r *request) bool {
	w, ok := c.room(r.client, r.pages)
	if !ok || w.missing > 0 {
		return false
	}
	j := &Job{}
	c.takeWindow(j, w.run)
	c.grantWindow(r, j, w.run)
	return true
}

// grantWindow lends a window whose pages are busy. It reports whether the request has all that it wants.
func (c *Core) grantWindow(r *request, j *Job, w Run) bool {
	r.keepPart(j.parts...)
	c.pages.setState(w, lent, r.client)
	c.clients[r.client].heldPages += uint64(w.Pages)
	return c.grant(r, w)
}

// deny refuses a request. Runs that it has got stay with its client, as cache: they may be such as only that
// client may use without a fence.
func (c *Core) deny(r *request, err error) {
	r.done = true
	if r.kind != refill {
		c.end(r, err)
		return
	}
	if r.id != 0 {
		c.unpark(r)
	}
	for _, run := range r.lent {
		if c.closing { // all memory goes, or nobody is served any more
			break
		}
		c.clients[r.client].dirty = true
		c.fx.Grants = append(c.fx.Grants, Grant{Client: r.client, Run: run})
	}
	c.fx.Denials = append(c.fx.Denials, Denial{
		Client: r.client, Token: r.token, Shortage: c.shortage(r), Err: err, Quiet: r.patience == Patient,
	})
}

func (c *Core) end(r *request, err error) {
	r.done = true
	if r.token == 0 { // nobody's
		return
	}
	c.fx.Ends = append(c.fx.Ends, End{Token: r.token, Bytes: r.freed, Err: err})
}
