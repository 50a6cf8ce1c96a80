package core

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/internal/pool/admission"
)

// waiters holds the waiting Refills in the order of service: see package admission.
type waiters struct {
	table  admission.Table
	parked map[uint64]*request // by their ID in the table
	named  map[ticket]*request // by their client's name
	lastID uint64

	demandBytes int64    // of all
	trying      *request // nil: none
	failed      failedAttempts
	waitCount   uint64

	gathering *request // in progress: see noProgress; nil: none
	// unsettled: a client will report memory that is on its way; until then no deadlock is declared.
	unsettled bool
	// unasked: no client that holds memory was asked for it since memory came last, or a wait began. Where all requests wait
	// for quotas, none is tried, and so no client is asked.
	unasked bool
}

// ticket is a client's name for a waiting Refill.
type ticket struct {
	client Client
	token  uint64
}

// waiter returns the request as package admission sees it.
func (r *request) waiter() admission.Waiter {
	return admission.Waiter{
		ID: r.id, Account: r.place.Account, Priority: r.place.Priority, Age: r.place.Age, Bytes: r.bytes,
		ChargedBytes: r.place.ChargedBytes, Blocked: r.place.Blocked, Unready: r.place.Unready,
	}
}

// count returns the number of waiters.
func (w *waiters) count() int { return w.table.Waiting() }

// park makes a request wait.
func (w *waiters) park(r *request) {
	w.lastID++
	r.id = w.lastID
	if r.wants == nil {
		r.wants = []uint32{r.pages}
	}
	w.parked[r.id] = r
	w.named[ticket{r.client, r.token}] = r
	w.demandBytes += r.bytes
	w.unasked = true
	if !r.place.Again {
		w.waitCount++
	}
	w.table.Arrive(r.waiter())
}

// drop removes a waiter that is answered or withdrawn.
func (w *waiters) drop(r *request) {
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

// find returns the request that waits under a client's token; nil if there is none.
func (w *waiters) find(id Client, token uint64) *request { return w.named[ticket{id, token}] }

// of returns the requests of one client that wait, or, with 0, of all, in order.
func (w *waiters) of(id Client) (all []*request) {
	w.table.Each(func(x admission.Waiter) {
		if r := w.parked[x.ID]; id == 0 || r.client == id {
			all = append(all, r)
		}
	})
	return all
}

// ready notes that the quota of a request allows it now. It reports whether there is such a request.
func (w *waiters) ready(m Ready) bool {
	r := w.find(m.Client, m.Token)
	if r == nil {
		return false
	}
	r.place.Unready = false
	w.table.Ready(r.id)
	return true
}

// block notes whether a goroutine waits for the answer to a request. It reports whether the note is new.
func (w *waiters) block(m Block) bool {
	r := w.find(m.Client, m.Token)
	if r == nil || m.Number <= r.blocks {
		return false
	}
	r.blocks, r.place.Blocked = m.Number, m.Blocked
	w.table.Block(r.id, m.Blocked)
	w.unasked = true
	return true
}

// changed notes that there is new memory.
func (w *waiters) changed() {
	w.table.Changed()
	w.failed.clear()
	w.unsettled, w.unasked = false, true
}

// retry makes the waiters eligible again at a tick, since the driver does not report when it has memory again.
func (w *waiters) retry() {
	if w.trying == nil && w.gathering == nil && w.count() > 0 {
		w.changed()
	}
}

// ordered reports whether a request that does not wait yet has a place in the waiters' order: if it would wait, or borrows.
func (w *waiters) ordered(r *request) bool {
	return w.count() > 0 && (r.patience == Patient || w.table.Borrows(r.waiter()))
}

// mayPass reports whether a request may be served before the waiters.
func (w *waiters) mayPass(r *request) bool { return !w.ordered(r) || w.table.MayPass(r.waiter()) }

// next begins the next attempt, if a request is worth one.
func (w *waiters) next() *request {
	for {
		id, ok := w.table.Next()
		if !ok {
			return nil
		}
		r := w.parked[id]
		if w.failed.skips(r) {
			w.table.Failed(id)
			continue
		}
		r.restart()
		w.trying = r
		return r
	}
}

// attemptFailed ends an attempt that found nothing.
func (w *waiters) attemptFailed(r *request) {
	w.trying = nil
	if w.table.Failed(r.id) && len(r.wants) == 1 && !r.capped {
		w.failed.add(r)
	}
}

// served counts a request that was granted while others wait.
func (w *waiters) served(r *request) {
	switch {
	case r.waits():
		w.table.Served(r.id)
	case !r.drawn && w.ordered(r):
		w.table.Passed(r.waiter())
	}
}

// check checks the indexes and sums against the waiters.
func (w *waiters) check() error {
	var bytes int64
	for _, r := range w.parked {
		bytes += r.bytes
		if w.find(r.client, r.token) != r {
			return fmt.Errorf("pool: the request %d of client %d waits under another name", r.token, r.client)
		}
	}
	if r := w.trying; r != nil && w.parked[r.id] != r {
		return fmt.Errorf("pool: the request %d of client %d is tried, and waits no more", r.token, r.client)
	}
	if bytes != w.demandBytes || len(w.named) != len(w.parked) {
		return fmt.Errorf("pool: %d requests wait for %d bytes, the books say %d for %d", len(w.parked), bytes, len(w.named), w.demandBytes)
	}
	return nil
}

// failedAttempt caches a request that did not fit; larger ones of that client are skipped until memory changes.
type failedAttempt struct {
	client Client
	pages  uint32
	bytes  int64
	align  int64
}

// failedAttempts are the failed attempts since memory changed last.
type failedAttempts struct{ all []failedAttempt }

func (f *failedAttempts) clear() { f.all = f.all[:0] }

func (f *failedAttempts) add(r *request) {
	f.all = append(f.all, failedAttempt{r.client, r.wants[0], r.bytes, r.place.Align})
}

// skips reports whether a request of the same client that needs no more has just failed.
func (f *failedAttempts) skips(r *request) bool {
	for i := range f.all {
		a := &f.all[i]
		if a.client == r.client && a.pages <= slices.Max(r.wants) && a.bytes <= r.bytes && a.align <= r.place.Align {
			return true
		}
	}
	return false
}
