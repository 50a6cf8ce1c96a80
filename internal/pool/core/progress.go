package core

import (
	"slices"

	"github.com/go-vram/vram/internal/pool/admission"
)

// noProgress finds out where no request that waits can be served any more, and which one is refused then.
type noProgress struct {
	clients *clients
	queue   *queue
	waiters *waiters
	fences  *fences
	answers *answers
	asks    *asks

	tenants       []admission.Account // that hold memory
	deadlockCount uint64
}

// resolve takes the next step when no waiter can be served. It reports whether that may have changed anything.
func (n *noProgress) resolve() bool {
	w := n.waiters
	if w.count() == 0 || w.unsettled || w.gathering != nil || n.fences.watching(n.clients.mayBeAwaited) {
		return false
	}
	accounts := n.accounts()
	v, id := w.table.Stuck(accounts)
	switch v {
	case admission.Wait:
		unheard := func(cl *client) bool { return cl.dirty && !cl.chargedToOthers }
		if !w.unasked || !w.table.Blocked() || !n.clients.anyHolder(unheard) {
			return false
		}
		n.gather()
	case admission.Lift:
		w.failed.clear()
	case admission.Confirm:
		n.gather()
	case admission.Deadlock:
		n.deadlockCount++
		n.answers.refuse(w.parked[id], nil, n.deadlock(accounts, id, maxNamed))
	case admission.Hopeless:
		n.answers.deny(w.parked[id], nil)
	}
	return true
}

// maxNamed is how many other waiters a refusal names: enough to see a pattern. Not all: thousands may be refused one after the
// other.
const maxNamed = 16

// deadlock returns the reason of a refusal: the accounts, and the refused request with at most so many others.
func (n *noProgress) deadlock(accounts []admission.Account, refused uint64, most int) *Deadlock {
	w := n.waiters
	d := &Deadlock{Refused: refused, Clients: map[uint64]Client{}}
	waiting := map[admission.Account]int64{}
	w.table.Each(func(x admission.Waiter) {
		if x.Blocked {
			waiting[x.Account] += x.Bytes
		}
		if x.ID == refused || len(d.Waiters) < most {
			d.Waiters = append(d.Waiters, x)
			d.Clients[x.ID] = w.parked[x.ID].client
		}
	})
	for _, a := range accounts {
		d.Holders = append(d.Holders, Holder{a, waiting[a], w.table.Suspended(a)})
	}
	return d
}

// accounts returns the accounts that hold memory of their own.
func (n *noProgress) accounts() (all []admission.Account) {
	for _, id := range n.clients.holders {
		if !n.clients.all[id].chargedToOthers {
			all = append(all, admission.Account(id))
		}
	}
	return append(all, n.tenants...)
}

// gather begins to collect freed memory.
func (n *noProgress) gather() {
	w := n.waiters
	w.gathering, w.unasked = &request{kind: gather}, false
	n.queue.push(w.gathering)
}

// climb makes all clients return freed memory. Answers on their way may be older than the frees, so climb awaits them first. It
// reports whether that is done.
func (n *noProgress) climb(r *request) bool {
	switch r.stage {
	case stageBegin:
		r.stage = stageAsk
		n.asks.awaitAnswers(r)
		return false
	case stageAsk:
		r.stage = stageEnd
		n.asks.askEach(r, everyone)
		return false
	case stagePoll, stageRelease, stageEnd, stageFailed:
	}
	w := n.waiters
	w.gathering = nil
	w.unsettled = n.clients.anyHolder(func(cl *client) bool { return cl.pendingBytes > 0 })
	if !w.unsettled {
		w.table.Confirmed()
	}
	return true
}

// suspend records a client's waits for other clients. It reports whether they are new. Clients that are gone may still end waits, and free
// nothing: see admission.Table.Forget.
func (n *noProgress) suspend(m Suspend) bool {
	cl := n.clients.all[m.Client]
	if cl == nil || m.Number <= cl.suspended {
		return false
	}
	cl.suspended = m.Number
	waits := make([][]admission.Account, len(m.Waits))
	for i, by := range m.Waits {
		waits[i] = accountsOf(by)
	}
	table := &n.waiters.table
	table.Suspend(admission.Account(m.Client), waits)
	by := slices.DeleteFunc(slices.Clone(m.FreedBy), func(id Client) bool { return n.clients.all[id] == nil && id != Anybody })
	table.FreedBy(admission.Account(m.Client), accountsOf(by))
	return true
}

func accountsOf(clients []Client) (all []admission.Account) {
	for _, id := range clients {
		all = append(all, admission.Account(id))
	}
	return all
}
