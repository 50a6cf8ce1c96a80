package core

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/pool/memory"
)

// asks has clients return memory that they do not use: the rungs of the ladder that ask, in its order, and the asking itself.
type asks struct {
	memory  *memory.Memory
	clients *clients
	queue   *queue
	budget  *budget
	jobs    *jobs
	fx      *Effects
}

// needsOthers reports whether the soft budget does not allow growth for a request, and other clients exist.
func (a *asks) needsOthers(r *request) bool {
	return !r.waits() && len(a.clients.ids) > 1 && !a.budget.fits(r, r.pages)
}

// look makes the other clients collect their callers' frees, once for a request, so that their usage is of one moment, and the
// live peak rises by the bytes in use at one moment.
func (a *asks) look(r *request) verdict {
	if r.looked {
		return onward
	}
	r.looked = true
	for _, id := range slices.Clone(a.clients.stale) {
		if cl := a.clients.all[id]; id != r.client && !cl.gone {
			cl.usage.Stale = false
			a.clients.count(cl)
			r.looking = true
			effect.Push(&a.fx.Looks, id)
		}
	}
	return onward
}

// take asks the client with the most free memory, of those that have a run so long, for its longest run: the cheapest of all
// moves. A client whose memory the device still uses is not asked for more of it. Then take polls the fence of the run, which
// matters if the client's stream has work. One client is asked, and no other, however many there are.
func (a *asks) take(r *request) verdict {
	if a.budget.notePeak(r); a.budget.fits(r, r.pages) || a.budget.widen() && a.budget.fits(r, r.pages) {
		return onward
	}
	if !r.contended {
		r.contended = true
		a.clients.contend(r.client)
	}
	switch r.taking {
	case notTaken:
		if a.budget.buys(r, r.pages) {
			return onward
		}
		for _, cl := range a.richest(r) {
			if cl.usage.MaxFreePages >= r.pages && a.memory.TaggedBytes(cl.id) == 0 {
				a.ask(r, cl, r.pages)
				r.taking = taken
				return again
			}
		}
	case taken:
		r.taking = polled
		a.jobs.poll(r)
		return again
	case polled:
	}
	return onward
}

// askOwn asks the client of the request.
func (a *asks) askOwn(r *request) verdict {
	a.clients.asker = r.client
	if cl := a.clients.all[r.client]; cl != nil && cl.mayReturn() {
		a.ask(r, cl, 0)
	}
	return onward
}

// wouldRaisePeak reports whether a request would raise the live peak by the clients' last reports.
func (a *asks) wouldRaisePeak(r *request) bool {
	return !r.waits() && !r.noted && a.clients.usedBytes > a.budget.livePeak.bytes()
}

// collect asks the clients with the most free memory for their longest runs, until those come to the pages that a window lacks,
// where growth would break the soft budget and cannot be bought. A request that the driver has refused asks them for all.
func (a *asks) collect(r *request) verdict {
	a.budget.notePeak(r)
	pages := r.pages
	if w, ok := a.memory.Room(memory.User{Client: r.client}, r.pages); ok {
		if a.budget.fits(r, w.Missing) {
			return onward
		}
		pages = w.Missing
	}
	if r.capped {
		return a.askAll(r)
	}
	if a.budget.buys(r, pages) {
		return onward
	}
	for _, cl := range a.richest(r) {
		if pages == 0 {
			break
		}
		a.ask(r, cl, pages)
		pages -= min(pages, cl.usage.FreePages)
	}
	return onward
}

// askDirty asks, for a request that waits, all clients that may keep free pages that they were not asked for yet.
func (a *asks) askDirty(r *request) verdict {
	r.raised, r.noted, r.askedAll = a.budget.raise(a.clients.usedBytes+r.bytes), true, true
	a.askEach(r, func(cl *client) bool { return cl.dirty })
	return onward
}

// askAll asks the other clients for all unused memory, where growth would break the soft budget or exceed the driver's memory.
// After a refusal by the driver it also asks the request's own client, which may have got memory back since.
func (a *asks) askAll(r *request) verdict {
	a.budget.notePeak(r)
	if w, ok := a.memory.Room(memory.User{Client: r.client}, r.pages); ok && a.budget.fits(r, w.Missing) {
		return onward
	}
	r.askedAll = true
	a.askEach(r, func(cl *client) bool {
		return (!r.waits() || cl.dirty) && (r.capped || cl.id != r.client)
	})
	return onward
}

// askEach asks the clients that have pages, and are wanted, for all that they do not use.
func (a *asks) askEach(r *request, wanted func(*client) bool) {
	for _, id := range a.clients.holders {
		if cl := a.clients.all[id]; wanted(cl) && cl.mayReturn() {
			a.ask(r, cl, 0)
		}
	}
}

// everyone returns the wanted of a request to all clients.
func everyone(*client) bool { return true }

// ask asks a client for its longest free runs, up to so many pages, or, with 0, for all unused memory. The request waits for
// the answer.
func (a *asks) ask(r *request, cl *client, pages uint32) {
	a.clients.unclaimed = a.clients.unclaimed || pages == 0
	r.awaits = append(r.awaits, cl.id)
	a.queue.awaits(r)
	if cl.asked { // the answer may have been sent before the frees that a trim is to find
		cl.askedAgain = cl.askedAgain || pages == 0 && (cl.askedPages > 0 || r.kind != refill)
		return
	}
	cl.moves = r.kind == refill && cl.id != r.client
	cl.asked, cl.askedPages, cl.dirty = true, pages, pages > 0
	effect.Push(&a.fx.Asks, Ask{cl.id, pages})
}

// again asks a client for all after its answer to a smaller Ask, if a request has asked it for all since. It reports whether
// one has.
func (a *asks) again(cl *client) bool {
	if !cl.askedAgain || !cl.mayReturn() {
		return false
	}
	cl.asked, cl.askedAgain, cl.askedPages, cl.dirty = true, false, 0, false
	effect.Push(&a.fx.Asks, Ask{Client: cl.id})
	return true
}

// richest returns the clients that have free memory, the one with the most first, without the request's own.
func (a *asks) richest(r *request) (all []*client) {
	for _, id := range a.clients.free {
		if cl := a.clients.all[id]; cl.id != r.client && cl.mayReturn() {
			all = append(all, cl)
		}
	}
	slices.SortFunc(all, func(a, b *client) int {
		return cmp.Or(cmp.Compare(b.usage.FreePages, a.usage.FreePages), cmp.Compare(a.id, b.id))
	})
	return all
}

// awaitAnswers makes a request wait for all outstanding answers.
func (a *asks) awaitAnswers(r *request) {
	for _, id := range a.clients.ids {
		if a.clients.all[id].asked {
			r.awaits = append(r.awaits, id)
		}
	}
	a.queue.awaits(r)
}
