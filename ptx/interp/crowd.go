package interp

import "github.com/go-vram/vram/ptx"

// crowd is accesses to a cell that its last store, an atomic or ordered one, does not stand for: others that are atomic and that nothing
// orders before it, and plain ones, which are a race with every later access that is not ordered behind them.
type crowd struct {
	touches [crowdSize]touch
	count   int
}

// crowdSize is how many accesses a crowd has, one of each earlier block and of each warp of the block. Not fewer: the threads of a
// block are up to 32 warps, but what orders one of them often orders all. Not more: each access to the cell looks at all.
const crowdSize = 8

// crowded keeps the accesses that a strong store would hide, and returns the store with a mark that they are there.
func (w *warp) crowded(c *cell, t touch, thread int, since uint32) touch {
	r := w.block.run
	var all *crowd
	if c.store.crowded() {
		if all = r.crowds[c]; all != nil && all.touches[0].clock() <= since { // of shared memory in an earlier block
			*all = crowd{}
		}
	}
	for _, hidden := range [...]touch{c.store, c.load, c.other} {
		if hidden.clock() <= since || !w.hides(hidden, thread) {
			continue
		}
		if all == nil {
			all = &crowd{}
			r.crowds[c] = all
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

// add keeps an access, unless one of its block or warp is there.
func (c *crowd) add(b *block, t touch) {
	t &^= crowdBit
	if c.count == len(c.touches) {
		c.compact(b)
	}
	if c.count == len(c.touches) || c.has(b, t) {
		return
	}
	c.touches[c.count] = t
	c.count++
}

// has reports whether an access of the same group is there.
func (c *crowd) has(b *block, t touch) bool {
	for _, known := range c.touches[:c.count] {
		if b.groupOf(known) == b.groupOf(t) {
			return true
		}
	}
	return false
}

// crowdGroup is who has made an access, an earlier block as a whole or a warp of the block, and its kind.
type crowdGroup struct {
	turn          uint64
	warp          int
	strong, write bool
}

func (b *block) groupOf(t touch) crowdGroup {
	g := crowdGroup{b.run.turns.now(), t.thread() / warpThreads, t.strong(), writes(b.kernel.code[t.pc()].source.Op)}
	if clock := t.clock(); b.run.turns.past(clock) {
		g.turn, g.warp = b.run.turns.at(clock), none
	}
	return g
}

// compact leaves one access of each earlier block.
func (c *crowd) compact(b *block) {
	kept := crowd{}
	for _, t := range c.touches[:c.count] {
		if !kept.has(b, t) {
			kept.touches[kept.count] = t
			kept.count++
		}
	}
	*c = kept
}

// conflictInCrowd is an access of the crowd that the new one is not ordered with, or 0.
func (w *warp) conflictInCrowd(c *cell, write bool, unordered func(touch) bool) touch {
	all := w.block.run.crowds[c]
	if all == nil {
		return 0
	}
	for _, t := range all.touches[:all.count] {
		if (write || writes(w.block.kernel.code[t.pc()].source.Op)) && unordered(t) {
			return t
		}
	}
	return 0
}
