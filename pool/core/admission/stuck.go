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
// accounts that hold memory, in any order. With Deadlock and Hopeless the ID says whom to refuse, and remove.
func (t *Table) Stuck(holders []Account) (v Verdict, id uint64) {
	if len(t.queue) == 0 || t.trying != 0 || slices.ContainsFunc(holders, func(a Account) bool { return !t.waits(a) }) {
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
	youngest := -1
	for i := range t.queue {
		if e := &t.queue[i]; e.Blocked && slices.Contains(holders, e.Account) && (youngest < 0 || e.Age > t.queue[youngest].Age) {
			youngest = i
		}
	}
	return Deadlock, t.queue[youngest].ID // each holder has one
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
