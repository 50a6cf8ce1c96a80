package interp

import "github.com/go-vram/vram/compute/ptx"

// crowded keeps the accesses that a strong store would hide, and returns the store with a mark that they are there.
func (d *detector) crowded(c *cell, t touch, a *access, thread int, since uint32) touch {
	r := d.block.run
	var all *crowd
	if c.store.crowded() {
		if all = r.crowds.at(c, a.address); all != nil && all.members[0].touch.clock() <= since { // of shared memory in an earlier block
			*all = crowd{}
		}
	}
	for _, hidden := range [...]touch{c.store, c.load, c.other} {
		if hidden.clock() <= since || !d.hides(hidden, thread) {
			continue
		}
		if all == nil {
			all = r.crowds.add(c)
		}
		all.add(member{hidden &^ crowdBit, d.block.groupOf(hidden)}, r.turns.now())
	}
	if all != nil && all.count > 0 {
		t |= crowdBit
	}
	return t
}

// hides reports whether a strong store of a thread does not stand for an earlier access.
func (d *detector) hides(t touch, thread int) bool {
	if t.strong() {
		return !d.order.sees(t, thread)
	}
	confirmed := t.thread() == thread && d.block.kernel.code[d.at].swaps && d.block.kernel.code[t.pc()].source.Op == ptx.OpLd
	return d.order.sees(t, thread) && !confirmed
}

// groupOf returns the group of an access.
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

// conflictInCrowd returns an access of the crowd that the new one is not ordered with, or 0.
func (d *detector) conflictInCrowd(c *cell, a *access, unordered func(touch) bool) touch {
	all := d.block.run.crowds.at(c, a.address)
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
