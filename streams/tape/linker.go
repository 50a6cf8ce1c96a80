package tape

import (
	"cmp"
	"slices"
)

// linker finds which places follow each other on the same units, and makes the plan of it. It plays the step twice,
// since the first request that has a unit follows the last one of the step before.
type linker struct {
	plan  *Plan
	pairs []uint64 // follower in the low half, whom it follows in the high half
	last  []tenant // in rising order, without gaps between two of one range
	next  uint32   // request of the second time from n on
	seen  []uint32 // by place: the follower that was linked to it last, plus one
}

// tenant is the last that had those units.
type tenant struct{ first, end, index uint32 }

func newLinker(p *Packer) *linker {
	n := len(p.step)
	l := &linker{seen: make([]uint32, n), plan: &Plan{entries: make([]entry, n+1), calm: p.calm, peak: p.peak}}
	var placed []box
	for i, r := range p.step {
		e := entry{units: r.Units, life: r.Life, first: none}
		if first := p.best[i]; first != none {
			e.first = first
			placed = append(placed, box{first, r.Units, uint32(i), r.Life}) //nolint:gosec // bounded by historyLimit
		}
		l.plan.entries[i] = e
	}
	l.plan.ground = p.used(placed)
	return l
}

func (l *linker) done() bool { return l.next > 2*l.plan.length() }

// run links for about so many looks and returns how many it took.
func (l *linker) run(looks int) (took int) {
	n := l.plan.length()
	for took < looks && l.next < 2*n {
		i := l.next % n
		took += l.visit(i, l.next >= n)
		l.next++
	}
	if l.next == 2*n && took < looks {
		l.close()
		l.next++
	}
	return took
}

// visit makes a request the tenant of its place, and the second time links it to those before.
func (l *linker) visit(i uint32, link bool) (took int) {
	e := &l.plan.entries[i]
	if e.first == none {
		return 1
	}
	end := e.first + e.units
	from, _ := slices.BinarySearchFunc(l.last, e.first, func(t tenant, first uint32) int {
		if t.end <= first {
			return -1
		}
		return 1
	})
	to := from
	var keep [2]tenant // what is left of the first and of the last of them
	kept := 0
	for ; to < len(l.last) && l.last[to].first < end; to++ {
		t := l.last[to]
		if link && l.seen[t.index] != i+1 {
			l.seen[t.index] = i + 1
			l.pairs = append(l.pairs, uint64(t.index)<<32|uint64(i))
			e.need++
		}
		if t.first < e.first {
			keep[0] = tenant{t.first, e.first, t.index}
			kept |= 1
		}
		if t.end > end {
			keep[1] = tenant{end, t.end, t.index}
			kept |= 2
		}
	}
	fresh := make([]tenant, 0, 3)
	if kept&1 != 0 {
		fresh = append(fresh, keep[0])
	}
	fresh = append(fresh, tenant{e.first, end, i})
	if kept&2 != 0 {
		fresh = append(fresh, keep[1])
	}
	l.last = slices.Replace(l.last, from, to, fresh...)
	return 1 + to - from + len(l.last)/64
}

// close puts the links in the order in which the player needs them.
func (l *linker) close() {
	slices.SortFunc(l.pairs, cmp.Compare[uint64])
	p := l.plan
	p.followers = make([]uint32, len(l.pairs))
	at := uint32(0)
	for i := range p.entries {
		p.entries[i].followers = at
		for int(at) < len(l.pairs) && uint32(l.pairs[at]>>32) == uint32(i) { //nolint:gosec // the halves
			p.followers[at] = uint32(l.pairs[at]) //nolint:gosec // the low half
			at++
		}
	}
	p.grams.fill(p)
	l.pairs, l.last = nil, nil
}
