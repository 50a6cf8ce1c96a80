package core

import (
	"cmp"
	"slices"

	"github.com/go-vram/vram/pool/core/admission"
)

// waiters are the Refills that wait, and the order in which they are served: see the package admission.
type waiters struct {
	table  admission.Table
	parked map[uint64]*request // by their ID in the table
	named  map[ticket]*request // the same
	lastID uint64

	demandBytes int64    // of all
	trying      *request // nil: none
	futile      []futile // in the epoch of the memory
	gather      *request // is under way; nil: none
	// unsettled says that something is on its way of which a client will tell: until then a standstill is none.
	unsettled bool
	// unasked says that since memory came last, or a wait began, no client that holds memory was asked whose it is: where nobody is
	// tried, since all wait for quotas, nobody is asked on the way.
	unasked bool

	tenants                  []admission.Account // that hold memory
	waitCount, deadlockCount uint64
}

// ticket is what a client names a Refill by that waits.
type ticket struct {
	client Client
	token  uint64
}

// waiting is what a request that waits has besides.
type waiting struct {
	id       uint64 // in the table; 0: it does not wait
	patience Patience
	place    Place
	offering bool   // its client has not answered yet
	blocks   uint64 // the number of its last Block
}

// futile is a wait that was tried in vain: nothing larger of the same client is worth a trial before memory changes.
type futile struct {
	client Client
	pages  uint32
	bytes  int64
	align  int64
}

func newWaiters() waiters {
	return waiters{parked: map[uint64]*request{}, named: map[ticket]*request{}}
}

// waiter is the request as the order sees it.
func (r *request) waiter() admission.Waiter {
	return admission.Waiter{
		ID: r.id, Account: r.place.Account, Priority: r.place.Priority, Age: r.place.Age, Bytes: r.bytes,
		ChargedBytes: r.place.ChargedBytes, Blocked: r.place.Blocked, Unready: r.place.Unready,
	}
}

// park lets a request wait.
func (c *Core) park(r *request) {
	w := &c.waiters
	w.lastID++
	r.id = w.lastID
	if r.wants == nil {
		r.wants = []uint32{r.pages}
	}
	if w.table.Waiting() == 0 { // nobody has said anything yet, and what came home meanwhile nobody was told
		w.stir()
		for _, cl := range c.clients {
			cl.dirty = true
		}
	}
	w.parked[r.id] = r
	w.named[ticket{r.client, r.token}] = r
	w.demandBytes += r.bytes
	w.unasked = true
	w.waitCount++
	w.table.Arrive(r.waiter())
	if c.bytes(1)*int64(r.wanted()) > c.settings.LimitBytes { //nolint:gosec // no more than the arena has
		c.deny(r, nil) // no free would help
	}
	c.advance()
}

// unpark takes a request out of those that wait: it is answered, or nobody wants the answer.
func (c *Core) unpark(r *request) {
	w := &c.waiters
	c.putBack(r)
	w.table.Remove(r.id)
	if w.parked[r.id] == r {
		delete(w.parked, r.id)
		delete(w.named, ticket{r.client, r.token})
		w.demandBytes -= r.bytes
	}
	if w.trying == r {
		w.trying = nil
	}
	r.offering = false
}

// find is the request that waits under a client's token; nil if there is none.
func (c *Core) parkedAs(id Client, token uint64) *request {
	return c.waiters.named[ticket{id, token}]
}

func (c *Core) withdraw(m Withdraw) {
	r := c.parkedAs(m.Client, m.Token)
	if r == nil {
		return
	}
	r.done = true
	c.unpark(r)
	c.queue.remove(r)
	c.advance()
}

func (c *Core) ready(m Ready) {
	if r := c.parkedAs(m.Client, m.Token); r != nil {
		r.place.Unready = false
		c.waiters.table.Ready(r.id)
		c.advance()
	}
}

func (c *Core) block(m Block) {
	if r := c.parkedAs(m.Client, m.Token); r != nil && m.Number > r.blocks {
		r.blocks, r.place.Blocked = m.Number, m.Blocked
		c.waiters.table.Block(r.id, m.Blocked)
		c.waiters.unasked = true
		c.advance()
	}
}

func (c *Core) suspend(m Suspend) {
	if cl := c.clients[m.Client]; cl != nil && m.Number > cl.suspended {
		cl.suspended = m.Number
		waits := make([][]admission.Account, len(m.Waits))
		for i, by := range m.Waits {
			waits[i] = accountsOf(by)
		}
		c.waiters.table.Suspend(admission.Account(m.Client), waits)
		by := slices.DeleteFunc(slices.Clone(m.FreedBy), func(id Client) bool { return c.clients[id] == nil && id != Anybody })
		c.waiters.table.FreedBy(admission.Account(m.Client), accountsOf(by))
		c.advance()
	}
}

func accountsOf(clients []Client) (all []admission.Account) {
	for _, id := range clients {
		all = append(all, admission.Account(id))
	}
	return all
}

// stir says that memory came that was not there before.
func (w *waiters) stir() {
	w.table.Changed()
	w.futile, w.unsettled, w.unasked = w.futile[:0], false, true
}

// retry has those that wait tried again at a tick, since nobody says when the driver has memory again.
func (c *Core) retry() {
	if c.waiters.trying == nil && c.waiters.gather == nil && c.waiters.table.Waiting() > 0 {
		c.waiters.stir()
	}
}

// admit puts into the queue whoever of those that wait is to be tried next, or what a standstill wants. It reports whether there
// is anything.
func (c *Core) admit() bool {
	w := &c.waiters
	for {
		if id, ok := w.table.Next(); ok {
			r := w.parked[id]
			if w.isFutile(r) {
				w.table.Failed(id)
				continue
			}
			c.try(r)
			return true
		}
		if !c.standstill() {
			return false
		}
		if !c.queue.empty() {
			return true
		}
	}
}

// try begins the climb of a request that waits.
func (c *Core) try(r *request) {
	r.rung, r.pages, r.more, r.err = rungOffer, r.wants[0], slices.Clone(r.wants[1:]), nil
	r.noted, r.askedAll, r.capped, r.refusals, r.waited, r.unborrowed = false, false, false, 0, false, false
	c.waiters.trying = r
	c.queue.push(r)
}

// isFutile reports whether a smaller request of the same client was just tried in vain.
func (w *waiters) isFutile(r *request) bool {
	return slices.ContainsFunc(w.futile, func(f futile) bool {
		return f.client == r.client && f.pages <= slices.Max(r.wants) && f.bytes <= r.bytes && f.align <= r.place.Align
	})
}

// offer lets the client serve a request by itself, with what it gave back and nobody took.
func (c *Core) offer(r *request) {
	r.rung = rungSearch
	top := c.pages.top()
	for at := c.pages.mapped.next(0, top, true); at < top; at = c.pages.mapped.next(at, top, true) {
		run := Run{at, c.pages.table[at].run}
		at += run.Pages
		c.giveRunHome(run, r.client)
	}
	r.offering = true
	c.fx.Offers = append(c.fx.Offers, Offer{r.client, r.token})
}

func (c *Core) offered(m Offered) {
	r := c.parkedAs(m.Client, m.Token)
	if r == nil || !r.offering {
		return
	}
	r.offering = false
	c.queue.searchAgain()
	if m.Taken {
		r.done = true
		c.queue.remove(r)
		c.served(r)
	}
	c.advance()
}

// letWait ends a trial that has found nothing. Nothing is kept of it.
func (c *Core) letWait(r *request) {
	w := &c.waiters
	c.putBack(r)
	w.trying = nil
	if w.table.Failed(r.id) && len(r.wants) == 1 && !r.capped {
		w.futile = append(w.futile, futile{r.client, r.wants[0], r.bytes, r.place.Align})
	}
}

// putBack makes free what a request has got that does not get all, each page under the tag that it had.
func (c *Core) putBack(r *request) {
	for _, run := range r.lent {
		c.clients[r.client].heldPages -= uint64(run.Pages)
		c.giveParts(&Job{parts: r.parts}, run)
	}
	r.lent, r.parts = nil, nil
}

// served counts a request that has been answered with memory, where others wait.
func (c *Core) served(r *request) {
	w := &c.waiters
	switch {
	case r.id != 0:
		w.table.Served(r.id)
		r.lent, r.parts = nil, nil // the client's
		c.unpark(r)
	case !r.drawn && c.ordered(r):
		w.table.Passed(r.waiter())
	}
}

// keepPart remembers the tags of pages that a request gets.
func (r *request) keepPart(parts ...part) {
	if !r.keepsParts() {
		return
	}
	for _, p := range parts {
		if p.client != 0 {
			r.parts = append(r.parts, p)
		}
	}
	slices.SortFunc(r.parts, func(a, b part) int { return cmp.Compare(a.run.First, b.run.First) })
}

// keepsParts reports whether what the request gets may have to be put back before it has all that it wants.
func (r *request) keepsParts() bool { return len(r.wants) > 0 }

// cleanParts cleans what requests have got that do not have all yet.
func (q *queue) cleanParts(p Passed) {
	for _, r := range q.refills {
		if len(r.parts) > 0 {
			(&Job{parts: r.parts}).passed(p)
		}
	}
}

// denyWaiters answers all that wait.
func (c *Core) denyWaiters(err error) { c.denyThose(err, func(*request) bool { return true }) }

// denyWaitersOf answers all of one client that wait.
func (c *Core) denyWaitersOf(id Client, err error) {
	c.denyThose(err, func(r *request) bool { return r.client == id })
}

func (c *Core) denyThose(err error, which func(*request) bool) {
	var all []*request
	c.waiters.table.Each(func(w admission.Waiter) {
		if r := c.waiters.parked[w.ID]; which(r) {
			all = append(all, r)
		}
	})
	for _, r := range all {
		c.deny(r, err)
	}
}

// SetTenants says which accounts hold memory beside the clients', and what those have that have a share. It is said before a step in
// which anybody waits or asks for pages.
func (c *Core) SetTenants(holders []admission.Account, usage []admission.Usage) {
	c.waiters.tenants = holders
	c.waiters.table.SetUsage(usage)
}

// WaitCount is how many requests have waited, DeadlockCount how many of them were refused since all that held memory waited.
func (c *Core) WaitCount() uint64 { return c.waiters.waitCount }

// DeadlockCount is how many requests that waited were refused since all that held memory waited.
func (c *Core) DeadlockCount() uint64 { return c.waiters.deadlockCount }

// WaiterCount is how many requests wait.
func (c *Core) WaiterCount() int { return c.waiters.table.Waiting() }

// DemandBytes are what the requests want that wait.
func (c *Core) DemandBytes() int64 { return c.waiters.demandBytes }
