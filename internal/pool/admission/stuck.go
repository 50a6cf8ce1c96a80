package admission

import "slices"

// Verdict is the next step when no waiter can be tried.
type Verdict uint8

// The verdicts.
const (
	// Wait: an account that holds memory is runnable, or none waits. Frees will come, or none is wanted.
	Wait Verdict = iota
	// Lift: Next has more to return.
	Lift
	// Confirm: collect all freed memory, then call Confirmed or Changed, and Stuck again.
	Confirm
	// Deadlock: refuse a waiter, since all accounts that hold memory wait.
	Deadlock
	// Hopeless: refuse a waiter, since no account holds memory that could come back.
	Hopeless
)

// Stuck returns the next step when Next returns nothing and no pending work could bring memory. holders are the accounts that
// hold memory, in any order. With Deadlock and Hopeless, refuse and remove the waiter id.
func (t *Table) Stuck(holders []Account) (v Verdict, id uint64) {
	if len(t.queue) == 0 || t.trying != 0 || !t.standsStill(holders) {
		return Wait, 0
	}
	switch t.stage {
	case moving:
		t.stage = lifted
		if t.some(func(e *entry) bool { return !e.tried && !e.Unready }) {
			return Lift, 0
		}
		return Confirm, 0
	case lifted:
		return Confirm, 0
	case confirmed:
	}
	if len(holders) == 0 {
		return Hopeless, t.first()
	}
	return Deadlock, t.youngest(holders)
}

// standsStill reports whether no account is left that could free memory, or make another free some.
func (t *Table) standsStill(holders []Account) bool {
	stuck := t.stuck(holders)
	for _, a := range t.mayFree(holders) {
		if !t.waits(a) && !slices.Contains(stuck, a) {
			return false
		}
	}
	return len(holders) == 0 || t.some(func(e *entry) bool { return e.Blocked })
}

// mayFree returns the accounts that hold memory, and the accounts that they, and so on, have handed some of it.
func (t *Table) mayFree(holders []Account) []Account {
	if len(t.freers) == 0 {
		return holders
	}
	all := slices.Clone(holders)
	for i := 0; i < len(all); i++ {
		at := t.freersAt(all[i])
		if at < 0 {
			continue
		}
		for _, a := range t.freers[at].by {
			if !slices.Contains(all, a) {
				all = append(all, a)
			}
		}
	}
	return all
}

// stuck returns the suspended accounts that no runnable account can resume, directly or through others.
func (t *Table) stuck(holders []Account) []Account {
	stuck := make([]Account, len(t.still))
	for i := range t.still {
		stuck[i] = t.still[i].account
	}
	goesOn := func(a Account) bool { return !t.waits(a) && !slices.Contains(stuck, a) }
	endsFor := func(by []Account) bool {
		if len(by) > 0 {
			return slices.ContainsFunc(by, goesOn)
		}
		return slices.ContainsFunc(holders, goesOn) || t.some(func(e *entry) bool { return goesOn(e.Account) })
	}
	for found := true; found; {
		found = false
		for i := range t.still {
			s := &t.still[i]
			at := slices.Index(stuck, s.account)
			if at < 0 || t.waits(s.account) || slices.ContainsFunc(s.waits, func(by []Account) bool { return !endsFor(by) }) {
				continue
			}
			stuck = slices.Delete(stuck, at, at+1)
			found = true
		}
	}
	return stuck
}

// youngest returns the youngest blocked waiter whose account holds memory; if none does, the youngest blocked one.
func (t *Table) youngest(holders []Account) uint64 {
	var best *entry
	holds := func(e *entry) bool { return slices.Contains(holders, e.Account) }
	for i := range t.queue {
		e := &t.queue[i]
		if e.Blocked && (best == nil || holds(e) && !holds(best) || holds(e) == holds(best) && e.Age > best.Age) {
			best = e
		}
	}
	return best.ID // there is one in a standstill
}

// first returns the first ready waiter, since the quota of another has nothing to do with memory; else the first.
func (t *Table) first() uint64 {
	for i := range t.queue {
		if !t.queue[i].Unready {
			return t.queue[i].ID
		}
	}
	return t.queue[0].ID
}

// Confirmed notes that everything was collected after a Confirm, and brought nothing. Call it before anything else changes.
func (t *Table) Confirmed() {
	if t.stage == lifted {
		t.stage = confirmed
	}
}

// waits reports whether an account waits.
func (t *Table) waits(a Account) bool {
	return t.some(func(e *entry) bool { return e.Account == a && e.Blocked })
}
