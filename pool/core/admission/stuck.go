package admission

import "slices"

// Verdict says what is to be done where nothing goes on.
type Verdict uint8

// The verdicts.
const (
	// Wait says that somebody who holds memory does not wait, or that nobody does: frees will come, or none is wanted.
	Wait Verdict = iota
	// Lift says that Next has more to give.
	Lift
	// Confirm says that all that was freed is to be collected; then Confirmed or Changed is to be told, and Stuck asked again.
	Confirm
	// Deadlock says that a waiter is to be refused, since all that hold memory wait.
	Deadlock
	// Hopeless says that a waiter is to be refused, since nobody holds memory that could come back.
	Hopeless
)

// String is the verdict's name.
func (v Verdict) String() string {
	return [...]string{"wait", "lift", "confirm", "deadlock", "hopeless"}[v]
}

// Stuck says what is to be done when Next gives nobody and nothing is under way that could bring memory. holders are the
// accounts that hold memory, others all the rest, in any order. With Deadlock and Hopeless the ID says whom to refuse, and remove.
func (t *Table) Stuck(holders, others []Account) (v Verdict, id uint64) {
	if len(t.queue) == 0 || t.trying != 0 || !t.standsStill(holders, others) {
		return Wait, 0
	}
	switch t.stage {
	case moving:
		t.stage = lifted
		if slices.ContainsFunc(t.queue, func(e entry) bool { return !e.tried && !e.Unready }) {
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

// standsStill reports whether nobody is left who could free, or have somebody free.
func (t *Table) standsStill(holders, others []Account) bool {
	suspended := false
	for _, a := range holders {
		switch {
		case t.waits(a):
		case slices.Contains(t.still, a):
			suspended = true
		default:
			return false
		}
	}
	if !suspended {
		return true
	}
	goesOn := func(a Account) bool { return !t.waits(a) && !slices.Contains(t.still, a) }
	return !slices.ContainsFunc(others, goesOn) && slices.ContainsFunc(t.queue, func(e entry) bool { return e.Blocked })
}

// youngest is the youngest blocked waiter whose account holds memory; where none does, the youngest blocked one.
func (t *Table) youngest(holders []Account) uint64 {
	var best *entry
	holds := func(e *entry) bool { return slices.Contains(holders, e.Account) }
	for i := range t.queue {
		e := &t.queue[i]
		if e.Blocked && (best == nil || holds(e) && !holds(best) || holds(e) == holds(best) && e.Age > best.Age) {
			best = e
		}
	}
	return best.ID // a standstill has one
}

// first is the first that is ready, since the quota of another is no matter of memory; else the first.
func (t *Table) first() uint64 {
	for i := range t.queue {
		if !t.queue[i].Unready {
			return t.queue[i].ID
		}
	}
	return t.queue[0].ID
}

// Confirmed says that all was collected after a Confirm, and brought nothing. It is told before anything else changes.
func (t *Table) Confirmed() {
	if t.stage == lifted {
		t.stage = confirmed
	}
}

// waits reports whether an account waits.
func (t *Table) waits(a Account) bool {
	return slices.ContainsFunc(t.queue, func(e entry) bool { return e.Account == a && e.Blocked })
}
