package core

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/internal/pool/memory"
)

// asks has clients return memory that they do not use.
type asks struct {
	memory  *memory.Memory
	clients *clients
	queue   *queue
	budget  *budget
	fx      *Effects
}

// ask tells those of the clients that have pages to return all that they do not use; a request goes on when all have.
func (a *asks) ask(r *request, want func(*client) bool) {
	for _, id := range a.clients.holders {
		if cl := a.clients.all[id]; want(cl) {
			a.askAll(r, cl)
		}
	}
	a.queue.awaits(r)
}

// askOwn is ask for the client of a request, whether it has pages or not.
func (a *asks) askOwn(r *request) {
	if cl := a.clients.all[r.client]; cl != nil {
		a.askAll(r, cl)
	}
	a.queue.awaits(r)
}

func (a *asks) askAll(r *request, cl *client) {
	if cl.mayReturn() {
		a.askOne(r, cl, 0)
		a.clients.unclaimed = true
	}
}

// askOne tells a client to return its longest free runs, until they come to so many pages, or, with
// 0, all that it does not use.
func (a *asks) askOne(r *request, cl *client, pages uint32) {
	r.awaits = append(r.awaits, cl.id)
	if cl.asked {
		cl.askedAgain = cl.askedAgain || pages == 0 && cl.askedPages > 0
		return
	}
	cl.moves = r.kind == refill && cl.id != r.client
	cl.asked, cl.askedPages, cl.dirty = true, pages, pages > 0
	a.fx.Asks.Push(Ask{cl.id, pages})
}

// again asks a client for all that has just answered a smaller Ask, if that is wanted meanwhile. It
// reports whether it is.
func (a *asks) again(cl *client) bool {
	if !cl.askedAgain || !cl.mayReturn() {
		return false
	}
	cl.asked, cl.askedAgain, cl.askedPages, cl.dirty = true, false, 0, false
	a.fx.Asks.Push(Ask{Client: cl.id})
	return true
}

// takeRun asks the client with the most free memory of those that have a run of so many pages for
// its longest run. A client whose memory the device still uses is not asked for more of it. It
// reports whether there is such a client.
func (a *asks) takeRun(r *request, pages uint32) bool {
	for _, cl := range a.richest(r) {
		if cl.usage.MaxFreePages >= pages && a.memory.TaggedBytes(cl.id) == 0 {
			a.askOne(r, cl, pages)
			a.queue.awaits(r)
			return true
		}
	}
	return false
}

// collect asks the clients with the most free memory for their longest runs, until those come to so
// many pages.
func (a *asks) collect(r *request, pages uint32) {
	for _, cl := range a.richest(r) {
		if pages == 0 {
			break
		}
		a.askOne(r, cl, pages)
		pages -= min(pages, cl.usage.FreePages)
	}
	a.queue.awaits(r)
}

// richest are the clients that have free memory, the one with the most first, but that of a request.
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

// look has the other clients take home what was freed, once for a request, so that what they use
// and have is that of one moment. It reports whether any has to.
func (a *asks) look(r *request) bool {
	if r.looked {
		return false
	}
	r.looked = true
	for _, id := range slices.Clone(a.clients.stale) {
		if cl := a.clients.all[id]; id != r.client && !cl.gone {
			cl.usage.Stale = false
			a.clients.count(cl)
			r.looking = true
			a.fx.Looks.Push(id)
		}
	}
	return r.looking
}

// awaitAnswers has a request wait for the answers that are under way.
func (a *asks) awaitAnswers(r *request) {
	for _, id := range a.clients.ids {
		if a.clients.all[id].asked {
			r.awaits = append(r.awaits, id)
		}
	}
	a.queue.awaits(r)
}

// everyone is asked of a request for everything.
func everyone(*client) bool { return true }
