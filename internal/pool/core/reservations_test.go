package core

import (
	"errors"
)

// These are a world's rules of reservations: a reservation is a client that is not asked and has the pages that it asked for
// once, less those drawn. A Refill that names it is served from it in the same step, exactly, if it has as much; otherwise the
// reservation is like any other client's memory.

// errNoStream is the error of a wait on a reservation's stream.
var errNoStream = errors.New("no stream to wait")

// drawing is a Refill that must be served from a reservation in the step at hand.
type drawing struct {
	token uint64
	from  Client
	pages uint32
}

// reserve sets pages aside, as one run.
func (w *world) reserve(ch chooser) {
	id := Client(len(w.clients) + 1)
	if id > mostClients {
		return
	}
	w.clients[id] = &holder{reserves: true}
	w.send(Join{Client: id, Reserves: true})
	pages := uint32(2 + ch.pick(12)) //nolint:gosec // a few
	w.token++
	r := Refill{
		Client: id, Token: w.token, Pages: pages, Most: []uint32{pages, 0}[ch.pick(2)], Bytes: int64(pages) * pageBytes,
		LiveBytes: int64(pages) * pageBytes,
	}
	w.refills[r.Token] = r
	w.send(r)
}

// unreserve ends a reservation, at times twice: its Refill, if it waits, is denied, and its remaining pages have no owner.
func (w *world) unreserve(ch chooser) {
	id := w.someReservation(ch, func(c *holder) bool { return !c.left || ch.pick(4) == 0 })
	if id == 0 {
		return
	}
	for i := range w.pages {
		if w.pages[i].owner == id {
			w.pages[i] = owned{}
		}
	}
	w.clients[id].left = true
	w.send(Unreserve{Client: id})
	if !w.clients[id].gone {
		w.failf("reservation %d is not forgotten", id)
	}
}

// someReservation returns one for which holds reports true; 0 if there is none.
func (w *world) someReservation(ch chooser, want func(*holder) bool) Client {
	var ids []Client
	for id := Client(1); int(id) <= len(w.clients); id++ {
		if c := w.clients[id]; c.reserves && want(c) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return 0
	}
	return ids[ch.pick(len(ids))]
}

// drawFrom makes a Refill name a reservation, at times one that has ended, and notes whether it must be served from there.
func (w *world) drawFrom(ch chooser, r *Refill) {
	ended := ch.pick(8) == 0
	if r.From = w.someReservation(ch, func(c *holder) bool { return c.left == ended }); r.From == 0 {
		return
	}
	left := w.held(r.From)
	switch ch.pick(6) {
	case 0: // all of it, or a little more
		r.Pages, r.More = uint32(left+ch.pick(2)), nil //nolint:gosec // of a small arena
	case 1, 2, 3:
		r.Pages, r.More = uint32(1+ch.pick(3)), nil //nolint:gosec // a few
	}
	wanted := uint64(max(1, r.Pages))
	for _, n := range r.More {
		wanted += uint64(n)
	}
	if c, from := w.clients[r.Client], w.clients[r.From]; !c.left && !from.left && !w.closing && wanted <= uint64(left) { //nolint:gosec // not negative
		w.owed = drawing{r.Token, r.From, uint32(wanted)}
	}
}

// drawn compares the answer to a Refill served from a reservation with the reservation.
func (w *world) drawn(g Grant) {
	if g.Token != w.owed.token || len(g.More) > 0 || g.Run.Pages != w.owed.pages {
		w.failf("%+v is not the %+v", g, w.owed)
	}
	for i := g.Run.First; i < g.Run.First+g.Run.Pages; i++ {
		if w.pages[i].owner != w.owed.from {
			w.failf("%+v: page %d is %+v, not of the %+v", g, i, w.pages[i], w.owed)
		}
		w.pages[i].owner = g.Client
	}
	delete(w.refills, g.Token)
	w.owed = drawing{}
	w.say("draw %d #%d %d+%d", g.Client, g.Token, g.Run.First, g.Run.Pages)
}

// spare gives up the pages that a reservation was granted beyond its request.
func (w *world) spare(r Refill, g Grant) {
	if len(g.More) > 0 {
		w.failf("%+v sets several runs aside", g)
	}
	for i := g.Run.First + r.Pages; i < g.Run.First+g.Run.Pages; i++ {
		w.pages[i] = owned{}
	}
}

// checkReservations: the pool's reservations hold, and still have to give, the same pages.
func (w *world) checkReservations() {
	if w.closing || w.abandoned {
		return
	}
	all := 0
	for _, h := range w.core.answers.shortage(&request{}).Holdings {
		if c := w.clients[h.Client]; c == nil || c.reserves != h.Reserves {
			w.failf("%+v is of %+v", h, c)
		}
	}
	for id := Client(1); int(id) <= len(w.clients); id++ {
		if c := w.clients[id]; c.reserves && !c.gone {
			left := w.held(id)
			all += left
			cl := w.core.clients.all[id]
			if cl == nil || cl.heldPages != uint64(left) || left > 0 && cl.liveBytes != int64(left)*pageBytes { //nolint:gosec // not negative
				w.failf("reservation %d, which has %d pages, is %+v", id, left, cl)
			}
			for _, run := range cl.reserved {
				left -= int(run.Pages)
			}
			if left != 0 {
				w.failf("reservation %d has %d pages more than it has to give: %+v", id, left, cl)
			}
		}
	}
	if bytes := w.core.setAsideBytes(); bytes != int64(all)*pageBytes {
		w.failf("%d bytes are set aside, the reservations have %d pages", bytes, all)
	}
}
