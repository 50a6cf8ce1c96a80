package interp

import "github.com/go-vram/vram/compute/ptx"

// crowd is accesses to a cell that its last store, an atomic or ordered one, does not stand for: others that are atomic and that nothing
// orders before it, and plain ones, which are a race with every later access that is not ordered behind them.
type crowd struct {
	members   [crowdSize]member
	count     int
	plain     bool   // some member is a plain access
	compacted uint64 // the turn in which it was last made smaller
}

// member is an access of a crowd.
type member struct {
	touch touch
	group crowdGroup
}

// crowdGroup is who has made an access, and its kind: its turn, its warp if that is the current turn, whether it was strong, and whether it
// wrote. Of several in a group one is kept.
type crowdGroup uint64

const (
	groupStrong crowdGroup = 1 << iota
	groupWrite
	warpShift = 2
	turnShift = 8
	warpsMask = (1<<turnShift - 1) &^ (groupStrong | groupWrite)
)

// groupOf is the group of an access.
func (b *block) groupOf(t touch) crowdGroup {
	turns := &b.run.turns
	turn, warp := turns.now(), t.thread()/warpThreads+1
	if turns.past(t.clock()) {
		turn, warp = turns.at(t.clock()), 0
	}
	g := crowdGroup(turn)<<turnShift | crowdGroup(warp)<<warpShift //nolint:gosec // at most 32 warps
	if t.strong() {
		g |= groupStrong
	}
	if writes(b.kernel.code[t.pc()].source.Op) {
		g |= groupWrite
	}
	return g
}

// crowdSize is how many accesses a crowd has. Not fewer: the threads of a block are up to 32 warps, but an order of one of them is often one of
// all. Not more: each access to the cell looks at all.
const crowdSize = 8

// crowds are those of a run.
type crowds struct {
	of     map[*cell]*crowd
	recent [1 << recentBits]struct { // the last that were looked for, by the lower bits of the words' addresses
		cell  *cell
		crowd *crowd
	}
}

const recentBits = 8

// at is the crowd of a cell, or nil.
func (s *crowds) at(c *cell, address uint64) *crowd {
	r := &s.recent[address>>2&(1<<recentBits-1)]
	if r.cell != c {
		all := s.of[c]
		if all == nil {
			return nil
		}
		r.cell, r.crowd = c, all
	}
	return r.crowd
}

// add makes a crowd.
func (s *crowds) add(c *cell) *crowd {
	all := &crowd{}
	s.of[c] = all
	return all
}

// crowded keeps the accesses that a strong store would hide, and returns the store with a mark that they are there.
func (w *warp) crowded(c *cell, t touch, a *access, thread int, since uint32) touch {
	r := w.block.run
	var all *crowd
	if c.store.crowded() {
		if all = r.crowds.at(c, a.address); all != nil && all.members[0].touch.clock() <= since { // of shared memory in an earlier block
			*all = crowd{}
		}
	}
	for _, hidden := range [...]touch{c.store, c.load, c.other} {
		if hidden.clock() <= since || !w.hides(hidden, thread) {
			continue
		}
		if all == nil {
			all = r.crowds.add(c)
		}
		all.add(w.block, hidden)
	}
	if all != nil && all.count > 0 {
		t |= crowdBit
	}
	return t
}

// hides reports whether a strong store of a thread does not stand for an earlier access.
func (w *warp) hides(t touch, thread int) bool {
	if t.strong() {
		return !w.sees(t, thread)
	}
	confirmed := t.thread() == thread && w.block.kernel.code[w.at].swaps && w.block.kernel.code[t.pc()].source.Op == ptx.OpLd
	return w.sees(t, thread) && !confirmed
}

// add keeps an access, unless one of its group is there.
func (c *crowd) add(b *block, t touch) {
	m := member{t &^ crowdBit, b.groupOf(t)}
	if c.has(m.group) {
		return
	}
	if now := b.run.turns.now(); c.count == len(c.members) && c.compacted != now {
		c.compact(now)
	}
	if c.count < len(c.members) && !c.has(m.group) {
		c.members[c.count] = m
		c.count++
		c.plain = c.plain || m.group&groupStrong == 0
	}
}

// has reports whether an access of a group is there.
func (c *crowd) has(g crowdGroup) bool {
	for n := range c.members[:c.count] {
		if c.members[n].group == g {
			return true
		}
	}
	return false
}

// compact leaves one access of each earlier turn.
func (c *crowd) compact(now uint64) {
	kept := crowd{compacted: now, plain: c.plain}
	for _, m := range c.members[:c.count] {
		if uint64(m.group>>turnShift) != now {
			m.group &^= warpsMask
		}
		if !kept.has(m.group) {
			kept.members[kept.count] = m
			kept.count++
		}
	}
	*c = kept
}

// conflictInCrowd is an access of the crowd that the new one is not ordered with, or 0.
func (w *warp) conflictInCrowd(c *cell, a *access, unordered func(touch) bool) touch {
	all := w.block.run.crowds.at(c, a.address)
	if all == nil || a.strong && !all.plain {
		return 0
	}
	for n := range all.members[:all.count] {
		if m := &all.members[n]; (a.write || m.group&groupWrite != 0) && unordered(m.touch) {
			return m.touch
		}
	}
	return 0
}
