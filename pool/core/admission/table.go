package admission

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Account names who holds memory and who waits.
type Account uint64

// Waiter is a request that waits.
type Waiter struct {
	ID       uint64 // never used twice
	Account  Account
	Priority int
	Age      uint64 // of its first arrival; 0: this is the first
	Bytes    int64
	Blocked  bool // somebody waits for the answer and does nothing else
	Borrows  bool // its account is beyond its share
	Unready  bool // its account's quota does not allow it yet
}

// entry is a waiter in the table.
type entry struct {
	Waiter
	passedBytes int64 // served to waiters behind it since it arrived
	tried       bool  // in vain, since memory changed last
	joined      uint64
}

// stage is how far a standstill has got; see the package comment.
type stage uint8

const (
	moving stage = iota
	lifted
	confirmed
)

// Table is all that wait. The zero value is empty.
type Table struct {
	queue   []entry // in order
	lastAge uint64
	epoch   uint64    // of the memory
	trying  uint64    // the waiter's ID; 0: none
	tryFrom uint64    // the epoch in which that began
	joins   uint64    // how often somebody took a place
	tryJoin uint64    // the same when the trial began
	still   []Account // suspended
	stage   stage
}

// before says who is served first.
func before(a, b *Waiter) int {
	if a.Borrows != b.Borrows {
		if b.Borrows {
			return -1
		}
		return 1
	}
	if c := cmp.Compare(b.Priority, a.Priority); c != 0 {
		return c
	}
	return cmp.Compare(a.Age, b.Age)
}

// Arrive adds a waiter and returns its age. One that comes back with the age of its first arrival has its place again. Untried
// as it is, it is the only one that Next may give besides those that were.
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
	t.joins++
	e.joined = t.joins
	at, _ := slices.BinarySearchFunc(t.queue, &e.Waiter, func(have entry, want *Waiter) int { return before(&have.Waiter, want) })
	t.queue = slices.Insert(t.queue, at, e)
}

// Remove takes out a waiter that was cancelled or refused. It reports whether it was there. Others may have been held up
// by it: they may be tried now.
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
}

func (t *Table) find(id uint64) int {
	return slices.IndexFunc(t.queue, func(e entry) bool { return e.ID == id })
}

// Block notes whether somebody waits for a waiter's answer and does nothing else.
func (t *Table) Block(id uint64, blocked bool) {
	if at := t.find(id); at >= 0 && t.queue[at].Blocked != blocked {
		t.queue[at].Blocked = blocked
		t.stage = moving
	}
}

// Ready says that the quota of a waiter's account allows it now, and whether the account is beyond its share by that.
func (t *Table) Ready(id uint64, borrows bool) {
	at := t.find(id)
	if at < 0 {
		return
	}
	e := t.queue[at]
	e.Unready, e.Borrows, e.tried = false, borrows, false
	t.queue = slices.Delete(t.queue, at, at+1)
	t.insert(e)
	t.stage = moving
}

// Suspend says that an account waits for something else than memory that only others bring about, or goes on.
func (t *Table) Suspend(a Account, suspended bool) {
	at := slices.Index(t.still, a)
	switch {
	case suspended == (at >= 0):
		return
	case suspended:
		t.still = append(t.still, a)
	default:
		t.still = slices.Delete(t.still, at, at+1)
	}
	t.stage = moving
}

// Changed says that memory came that was not there before, or can be used in another way.
func (t *Table) Changed() {
	t.epoch++
	t.stage = moving
	for i := range t.queue {
		t.queue[i].tried = false
	}
}

// Next is the waiter to be tried, if there is one and none is being tried. Its trial ends with Served, Failed or Remove.
func (t *Table) Next() (id uint64, ok bool) {
	if t.trying != 0 {
		return 0, false
	}
	for i := range t.queue {
		e := &t.queue[i]
		if !e.tried && !e.Unready && t.mayPass(i, &e.Waiter) {
			t.trying, t.tryFrom, t.tryJoin = e.ID, t.epoch, t.joins
			return e.ID, true
		}
	}
	return 0, false
}

// mayPass reports whether a waiter may be served before the first n of the queue.
func (t *Table) mayPass(n int, w *Waiter) bool {
	if t.stage >= lifted {
		return true
	}
	for i := range t.queue[:n] {
		e := &t.queue[i]
		if !e.Unready && (w.Borrows && !e.Borrows || w.Bytes > e.Bytes-e.passedBytes) {
			return false
		}
	}
	return true
}

// place is where a request that has not arrived would stand.
func (t *Table) place(w *Waiter) int {
	w.Age = math.MaxUint64
	at, _ := slices.BinarySearchFunc(t.queue, w, func(have entry, want *Waiter) int { return before(&have.Waiter, want) })
	return at
}

// MayPass reports whether a request that is ready to wait, and has not arrived, may be served before those that wait.
func (t *Table) MayPass(w Waiter) bool { return t.mayPass(t.place(&w), &w) }

// Passed says that such a request was served.
func (t *Table) Passed(w Waiter) { t.pass(t.place(&w), w.Bytes, t.joins) }

// pass counts bytes that were served behind the first n of the queue, as far as they had their places when the search began.
func (t *Table) pass(n int, bytes int64, joins uint64) {
	for i := range t.queue[:n] {
		if e := &t.queue[i]; !e.Unready && e.joined <= joins {
			e.passedBytes += bytes
		}
	}
}

// Failed says that no memory was found for the waiter that is being tried.
func (t *Table) Failed(id uint64) {
	at := t.find(id)
	if at < 0 || t.trying != id {
		return
	}
	t.trying = 0
	t.queue[at].tried = t.tryFrom == t.epoch
}

// Served says that a waiter has its memory.
func (t *Table) Served(id uint64) {
	at := t.find(id)
	if at < 0 {
		return
	}
	t.pass(at, t.queue[at].Bytes, t.tryJoin)
	t.drop(at)
}

// Trying is the waiter that is being tried, 0 if none is.
func (t *Table) Trying() uint64 { return t.trying }

// Waiting is how many wait.
func (t *Table) Waiting() int { return len(t.queue) }

// Each visits those that wait, in order.
func (t *Table) Each(visit func(Waiter)) {
	for i := range t.queue {
		visit(t.queue[i].Waiter)
	}
}

// Check holds the table against the package comment.
func (t *Table) Check() error {
	for i := range t.queue {
		e := &t.queue[i]
		if i > 0 && before(&t.queue[i-1].Waiter, &e.Waiter) >= 0 {
			return fmt.Errorf("admission: waiter %d stands behind waiter %d", e.ID, t.queue[i-1].ID)
		}
		if e.Age > t.lastAge {
			return fmt.Errorf("admission: waiter %d is of age %d, the last was %d", e.ID, e.Age, t.lastAge)
		}
	}
	if t.trying != 0 && t.find(t.trying) < 0 {
		return fmt.Errorf("admission: waiter %d is tried and does not wait", t.trying)
	}
	return nil
}
