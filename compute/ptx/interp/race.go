package interp

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// conflict returns an earlier access that the new one is not ordered with, or 0.
func (d *detector) conflict(c *cell, a *access, thread int, since uint32) touch {
	unordered := func(t touch) bool {
		return t.clock() > since && (!a.strong || !t.strong()) && !d.order.sees(t, thread)
	}
	switch {
	case unordered(c.store):
		return c.store
	case a.write && unordered(c.load):
		return c.load
	case a.write && unordered(c.other):
		return c.other
	case c.store.crowded():
		return d.conflictInCrowd(c, a, unordered)
	}
	return 0
}

// check looks for races of an access to cells and notes it. now are the bytes that are there.
func (d *detector) check(a *access, cells []cell, kind Kind, now []byte) bool {
	if d.ignores(kind) {
		return true
	}
	if q := d.queue(kind, a.write); !a.strong && q.pass(cells, touch(a.thread)) { //nolint:gosec // not negative
		return true
	}
	shaky := kind == SharedRace && d.block.kernel.code[d.at].shaky && !d.block.kernel.lockstep && !d.ignores(WarpRace)
	thread := d.index*warpThreads + a.thread
	since := uint32(0) // accesses at this time and before are forgotten: each block starts with new shared memory
	if kind == SharedRace {
		since = d.block.began
	}
	t := newTouch(d.order.clock, d.at, a.strong, thread)
	for n := range cells {
		c := &cells[n]
		switch found := d.conflict(c, a, thread, since); {
		case found == 0:
		case a.write && found == c.store && same(a.value, now): // it changes nothing
			if found.strong() && kind == SharedRace {
				d.order.clock = d.block.run.tick() // no test of an mbarrier before it is repeated after it
			}
		case !d.guessed(a, found, kind, now) && d.raced(c, found, a, thread, since, kind):
			return false
		}
		if shaky && !d.meets(c, a, thread, since, now) {
			return false
		}
		if a.write && a.strong && *c != (cell{}) {
			c.note(d.crowded(c, t, a, thread, since), true)
			continue
		}
		if a.write {
			c.note(t, true)
			continue
		}
		d.keep(c, t, thread, since)
	}
	return true
}

// keep notes a load in a cell, which has room for two. The new one stands for those that it is ordered after; of two others the one that is
// less likely ordered before a later store stays: of another block, or of another warp.
func (d *detector) keep(c *cell, t touch, thread int, since uint32) {
	standsFor := func(l touch) bool {
		return l.clock() <= since || (l.strong() || !t.strong()) && d.order.sees(l, thread)
	}
	if l := c.load; !standsFor(l) && (standsFor(c.other) || d.distance(l) >= d.distance(c.other)) {
		c.other = l
	}
	c.load = t
}

// distance is 0 of an access of the warp, 1 of another warp of the block, and 2 of another block.
func (d *detector) distance(t touch) int {
	switch {
	case !d.block.owns(t.clock()):
		return 2 //nolint:mnd // the farthest
	case t.thread()/warpThreads != d.index:
		return 1
	}
	return 0
}

// repeats reports whether the detector has seen an access: the thread made it before at the same time, and the last write of the cells is a
// strong one of its warp at that time. A weak write in between is a race that was found, or changed nothing and ended the time.
func (d *detector) repeats(a *access, cells []cell) bool {
	if !a.again {
		return false
	}
	for n := range cells {
		if s := cells[n].store; s.clock() != d.order.clock || !s.strong() {
			return false
		}
	}
	return true
}

// meets reports whether no other thread of the warp has touched a cell by a .volatile access, too, without a barrier since
// then. In lockstep each access of a warp would be ordered before its next one.
func (d *detector) meets(c *cell, a *access, thread int, since uint32, now []byte) bool {
	earlier := [...]touch{c.store, c.load, c.other}
	for n, t := range earlier {
		if n > 0 && !a.write || t.clock() <= since || t.thread() == thread || t.thread()/warpThreads != d.index ||
			!d.block.kernel.code[t.pc()].shaky || d.order.sees(t, thread) || n == 0 && a.write && same(a.value, now) {
			continue
		}
		f := d.race(a, t, WarpRace)
		f.Detail = "nothing orders the two accesses of one warp, whose threads do not run in lockstep: a bar.warp.sync is missing"
		d.fail(f, a.thread)
		return false
	}
	return true
}

// coherent reports whether no non-coherent load is of a cell that the launch stores, earlier or later.
func (mem *memory) coherent(a *access, p *page, at uint64, cells []cell) bool {
	if mem.ignores(NonCoherent) {
		return true
	}
	mine := newTouch(mem.order.clock, mem.at, a.strong, mem.index*warpThreads+a.thread)
	first := at >> mem.block.run.shift[1]
	if a.constant && p.constant == nil {
		p.constant = &[pageCells]touch{}
	}
	for n := range cells {
		var other touch
		switch {
		case a.constant:
			if other = cells[n].store; p.constant[first+uint64(n)] == 0 { //nolint:gosec // few
				p.constant[first+uint64(n)] = mine //nolint:gosec // few
			}
		case a.write && p.constant != nil:
			other = p.constant[first+uint64(n)] //nolint:gosec // few
		}
		if other != 0 {
			f := mem.race(a, other, NonCoherent)
			f.Detail = "memory that is loaded by ld.global.nc does not change while a kernel runs" + mem.whose(a)
			mem.fail(f, a.thread)
			return false
		}
		if a.write && mem.ignores(GlobalRace) {
			cells[n].store = mine
		}
	}
	return true
}

// skipOwn skips conflicts with ended products of the warp itself, for which all its threads waited, and returns the
// next conflict.
func (d *detector) skipOwn(c *cell, found touch, a *access, thread int, since uint32) touch {
	for found != 0 && found.thread()/warpThreads == d.index && d.block.kernel.code[found.pc()].source.Op == ptx.OpWgmmaMmaAsync {
		if c.load == found {
			c.load = 0
		} else {
			c.other = 0
		}
		found = d.conflict(c, a, thread, since)
	}
	return found
}

// raced reports a conflict that was found, but for those with products of the warp's own.
func (d *detector) raced(c *cell, found touch, a *access, thread int, since uint32, kind Kind) bool {
	if d.block.kernel.wgmma {
		found = d.skipOwn(c, found, a, thread, since)
	}
	if found != 0 {
		d.fail(d.race(a, found, kind), a.thread)
	}
	return found != 0
}

// same reports whether a store changes nothing: two threads that write the same do no harm.
func same(value, now []byte) bool { return value != nil && slices.Equal(value, now) }

// guessed reports whether a race is one of a plain load with an atomic, and keeps it until the thread that has loaded
// confirms the value.
func (d *detector) guessed(a *access, found touch, kind Kind, now []byte) bool {
	b := d.block
	if !b.kernel.swaps || a.bytes > 8 { //nolint:mnd // the widest atom.cas
		return false
	}
	thread := d.index*warpThreads + a.thread
	mine, other := b.kernel.code[d.at].source.Op, b.kernel.code[found.pc()].source.Op
	switch {
	case !a.strong && mine == ptx.OpLd && isAtomic(other):
	case !found.strong() && other == ptx.OpLd && isAtomic(mine) && b.owns(found.clock()):
		thread = found.thread()
	default:
		return false
	}
	key := guessKey{thread, keyOf(a)}
	if _, known := b.guesses.open[key]; !known {
		b.guesses.keep(key, d.locate(d.race(a, found, kind), a.thread), load(now, a.bytes))
	}
	return true
}

// race returns the fault of two accesses.
func (d *detector) race(a *access, t touch, kind Kind) *Fault {
	b := d.block
	index := b.index
	if !b.owns(t.clock()) {
		index = b.run.launch.Grid.at(b.run.turns.blockAt(t.clock()))
	}
	other := b.kernel.place(t.pc(), index, b.run.launch.Block.at(uint64(t.thread()))) //nolint:gosec // not negative
	return &Fault{Kind: kind, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other, Detail: d.disorder(t) + d.whose(a)}
}

// whose says whose memory an access is to, where that is known.
func (d *detector) whose(a *access) string {
	if a.space == ptx.Shared {
		return ""
	}
	g, err := d.block.run.find(a)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; byte %d%s", a.address-g.Start, g.owner())
}

// disorder names the missing order between an earlier access and now.
func (d *detector) disorder(t touch) string {
	b, clock := d.block, t.clock()
	acquired := clock <= d.order.acquired[t.thread()/warpThreads]
	if !b.owns(clock) {
		acquired = d.order.turns.has(b.run.turns.at(clock))
	}
	if acquired {
		return "nothing orders the two accesses: a fence is missing after the atomic access that has read what the other thread wrote"
	}
	return "nothing orders the two accesses"
}
