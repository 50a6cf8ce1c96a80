package tape

// Step is the step of the plan that the tape has, with the longest lives that were heard, from the calm on; nil if it
// has none.
func (t *Tape) Step() Step {
	if t.plan == nil {
		return nil
	}
	return t.heard(t.plan.calm)
}

// Teach gives the tape a step that it need not find, in place of what it has: its owner has taken the ground back. It is
// recognised by its grams, packed and played; if it does not come for as long as any other plan would be kept, it is
// dropped. Precondition: the step's Check.
func (t *Tape) Teach(step Step) {
	t.longer, t.failures = nil, 0
	if t.plan != nil {
		t.Drop()
	}
	t.restart()
	t.learns, t.rests = 0, 0
	t.follow(step)
	t.cursor.trust = 0
}
