package core

// asks has clients report, and return what they do not use.
type asks struct {
	clients *clients
	queue   *queue
	fx      *Effects
}

// ask tells clients to return what they do not use; a request goes on when all have.
func (a *asks) ask(r *request, want func(*client) bool) {
	for _, id := range a.clients.ids {
		cl := a.clients.all[id]
		if cl.reserves || !want(cl) || (cl.gone && cl.heldPages == 0) {
			continue
		}
		r.awaits = append(r.awaits, id)
		if !cl.asked {
			cl.asked, cl.dirty, a.clients.unclaimed = true, false, true
			a.fx.Asks.Push(id)
		}
	}
	a.queue.awaits(r)
}

// holders are asked of a request for everything: clients that hold memory.
func holders(cl *client) bool { return cl.heldPages > 0 }

// look asks the other clients what they use, before the live peak is raised by what they reported last: a client speaks when it
// needs more, and not when its buffers are freed, so that one which has gone quiet would count for ever and the budget
// would grow with every client that ever was. Only those that reported that they use something are asked. It costs a turn of each,
// and returns nothing.
func (a *asks) look(r *request) {
	for _, id := range a.clients.ids {
		if cl := a.clients.all[id]; id != r.client && !cl.gone && !cl.reserves && cl.usedBytes > 0 {
			r.awaits = append(r.awaits, id)
			r.looking = true
			if !cl.looked {
				cl.looked = true
				a.fx.Looks.Push(id)
			}
		}
	}
	a.queue.awaits(r)
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
