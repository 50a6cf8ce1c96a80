package admission

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// Account names a stream or a tenant.
type Account uint64

// Waiter is a request that waits.
type Waiter struct {
	ID       uint64 // never used twice
	Account  Account
	Priority int
	Age      uint64 // of its first arrival; 0: this is the first
	Bytes    int64
	// ChargedBytes are charged to its account while it is ready; unused for an account without a share.
	ChargedBytes int64
	Blocked      bool // a caller waits for the answer and does nothing else
	Unready      bool // its account's quota does not allow it yet
}

// entry is a waiter in the table.
type entry struct {
	Waiter
	standing
	passedBytes int64 // served to later waiters since it arrived
	tried       bool  // has failed since memory changed last
	ahead       bool  // preceded the waiter that is tried when that trial began
}

// suspended is an account that waits for something other than memory.
type suspended struct {
	account Account
	waits   [][]Account // one list for each wait, any of which may end it; empty: any that holds memory or waits for some
}

// freers are the accounts that free memory of an account other than its own callers.
type freers struct {
	account Account
	by      []Account
}

// stage is the progress of a standstill; see the package comment.
type stage uint8

const (
	moving stage = iota
	lifted
	confirmed
)

// Table holds all waiters. The zero value is empty. It has more than forty methods: order, shares and deadlocks are questions
// about one queue, and each is a few lines.
type Table struct {
	queue   []entry // in order
	lastAge uint64
	epoch   uint64 // of the memory
	trying  uint64 // the waiter's ID; 0: none
	tryFrom uint64 // the epoch in which its trial began
	still   []suspended
	freers  []freers
	stage   stage
	shares  []sharing // by account
	lag     int64     // 0: mostLag; the tests have others
	sharers []*entry  // scratch of order
}

// before compares two waiters in the order of service.
func before(a, b *entry) int {
	if a.borrows != b.borrows {
		return truth(a.borrows) - truth(b.borrows)
	}
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.turn, b.turn), ranked(a, b))
}

// ranked compares two waiters with shares, of one priority, that both borrow or both do not.
func ranked(a, b *entry) int {
	return cmp.Or(truth(b.due)-truth(a.due), cmp.Compare(a.fill, b.fill), cmp.Compare(a.Age, b.Age))
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Arrive adds a waiter and returns its age. A waiter that comes back with the age of its first arrival has its old place. As it
// is untried, it is the only new one that Next may return.
func (t *Table) Arrive(w Waiter) (age uint64) {
	if w.Age == 0 {
		t.lastAge++
		w.Age = t.lastAge
	}
	t.insert(entry{Waiter: w})
	t.stage = moving
	return w.Age
}

func (t *Table) insert(e entry) {
	if s := t.sharing(e.Account); s != nil && !e.Unready {
		s.usedBytes = max(0, s.usedBytes-e.ChargedBytes) // not yet
	}
	at := t.placeOf(&e)
	t.queue = append(t.queue, e)
	copy(t.queue[at+1:], t.queue[at:])
	t.queue[at] = e
	t.order()
}

// placeOf returns the place to insert an entry at before order runs: in the right order among the entries of its account.
func (t *Table) placeOf(e *entry) int {
	at := t.indexFunc(func(have *entry) bool { return have.Account == e.Account && !have.Unready && elder(e, have) })
	if at < 0 {
		at = len(t.queue)
	}
	return at
}

// indexFunc returns the place of the first entry for which holds reports true, -1 if there is none.
func (t *Table) indexFunc(holds func(e *entry) bool) int {
	for i := range t.queue {
		if holds(&t.queue[i]) {
			return i
		}
	}
	return -1
}

// some reports whether there is such an entry.
func (t *Table) some(holds func(e *entry) bool) bool { return t.indexFunc(holds) >= 0 }

// Remove removes a waiter that was cancelled or refused. It reports whether it was there. Waiters that it held up may be tried
// now.
func (t *Table) Remove(id uint64) bool {
	at := t.find(id)
	if at < 0 {
		return false
	}
	t.drop(at)
	return true
}

func (t *Table) drop(at int) {
	if t.trying == t.queue[at].ID {
		t.trying = 0
	}
	t.queue = slices.Delete(t.queue, at, at+1)
	t.stage = moving
	t.order()
}

func (t *Table) find(id uint64) int {
	return t.indexFunc(func(e *entry) bool { return e.ID == id })
}

// Block notes whether a caller waits for a waiter's answer and does nothing else.
func (t *Table) Block(id uint64, blocked bool) {
	if at := t.find(id); at >= 0 && t.queue[at].Blocked != blocked {
		t.queue[at].Blocked = blocked
		t.stage = moving
	}
}

// Ready notes that the quota of a waiter's account allows it now, and charges the account.
func (t *Table) Ready(id uint64) {
	at := t.find(id)
	if at < 0 {
		return
	}
	e := t.queue[at]
	e.Unready, e.tried, e.ahead = false, false, false
	t.queue = slices.Delete(t.queue, at, at+1)
	t.insert(e)
	t.stage = moving
}

// Suspend notes that an account waits for something other than memory and frees nothing until then: one list for each wait, of
// the accounts any of which may end it; an empty list means any account that holds memory or waits for some. Without a list the
// account is runnable.
func (t *Table) Suspend(a Account, waits [][]Account) {
	at := t.suspendedAt(a)
	switch {
	case at < 0 && len(waits) == 0:
		return
	case at < 0:
		t.still = append(t.still, suspended{a, waits})
	case len(waits) == 0:
		t.still = slices.Delete(t.still, at, at+1)
	case sameWaits(t.still[at].waits, waits):
		return
	default:
		t.still[at].waits = waits
	}
	t.stage = moving
}

// FreedBy notes which accounts' callers free memory of an account other than its own: the ones that were handed some of it.
func (t *Table) FreedBy(a Account, by []Account) {
	at := t.freersAt(a)
	switch {
	case at >= 0 && slices.Equal(t.freers[at].by, by) || at < 0 && len(by) == 0:
		return
	case at < 0:
		t.freers = append(t.freers, freers{a, by})
	case len(by) == 0:
		t.freers = slices.Delete(t.freers, at, at+1)
	default:
		t.freers[at].by = by
	}
	t.stage = moving
}

// Forget drops an account that is gone: it waits for none, and frees nothing. Where others wait for it by name it stays, and is runnable:
// its goroutine may end a wait after it has closed its stream, and a Suspend follows then. But no call says when all memory that it was
// handed is free: it would keep the owners of that from a standstill for ever.
func (t *Table) Forget(a Account) {
	t.Suspend(a, nil)
	t.FreedBy(a, nil)
	for _, f := range slices.Clone(t.freers) {
		t.FreedBy(f.account, slices.DeleteFunc(slices.Clone(f.by), func(b Account) bool { return b == a }))
	}
}

// Blocked reports whether any waiter is blocked.
func (t *Table) Blocked() bool {
	return t.some(func(e *entry) bool { return e.Blocked })
}

// Suspended reports whether an account is suspended.
func (t *Table) Suspended(a Account) bool {
	return t.suspendedAt(a) >= 0
}

// suspendedAt returns the place of a suspended account, -1 where it is not suspended.
func (t *Table) suspendedAt(a Account) int {
	for i := range t.still {
		if t.still[i].account == a {
			return i
		}
	}
	return -1
}

// freersAt returns the place of the accounts that free memory of an account, -1 where there are none.
func (t *Table) freersAt(a Account) int {
	for i := range t.freers {
		if t.freers[i].account == a {
			return i
		}
	}
	return -1
}

// sameWaits reports whether two lists of waits are equal.
func sameWaits(a, b [][]Account) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !slices.Equal(a[i], b[i]) {
			return false
		}
	}
	return true
}

// Changed reports that there is new memory, or that memory can be used in another way.
func (t *Table) Changed() {
	t.epoch++
	t.stage = moving
	for i := range t.queue {
		t.queue[i].tried = false
	}
}

// Next returns the waiter to be tried, if there is one and none is being tried. Its trial ends with Served, Failed or Remove.
func (t *Table) Next() (id uint64, ok bool) {
	if t.trying != 0 {
		return 0, false
	}
	ahead := newLine(t.stage)
	for i := range t.queue {
		e := &t.queue[i]
		if !e.tried && !e.Unready && ahead.lets(e) {
			t.trying, t.tryFrom = e.ID, t.epoch
			for k := range t.queue {
				t.queue[k].ahead = k < i && !t.queue[k].Unready
			}
			return e.ID, true
		}
		ahead.add(e)
	}
	return 0, false
}

// line summarizes the waiters ahead of a place in the queue.
type line struct {
	leastBytes int64 // the least that one of them still lets pass
	within     bool  // one of them does not borrow
	lifted     bool
}

func newLine(s stage) line { return line{leastBytes: math.MaxInt64, lifted: s >= lifted} }

func (l *line) add(e *entry) {
	if !e.Unready {
		l.leastBytes, l.within = min(l.leastBytes, e.Bytes-e.passedBytes), l.within || !e.borrows
	}
}

// lets reports whether a waiter may be served before them.
func (l *line) lets(w *entry) bool {
	return l.lifted || (!w.borrows || !l.within) && w.Bytes <= l.leastBytes
}

// placeBefore returns the place of the first entry of the queue that does not come before e.
func (t *Table) placeBefore(e *entry) int {
	return sort.Search(len(t.queue), func(at int) bool { return before(&t.queue[at], e) >= 0 })
}

// place returns the entry of a request that has not arrived, charged, and its place at worst.
func (t *Table) place(w Waiter) (e entry, at int) {
	w.Age = math.MaxUint64
	e.Waiter = w
	t.rankNew(&e)
	return e, t.placeBefore(&e)
}

// MayPass reports whether a ready request that has not arrived may be served before the waiters.
func (t *Table) MayPass(w Waiter) bool {
	e, at := t.place(w)
	ahead := newLine(t.stage)
	for i := range t.queue[:at] {
		ahead.add(&t.queue[i])
	}
	return ahead.lets(&e)
}

// Borrows reports whether such a request exceeds its account's share.
func (t *Table) Borrows(w Waiter) bool {
	e, _ := t.place(w)
	return e.borrows
}

// Passed notes that such a request was served.
func (t *Table) Passed(w Waiter) {
	e, at := t.place(w)
	for i := range t.queue {
		t.queue[i].pass(i < at, &e)
	}
	t.outrank(&e)
	t.order()
}

// pass counts bytes that were served to a later waiter.
func (e *entry) pass(behind bool, served *entry) {
	if behind && !e.Unready {
		e.passedBytes += served.Bytes
	}
}

// Failed notes that no memory was found for the waiter on trial. It reports whether that counts: a trial that began before
// memory changed does not.
func (t *Table) Failed(id uint64) (counts bool) {
	at := t.find(id)
	if at < 0 || t.trying != id {
		return false
	}
	t.trying = 0
	t.queue[at].tried = t.tryFrom == t.epoch
	return t.queue[at].tried
}

// Served notes that a waiter has its memory, and removes it.
func (t *Table) Served(id uint64) {
	at := t.find(id)
	if at < 0 {
		return
	}
	e := t.queue[at]
	for i := range t.queue {
		t.queue[i].pass(t.queue[i].ahead, &e)
	}
	if s := t.sharing(e.Account); s != nil {
		s.usedBytes += e.ChargedBytes
	}
	t.outrank(&e)
	t.drop(at)
}

// Waiting returns the number of waiters.
func (t *Table) Waiting() int { return len(t.queue) }

// Each visits the waiters in order.
func (t *Table) Each(visit func(Waiter)) {
	for i := range t.queue {
		visit(t.queue[i].Waiter)
	}
}
