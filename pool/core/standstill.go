package core

import (
	"slices"

	"github.com/go-vram/vram/pool/core/admission"
)

// standstill does what is to be done where nobody who waits can be served. It reports whether that may have changed
// anything.
func (c *Core) standstill() bool {
	w := &c.waiters
	if w.unsettled || w.gather != nil || c.watching() {
		return false
	}
	holders := c.holders()
	v, id := w.table.Stuck(holders)
	switch v {
	case admission.Wait:
		unheard := func(id Client) bool { return c.clients[id].holds() && c.clients[id].dirty }
		if !w.unasked || !w.table.Blocked() || !slices.ContainsFunc(c.ids, unheard) {
			return false
		}
		c.gather()
	case admission.Lift:
		w.futile = w.futile[:0]
	case admission.Confirm:
		c.gather()
	case admission.Deadlock:
		w.deadlockCount++
		d := &Deadlock{Clients: map[uint64]Client{}}
		waiting := map[admission.Account]int64{}
		w.table.Each(func(x admission.Waiter) {
			if x.Blocked {
				waiting[x.Account] += x.Bytes
			}
			if x.ID == id || len(d.Waiters) < mostNamed {
				d.Waiters = append(d.Waiters, x)
				d.Clients[x.ID] = w.parked[x.ID].client
			}
		})
		for _, a := range holders {
			d.Holders = append(d.Holders, Holder{a, waiting[a], w.table.Suspended(a)})
		}
		c.deny(w.parked[id], nil)
		c.fx.Denials[len(c.fx.Denials)-1].Deadlock = d
	case admission.Hopeless:
		c.deny(w.parked[id], nil)
	}
	return true
}

// mostNamed is how many waiters a refusal names beside its own: enough to see a pattern. Not all: thousands may be refused one after
// the other.
const mostNamed = 16

// holders are the accounts that hold memory.
func (c *Core) holders() (all []admission.Account) {
	for _, id := range c.ids {
		if cl := c.clients[id]; cl.holds() {
			all = append(all, admission.Account(id))
		}
	}
	return append(all, c.waiters.tenants...)
}

// holds reports whether a client has memory that is its own account's, as far as it has said.
func (cl *client) holds() bool { return cl.heldPages > 0 && !cl.letsOnly }

// gather begins to collect what was freed before.
func (c *Core) gather() {
	w := &c.waiters
	w.gather, w.unasked = &request{kind: gather, rung: rungAskOwn}, false
	c.queue.push(w.gather)
}

// climbGather has everybody give up what was freed before: answers that were on their way may be older than that, so that
// those are awaited first.
func (c *Core) climbGather(r *request) bool {
	holds := func(cl *client) bool { return cl.heldPages > 0 }
	switch r.rung {
	case rungAskOwn:
		r.rung = rungAskAll
		for _, id := range c.ids {
			if cl := c.clients[id]; cl.asked {
				r.awaits = append(r.awaits, id)
			}
		}
		c.queue.awaits(r)
		return false
	case rungAskAll:
		r.rung = rungDeny
		c.ask(r, holds)
		return false
	case rungOffer, rungSearch, rungLook, rungGrow, rungPoll, rungRecycle, rungWait, rungHold, rungDeny:
	}
	w := &c.waiters
	w.gather = nil
	w.unsettled = slices.ContainsFunc(c.ids, func(id Client) bool { return holds(c.clients[id]) && c.clients[id].pending > 0 })
	if !w.unsettled {
		w.table.Confirmed()
	}
	return true
}
