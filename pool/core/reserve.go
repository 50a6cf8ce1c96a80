package core

import "slices"

// endReservation ends a reservation: what is left of it is free.
func (c *Core) endReservation(m Unreserve) {
	cl := c.clients[m.Client]
	if cl == nil || !cl.reserves {
		return
	}
	for _, run := range cl.reserved {
		cl.heldPages -= uint64(run.Pages)
		c.pages.addFree(run, 0, 0) // nobody has used it
		c.progress++
	}
	cl.reserved = nil
	c.leave(Leave{Client: m.Client, Synced: true})
}

// setAside keeps what a reservation wanted of what it was granted; the rest is free.
func (c *Core) setAside(cl *client, run Run, pages uint32) {
	if spare := run.Pages - pages; spare > 0 {
		cl.heldPages -= uint64(spare)
		c.pages.addFree(Run{run.First + pages, spare}, 0, 0)
	}
	cl.reserved = append(cl.reserved, Run{run.First, pages})
}

// draw serves a request from a reservation, if that has all that it wants in one run. The pages change hands without having been free.
func (c *Core) draw(r *request, from *client) bool {
	for i := range from.reserved {
		have := &from.reserved[i]
		pages := r.wanted()
		if uint64(have.Pages) < pages {
			continue
		}
		run := Run{have.First, uint32(pages)}
		if have.First, have.Pages = have.First+run.Pages, have.Pages-run.Pages; have.Pages == 0 {
			from.reserved = slices.Delete(from.reserved, i, i+1)
		}
		from.heldPages -= pages
		from.liveBytes = max(0, from.liveBytes-c.bytes(run.Pages))
		from.usedBytes = from.liveBytes
		c.pages.setState(run, lent, r.client)
		c.clients[r.client].heldPages += pages
		r.drawn = true
		return c.grant(r, run)
	}
	return false
}

// drawable is the reservation that a Refill names and that serves it, nil if there is none.
func (c *Core) drawable(m Refill) *client {
	if cl := c.clients[m.From]; m.From != 0 && cl != nil && cl.reserves && !cl.gone {
		return cl
	}
	return nil
}

// ReservedAheadBytes are those of reservations that nothing was drawn from yet.
func (c *Core) ReservedAheadBytes() (bytes int64) {
	for _, cl := range c.clients {
		if cl.reserves {
			bytes += int64(cl.heldPages) * c.pageBytes //nolint:gosec // pages of one arena
		}
	}
	return bytes
}
