package tape

import (
	"cmp"
	"slices"
)

// Plan is a step with a place for each request that ends within it, and who follows whom on the same units.
//
// Round each unit the places on it form a circle in the order of their requests. The token of a unit is with the
// place that is taken, or on its way from the last one that was to the next. A place may be taken when it has the
// tokens of all its units: then nothing else is on them, whatever was requested and freed in which order.
type Plan struct {
	entries   []entry  // one more than requests
	followers []uint32 // of all places, one after the other
	ground    []Range  // that the places lie on
	missing   []Range  // of the ground: what is not there yet, in rising order
	grams     gramIndex
	calm      uint32 // before which request least is taken
	peak      uint64 // units that are taken at once, if the step repeats exactly
}

// entry is a request of the step.
type entry struct {
	units     uint32
	first     uint32 // unit of its place; none: it has no place
	life      uint32
	heard     uint32 // the longest life since the plan is followed
	followers uint32 // where its own begin; they end where those of the next entry begin
	need      uint16 // places that it follows
	have      uint16 // of them those that have passed it their tokens
	taken     bool
	skipped   bool // the step went on without it: it passes its tokens on as soon as it has them
}

func (p *Plan) length() uint32 { return uint32(len(p.entries) - 1) } //nolint:gosec // bounded by historyLimit

// GroundUnits is the length of the memory that the plan needs.
func (p *Plan) GroundUnits() uint64 {
	var sum uint64
	for _, g := range p.ground {
		sum += uint64(g.Units)
	}
	return sum
}

// lay places all tokens for a start at a request, with nothing taken.
func (p *Plan) lay(start uint32) {
	n := p.length()
	turn := func(i uint32) uint32 { return (i + n - start) % n }
	for i := range n {
		e := &p.entries[i]
		e.have, e.taken, e.skipped = 0, false, false
	}
	for i := range n {
		for _, f := range p.behind(i) {
			if turn(f) <= turn(i) { // it follows the one of the step before
				p.entries[f].have++
			}
		}
	}
}

// behind are the places that follow one.
func (p *Plan) behind(i uint32) []uint32 {
	return p.followers[p.entries[i].followers:p.entries[i+1].followers]
}

// take takes a place, if it has all its tokens.
func (p *Plan) take(i uint32) bool {
	e := &p.entries[i]
	if e.have != e.need || e.taken || e.first == none || len(p.missing) > 0 && p.misses(e) {
		return false
	}
	e.have, e.taken, e.skipped = 0, true, false
	return true
}

// misses reports whether a part of a place is missing.
func (p *Plan) misses(e *entry) bool {
	at, _ := slices.BinarySearchFunc(p.missing, e.first, func(r Range, first uint32) int { return cmp.Compare(r.End(), first+1) })
	return at < len(p.missing) && p.missing[at].First < e.first+e.units
}

// came takes a part of the ground that was missing. Precondition: it lies in one missing range.
func (p *Plan) came(part Range) {
	at, _ := slices.BinarySearchFunc(p.missing, part.First, func(r Range, first uint32) int { return cmp.Compare(r.End(), first+1) })
	r := p.missing[at]
	rest := make([]Range, 0, 2)
	if part.First > r.First {
		rest = append(rest, Range{r.First, part.First - r.First})
	}
	if part.End() < r.End() {
		rest = append(rest, Range{part.End(), r.End() - part.End()})
	}
	p.missing = slices.Replace(p.missing, at, at+1, rest...)
}

// leave frees a place: its tokens go to those that follow.
func (p *Plan) leave(i uint32, todo []uint32) []uint32 {
	p.entries[i].taken = false
	return p.pass(i, todo)
}

// skip lets the step go on without a place.
func (p *Plan) skip(i uint32, todo []uint32) []uint32 {
	e := &p.entries[i]
	if e.first == none {
		return todo
	}
	if e.taken || e.have != e.need {
		e.skipped = true
		return todo
	}
	e.have = 0
	return p.pass(i, todo)
}

// pass hands the tokens of a place on, and those of skipped ones that have got all of theirs by that. todo is
// memory for it, empty before and after.
func (p *Plan) pass(i uint32, todo []uint32) []uint32 {
	todo = append(todo, i)
	for len(todo) > 0 {
		i = todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, f := range p.behind(i) {
			e := &p.entries[f]
			if e.have++; e.skipped && e.have == e.need && !e.taken {
				e.have, e.skipped = 0, false
				todo = append(todo, f)
			}
		}
	}
	return todo
}
