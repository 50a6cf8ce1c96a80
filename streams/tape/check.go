package tape

import (
	"cmp"
	"fmt"
	"slices"
)

// Check holds the tape's books against its invariants: places that are taken do not overlap and lie on the ground, and
// no place has more tokens than it needs. It visits every request of the plan.
func (t *Tape) Check() error {
	if t.state < Playing {
		return nil
	}
	return t.plan.check()
}

func (p *Plan) check() error {
	var taken []uint32
	for i := range p.length() {
		e := &p.entries[i]
		if e.have > e.need {
			return fmt.Errorf("tape: request %d has %d tokens, it needs %d", i, e.have, e.need)
		}
		if e.taken {
			taken = append(taken, i)
		}
	}
	slices.SortFunc(taken, func(a, b uint32) int { return cmp.Compare(p.entries[a].first, p.entries[b].first) })
	for k, i := range taken {
		e := &p.entries[i]
		if k > 0 {
			if b := &p.entries[taken[k-1]]; b.first+b.units > e.first {
				return fmt.Errorf("tape: requests %d and %d lie on unit %d", taken[k-1], i, e.first)
			}
		}
		on := func(g Range) bool { return g.First <= e.first && e.first+e.units <= g.End() }
		if !slices.ContainsFunc(p.ground, on) {
			return fmt.Errorf("tape: request %d at unit %d is not on the ground", i, e.first)
		}
	}
	return nil
}
