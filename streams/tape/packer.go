package tape

import (
	"cmp"
	"slices"
)

// Range is a sequence of units of the stream's memory.
type Range struct{ First, Units uint32 }

// End is the unit behind the range.
func (r Range) End() uint32 { return r.First + r.Units }

// packing is an order in which requests are placed: longest first and so on. The first is the best on real traces,
// within half a percent of the peak where one stream has all; the others win where a plan is full of holes of about
// the same length.
type packing uint8

const (
	bySize packing = iota
	byLife
	byArea
	packingCount
)

// goodEnough ends the packing: a plan at most one part in so many above the peak is not packed again.
const goodEnough = 200

// Packer makes the plan of a step, a slice at a time. It is plain memory: one goroutine at a time may use it.
//
// Each order is played by first fit: a request goes to the lowest place that nothing has during its life. What fits
// no place of the ground has none, and will be served the ordinary way.
type Packer struct {
	step   []Request
	ground []Range // in rising order
	calm   uint32
	peak   uint64

	order  []uint32
	way    packing
	next   int // in order
	placed *shelves

	best     []uint32 // the first unit of each request; none
	bestCost uint64
	link     *linker // once all is packed
	plan     *Plan
}

// box is a place and the time for which it is taken.
type box struct {
	first, units uint32
	begin, life  uint32
}

// none marks a request without a place.
const none = ^uint32(0)

// newPacker prepares the packing of a step into a ground.
func newPacker(step []Request, ground []Range) *Packer {
	p := &Packer{step: step, ground: slices.Clone(ground), bestCost: ^uint64(0)}
	slices.SortFunc(p.ground, func(a, b Range) int { return cmp.Compare(a.First, b.First) })
	p.peak, p.calm = tides(step)
	p.placed = newShelves(uint32(len(step))) //nolint:gosec // bounded by historyLimit
	p.start(bySize)
	return p
}

// start begins another order.
func (p *Packer) start(way packing) {
	p.way, p.next = way, 0
	p.placed.clear()
	p.order = p.order[:0]
	for i, r := range p.step {
		if r.Life != 0 {
			p.order = append(p.order, uint32(i)) //nolint:gosec // bounded by historyLimit
		}
	}
	key := func(i uint32) uint64 {
		r := p.step[i]
		switch way {
		case byLife:
			return uint64(r.Life)<<32 | uint64(r.Units)
		case byArea:
			return uint64(r.Life) * uint64(r.Units)
		case bySize, packingCount:
		}
		return uint64(r.Units)<<32 | uint64(r.Life)
	}
	slices.SortStableFunc(p.order, func(a, b uint32) int { return cmp.Compare(key(b), key(a)) })
}

// Run works for about so many looks at a place, a few nanoseconds each. It reports whether the plan is made.
func (p *Packer) Run(looks int) (done bool) {
	for looks > 0 && p.plan == nil {
		switch {
		case p.link != nil:
			looks -= p.link.run(looks)
			if p.link.done() {
				p.plan = p.link.plan
			}
		case p.next < len(p.order):
			looks -= p.place(p.order[p.next])
			p.next++
		default:
			p.finish()
		}
	}
	return p.plan != nil
}

// place finds the lowest place for a request and returns how many it looked at.
func (p *Packer) place(i uint32) (looks int) {
	r := p.step[i]
	at, first, ok := p.fit(0, 0, r.Units)
	near := p.placed.during(i, r.Life)
	behind := 0 // boxes that begin below the place
	for ; ok && behind < len(near); behind++ {
		b := &near[behind]
		if !b.meets(i, r.Life, uint32(len(p.step))) { //nolint:gosec // bounded by historyLimit
			continue
		}
		if b.first >= first+r.Units {
			break
		}
		at, first, ok = p.fit(at, max(first, b.first+b.units), r.Units)
	}
	if !ok {
		return behind + 1
	}
	p.placed.add(box{first, r.Units, i, r.Life})
	return behind + 1 + len(p.placed.levels)*shelfLooks
}

// fit is the lowest place from first on that lies in one range of the ground, of which those before at are too low.
func (p *Packer) fit(at int, first, units uint32) (int, uint32, bool) {
	for ; at < len(p.ground); at++ {
		g := p.ground[at]
		first = max(first, g.First)
		if first <= g.End() && units <= g.End()-first {
			return at, first, true
		}
	}
	return at, 0, false
}

// meets reports whether the box is taken at some time of a life that begins at begin, around a step of n requests.
func (b *box) meets(begin, life, n uint32) bool {
	ahead := begin - b.begin // modulo n
	if begin < b.begin {
		ahead += n
	}
	return ahead < b.life || n-ahead < life || ahead == 0
}

// finish weighs what an order came to, and begins the next or the links.
func (p *Packer) finish() {
	if cost := p.cost(); cost < p.bestCost {
		p.bestCost = cost
		p.best = make([]uint32, len(p.step))
		for i := range p.best {
			p.best[i] = none
		}
		for _, b := range p.placed.all {
			p.best[b.begin] = b.first
		}
	}
	if p.way+1 < packingCount && p.bestCost > p.peak+p.peak/goodEnough {
		p.start(p.way + 1)
		return
	}
	p.link = newLinker(p)
}

// cost is the ground that an order needs, and what has no place counts twice.
func (p *Packer) cost() uint64 {
	var cost uint64
	for _, g := range p.used(p.placed.all) {
		cost += uint64(g.Units)
	}
	without := len(p.order) - len(p.placed.all)
	if without == 0 {
		return cost
	}
	has := make([]bool, len(p.step))
	for _, b := range p.placed.all {
		has[b.begin] = true
	}
	for _, i := range p.order {
		if !has[i] {
			cost += 2 * uint64(p.step[i].Units)
		}
	}
	return cost
}

// used is the ground between the lowest and the highest place in each of its ranges.
func (p *Packer) used(placed []box) []Range {
	var used []Range
	for _, g := range p.ground {
		low, high := g.End(), g.First
		for _, b := range placed {
			if b.first >= g.First && b.first < g.End() {
				low, high = min(low, b.first), max(high, b.first+b.units)
			}
		}
		if low < high {
			used = append(used, Range{low, high - low})
		}
	}
	return used
}
