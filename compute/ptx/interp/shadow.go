package interp

import (
	"fmt"
	"slices"

	"github.com/go-vram/vram/compute/ptx"
)

// widestGranule is the most bytes that share a cell. Smaller accesses of a kernel make cells smaller.
const widestGranule = 4

// touch is an access as a cell keeps it: the clock of its warp, the instruction, whether it was strong, whether the cell has a crowd, and
// the thread. 0 is none.
type touch uint64

const (
	threadBits = 10
	strongBit  = 1 << threadBits
	crowdBit   = 1 << (threadBits + 1)
	pcShift    = threadBits + 2
	pcBits     = 20 // as many instructions as a kernel may have
	clockShift = pcShift + pcBits
)

func newTouch(clock uint32, pc int, strong bool, thread int) touch {
	t := touch(clock)<<clockShift | touch(pc)<<pcShift | touch(thread) //nolint:gosec // not negative
	if strong {
		t |= strongBit
	}
	return t
}

func (t touch) clock() uint32 { return uint32(t >> clockShift) } //nolint:gosec // 32 bits
func (t touch) pc() int       { return int(t >> pcShift & (1<<pcBits - 1)) }
func (t touch) thread() int   { return int(t & (1<<threadBits - 1)) }
func (t touch) strong() bool  { return t&strongBit != 0 }
func (t touch) crowded() bool { return t&crowdBit != 0 }

// cell keeps the accesses to a few bytes: the last store, the last load, and the last load of another thread.
type cell struct{ store, load, other touch }

// sees reports whether an access happened before the next one of a thread of the warp.
func (w *warp) sees(t touch, thread int) bool {
	clock, by := t.clock(), t.thread()
	if b := w.block; b.run.turns.past(clock) {
		if turn := b.run.turns.at(clock); b.run.turns.blocks[turn] != b.number {
			return b.seenTurns.has(turn)
		}
	}
	if by == thread {
		return true
	}
	o := &w.order
	if by/warpThreads != w.index {
		return clock <= o.seen[by/warpThreads]
	}
	n, m := thread%warpThreads, by%warpThreads
	return clock <= o.together || clock <= o.alone[n] || o.pairs != nil && clock <= o.pairs[n][m]
}

// conflict is an earlier access that the new one is not ordered with, or 0.
func (w *warp) conflict(c *cell, a *access, thread int, since uint32) touch {
	unordered := func(t touch) bool {
		return t.clock() > since && (!a.strong || !t.strong()) && !w.sees(t, thread)
	}
	switch {
	case unordered(c.store):
		return c.store
	case a.write && unordered(c.load):
		return c.load
	case a.write && unordered(c.other):
		return c.other
	case c.store.crowded():
		return w.conflictInCrowd(c, a, unordered)
	}
	return 0
}

// note keeps an access in a cell.
func (c *cell) note(t touch, write bool) {
	switch {
	case write: // the loads were before it
		*c = cell{store: t}
	case c.load.thread() != t.thread() || c.load == 0:
		c.other, c.load = c.load, t
	default:
		c.load = t
	}
}

// access is one access of a thread.
type access struct {
	space       ptx.Space
	address     uint64
	bytes       int
	thread      int // of the warp
	read, write bool
	strong      bool
	value       []byte // that is stored, where it is known
}

// check looks for races of an access to cells and notes it. now are the bytes that are there.
func (w *warp) check(a *access, cells []cell, kind Kind, now []byte) bool {
	if w.block.run.ignored[kind] {
		return true
	}
	thread := w.index*warpThreads + a.thread
	since := uint32(0) // accesses at this time and before are forgotten: shared memory begins anew in each block
	if kind == SharedRace {
		since = w.block.began
	}
	t := newTouch(w.order.clock, w.at, a.strong, thread)
	for n := range cells {
		c := &cells[n]
		if found := w.conflict(c, a, thread, since); found != 0 && (!a.write || found != c.store || !same(a.value, now)) &&
			!w.guessed(a, found, kind, now) && w.raced(c, found, a, thread, since, kind) {
			return false
		}
		if a.write && a.strong && *c != (cell{}) {
			c.note(w.crowded(c, t, a, thread, since), true)
			continue
		}
		c.note(t, a.write)
	}
	return true
}

// raced reports a conflict that was found, but for those with products of the warp's own.
func (w *warp) raced(c *cell, found touch, a *access, thread int, since uint32, kind Kind) bool {
	if w.products != nil {
		found = w.products.beside(c, found, a, thread, since)
	}
	if found != 0 {
		w.race(a, found, kind)
	}
	return found != 0
}

// same reports whether a store changes nothing: two threads that write the same do no harm.
func same(value, now []byte) bool { return value != nil && slices.Equal(value, now) }

// race reports two accesses.
func (w *warp) race(a *access, t touch, kind Kind) {
	b := w.block
	index := b.index
	if !b.owns(t.clock()) {
		index = b.run.launch.Grid.at(b.run.turns.blockAt(t.clock()))
	}
	other := b.kernel.place(t.pc(), index, b.run.launch.Block.at(uint64(t.thread()))) //nolint:gosec // not negative
	w.fail(&Fault{Kind: kind, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other, Detail: w.disorder(t) + w.whose(a)}, a.thread)
}

// whose says whose memory an access is to, where that is known.
func (w *warp) whose(a *access) string {
	if a.space == ptx.Shared {
		return ""
	}
	g, err := w.block.run.find(a)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("; byte %d%s", a.address-g.Start, g.owner())
}

// disorder names the missing order between an earlier access and now.
func (w *warp) disorder(t touch) string {
	b, clock := w.block, t.clock()
	acquired := clock <= w.order.acquired[t.thread()/warpThreads]
	if !b.owns(clock) {
		acquired = w.order.turns.has(b.run.turns.at(clock))
	}
	if acquired {
		return "nothing orders the two accesses: a fence is missing after the atomic access that has read what the other thread wrote"
	}
	return "nothing orders the two accesses"
}
