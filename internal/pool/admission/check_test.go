package admission

import "fmt"

// Check checks the table against the package comment.
func (t *Table) Check() error {
	for i := range t.queue {
		e := &t.queue[i]
		if i > 0 && before(&t.queue[i-1], e) >= 0 {
			return fmt.Errorf("admission: waiter %d is queued after waiter %d", e.ID, t.queue[i-1].ID)
		}
		if e.Age > t.lastAge {
			return fmt.Errorf("admission: waiter %d is of age %d, the last was %d", e.ID, e.Age, t.lastAge)
		}
	}
	if t.trying != 0 && t.find(t.trying) < 0 {
		return fmt.Errorf("admission: waiter %d is tried and does not wait", t.trying)
	}
	return t.checkShares()
}

// checkShares checks the standings against the package comment.
func (t *Table) checkShares() error {
	last := map[Account]*entry{}
	for i := range t.queue {
		e := &t.queue[i]
		if t.sharing(e.Account) == nil && e.standing != (standing{turn: e.Age}) {
			return fmt.Errorf("admission: waiter %d has no share and stands as %+v", e.ID, e.standing)
		}
		if e.Unready {
			continue
		}
		if before := last[e.Account]; before != nil && (!elder(before, e) || before.fill > e.fill) {
			return fmt.Errorf("admission: waiter %d stands before waiter %d of its account", before.ID, e.ID)
		}
		last[e.Account] = e
	}
	return nil
}

// String returns the verdict's name.
func (v Verdict) String() string {
	return [...]string{"wait", "lift", "confirm", "deadlock", "hopeless"}[v]
}
