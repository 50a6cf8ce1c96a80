package core

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/memory"
)

// answers lends memory to requests, and refuses or ends them.
type answers struct {
	settings *Settings
	memory   *memory.Memory
	clients  *clients
	queue    *queue
	waiters  *waiters
	budget   *budget
	phase    *phase
	fx       *Effects
}

// grantFree serves a request from free memory, and reports whether it has all its runs.
func (a *answers) grantFree(r *request) bool {
	if r.way != nil { // free pages share handles with pages of others
		return false
	}
	for {
		free, ok := a.memory.Fit(r.client, r.pages)
		if !ok {
			return false
		}
		part := memory.Part{Tag: free.Tag}
		part.Run, _ = free.Run.Front(a.lendPages(r, free.Run.Pages))
		r.keep(part)
		a.memory.Lend(free.Run.First, part.Run, r.client)
		a.clients.hold(a.clients.all[r.client], uint64(part.Run.Pages))
		if a.grant(r, part.Run) {
			return true
		}
	}
}

// assemble grants a window that is free as it is: runs side by side with tags of which the client may use each, so that no
// single run was long enough. It reports whether there is one.
func (a *answers) assemble(r *request) bool {
	w, ok := a.memory.Room(memory.User{Client: r.client}, r.pages)
	if !ok || w.Missing > 0 {
		return false
	}
	a.grantWindow(r, a.memory.Take(w.Run), w.Run)
	return true
}

// grantWindow lends a window whose pages are busy. It reports whether the request has all that it wants.
func (a *answers) grantWindow(r *request, parts memory.Parts, window Run) bool {
	r.keep(parts...)
	a.memory.Transfer(window, r.client)
	a.clients.hold(a.clients.all[r.client], uint64(window.Pages))
	return a.grant(r, window)
}

// grant answers a request with a run, if that is all it wants; else the run is kept for the answer, and the
// request looks for the next. A run that is longer than wanted serves the next as far as it goes.
func (a *answers) grant(r *request, run Run) (all bool) {
	spare := run.Pages - r.pages
	for len(r.more) > 0 && r.more[0] <= spare {
		spare -= r.more[0]
		r.more = r.more[1:]
	}
	if len(r.more) > 0 {
		r.lent = append(r.lent, run)
		r.pages, r.more = r.more[0], r.more[1:]
		next := rungLook // the others may not have been needed up to now
		if r.askedAll {
			next = rungJoin
		}
		r.rung, r.taking = next, notTaken
		a.queue.searchAgain()
		return false
	}
	r.done = true
	effect.Push(&a.fx.Grants, Grant{Client: r.client, Token: r.token, Run: run, More: r.lent, Mapped: r.mapped})
	if cl := a.clients.all[r.client]; cl.reserves {
		a.setAside(cl, run, r.pages)
	} else {
		a.clients.setGiven(cl, cl.givenBytes+r.blockBytes, a.memory.LentBytes())
	}
	a.served(r)
	return true
}

// served counts a request that has been answered with memory.
func (a *answers) served(r *request) {
	a.waiters.served(r)
	if r.waits() {
		r.lent, r.parts = nil, nil // the client's
		a.waiters.drop(r)
	}
}

// lendShare is the part of a long free run that is lent at once: an eighth, so that a stream which works its way into memory
// that was mapped ahead asks seldom. Not more: another stream may need the rest, and would have to ask for it. A whole run is
// lent where there is no other stream, since one search then sees all free memory, and while clients miss in turns, since the
// rest of the run would be asked for again; but not during a warm-up, which would map again the pages that it released. No more
// than wanted is lent while requests wait, where the run does not hold the whole request, and to a client that has returned a
// surplus. A client that has been idle gets no more than it has used lately where too much is reserved; not always, since
// clients may need all of it, and would get smaller pieces, one client's among another's.
const lendShare = 8

// lendPages returns how much of a free run a request gets: no more than its client would return at once.
func (a *answers) lendPages(r *request, runPages uint32) uint32 {
	cl := a.clients.all[r.client]
	if a.waiters.count() > 0 || cl.thriftTicks > 0 { // it is one of them, or passes them
		return r.pages
	}
	if len(r.more) > 0 && r.wanted() > uint64(runPages) {
		return r.pages
	}
	n := runPages
	if a.clients.climbs == 0 && len(a.clients.ids) > 1 || a.queue.warming() { // taken runs are lent whole
		n /= lendShare
	}
	if r.most > 0 {
		n = min(n, r.most)
	}
	if cl.wakingTicks > 0 && a.budget.tooMuch() {
		n = min(n, cl.lackedPages(a.memory.PageBytes()))
	}
	return max(r.pages, n)
}

// setAside keeps a reservation's pages of a grant; the rest is free.
func (a *answers) setAside(cl *client, run Run, pages uint32) {
	kept, spare := run.Front(pages)
	if spare.Pages > 0 {
		a.clients.release(cl, uint64(spare.Pages))
		a.memory.Free(spare, memory.Tag{})
	}
	cl.reserved = append(cl.reserved, kept)
}

// draw serves a request from a reservation, if that has all that it wants in one run. The pages change hands without having
// been free.
func (a *answers) draw(r *request, from *client) bool {
	for i, have := range from.reserved {
		pages := r.wanted()
		if uint64(have.Pages) < pages {
			continue
		}
		run, rest := have.Front(uint32(pages))
		if from.reserved[i] = rest; rest.Pages == 0 {
			from.reserved = slices.Delete(from.reserved, i, i+1)
		}
		a.clients.release(from, pages)
		a.clients.report(from, max(0, from.liveBytes-a.memory.Bytes(run.Pages)))
		a.memory.Transfer(run, r.client)
		a.clients.hold(a.clients.all[r.client], pages)
		r.drawn = true
		return a.grant(r, run)
	}
	return false
}

// lendHome lends pages that clients returned on request, and that no other client took, to the client that returned them, if
// takes reports true for that one. The search of a stream finds the best fit only among the memory that it holds; memory that
// stays in the pool would be found by a second search, later and worse fitting.
func (a *answers) lendHome(takes func(*client) bool) {
	takesPages := func(id Client) bool {
		cl := a.clients.all[id]
		return cl != nil && !cl.gone && takes(cl)
	}
	a.memory.LendHome(takesPages, func(id Client, run Run) {
		cl := a.clients.all[id]
		cl.dirty = true
		a.clients.hold(cl, uint64(run.Pages))
		effect.Push(&a.fx.Grants, Grant{Client: id, Run: run})
	})
}

// offer asks the client of a waiting request to serve it from the memory that it keeps and the pages that it gets back.
func (a *answers) offer(r *request) verdict {
	a.lendHome(r.isOf)
	r.offering = true
	effect.Push(&a.fx.Offers, Offer{r.client, r.token})
	return onward
}

// putBack frees the runs that an incomplete request has, each page under its old tag.
func (a *answers) putBack(r *request) {
	for _, run := range r.lent {
		a.clients.release(a.clients.all[r.client], uint64(run.Pages))
		a.memory.FreeParts(r.parts, run)
	}
	r.lent, r.parts = nil, nil
}

// unpark ends the wait of a request that gets nothing.
func (a *answers) unpark(r *request) {
	a.putBack(r)
	a.waiters.drop(r)
}

// fail ends a climb that has found nothing: a request that waits still waits, any other is denied.
func (a *answers) fail(r *request) verdict {
	if r.waits() && (r.err == nil || errors.Is(r.err, cudadrv.OutOfMemory)) {
		a.waitOn(r)
	} else {
		a.deny(r, r.err)
	}
	return leave
}

// waitOn ends an attempt that has found nothing: the request still waits, and keeps nothing of the attempt.
func (a *answers) waitOn(r *request) {
	a.putBack(r)
	a.waiters.attemptFailed(r)
}

// deny refuses a request. Runs that it has got stay with its client, as cache: they may be such as only that
// client may use without a fence.
func (a *answers) deny(r *request, err error) { a.refuse(r, err, nil) }

// refuse is like deny, and names the deadlock that is the reason, if any.
func (a *answers) refuse(r *request, err error, because *Deadlock) {
	r.done = true
	if r.kind != refill {
		a.end(r, err)
		return
	}
	if r.waits() {
		a.unpark(r)
	}
	for _, run := range r.lent {
		if a.phase.closing { // all memory goes, or no request is served any more
			break
		}
		a.clients.all[r.client].dirty = true
		effect.Push(&a.fx.Grants, Grant{Client: r.client, Run: run})
	}
	effect.Push(&a.fx.Denials, Denial{
		Client: r.client, Token: r.token, Shortage: a.shortage(r), Err: err, Deadlock: because, Quiet: r.patience == Patient,
	})
}

// denyAll refuses requests.
func (a *answers) denyAll(all []*request, err error) {
	for _, r := range all {
		a.deny(r, err)
	}
}

// end completes a Warm or Trim.
func (a *answers) end(r *request, err error) {
	r.done = true
	if r.token != 0 { // else it is the pool's own
		effect.Push(&a.fx.Ends, End{Token: r.token, Bytes: r.freed, Err: err})
	}
}

// shortage describes the memory at the refusal of a request.
func (a *answers) shortage(r *request) Shortage {
	m := a.memory
	s := Shortage{
		RequestedBytes: r.requestedBytes,
		ReservedBytes:  m.ReservedBytes() + m.OutsideBytes(),
		LimitBytes:     a.settings.LimitBytes + m.OutsideBytes(),
		LimitSource:    a.settings.LimitSource,
		SharedBytes:    m.OutsideBytes(),
		MissingBytes:   int64(r.wanted()) * m.PageBytes(), //nolint:gosec // pages of one request
		Waited:         r.waits(),
		FreeBytes:      m.FreeBytes(), LargestFreeBytes: m.MaxFreeBytes(), PendingBytes: m.PendingBytes(),
	}
	if r.capped {
		s.DriverBytes = a.budget.driverBytes(r)
	}
	for _, id := range a.clients.ids {
		cl := a.clients.all[id]
		held := int64(cl.heldPages) * m.PageBytes() //nolint:gosec // pages of one arena
		s.Holdings = append(s.Holdings, Holding{
			Client: id, HeldBytes: held,
			LiveBytes:      min(cl.buffersBytes(), held), // returned pages may arrive before the report that they are unused
			UncoveredBytes: cl.uncoveredBytes, UnpassedBytes: m.TaggedBytes(id), Reserves: cl.reserves,
		})
	}
	return s
}

// keep remembers the tags of pages that the request gets, which it may have to put back before it has all of them.
func (r *request) keep(parts ...memory.Part) {
	if len(r.wants) > 0 {
		r.parts.Add(parts...)
	}
}
