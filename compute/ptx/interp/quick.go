package interp

import (
	"encoding/binary"

	"github.com/go-vram/vram/compute/ptx"
)

// transfer is a plain load or store of global or shared memory, as the warp executes it: one loop over its threads, as
// long as an access needs no more than the memory that the instruction touched last, defined bytes, and earlier accesses
// that are ordered before it. For any other access the loop ends, and memory.reach looks at it.
type transfer struct {
	p        pointer
	slots    []int
	each     int // bytes of a slot
	bytes    int
	extend   bool // the sign, to width
	wide     integer
	constant bool // non-coherent
	write    bool
}

// quick executes the transfer in the first threads of a mask, and returns the others.
func (t *transfer) quick(mem *memory, f *frame, m uint32) uint32 {
	if t.p.space == ptx.Shared {
		return t.quickShared(mem, f, m)
	}
	return t.quickGlobal(mem, f, m)
}

// quickShared is quick for shared memory.
func (t *transfer) quickShared(mem *memory, f *frame, m uint32) uint32 {
	b := mem.block
	bytes := uint64(t.bytes) //nolint:gosec // few
	if b.asyncs > 0 || mem.ignores(SharedRace) || uint64(len(b.shared)) < bytes {
		return m
	}
	last, ones, shift := uint64(len(b.shared))-bytes, mask(t.bytes), b.run.shift[0]
	q := queue{
		mine: newTouch(mem.order.clock, mem.at, false, mem.index*warpThreads), seen: &mem.order.settled, forgotten: b.began, write: t.write,
	}
	for base, r := &f.regs[t.p.base], &f.regs[t.slots[0]]; m != 0; m &= m - 1 {
		n := next(m)
		at := (base[n] + t.p.offset) & t.p.ones
		if at > last || at&(bytes-1) != 0 {
			return m
		}
		word, field := &b.initialised[at>>6], ones<<(at&63) //nolint:mnd // bits of a word
		if !t.write && *word&field != field || !q.pass(b.cells[at>>shift:(at+bytes-1)>>shift+1], touch(n)) { //nolint:gosec // not negative
			return m
		}
		switch {
		case t.write:
			*word |= field
			t.store(b.shared[at:at+bytes], f, n)
		case bytes == 4 && !t.extend: //nolint:mnd // the usual width
			r[n] = uint64(binary.LittleEndian.Uint32(b.shared[at:]))
		default:
			t.load(b.shared[at:at+bytes], f, n)
		}
	}
	return 0
}

// quickGlobal is quick for global memory.
func (t *transfer) quickGlobal(mem *memory, f *frame, m uint32) uint32 {
	g, r, bytes := mem.block.memo[mem.at].region, mem.block.run, uint64(t.bytes) //nolint:gosec // few
	if g == nil || mem.ignores(GlobalRace) || mem.ignores(NonCoherent) || g.ways[index(t.write)].bytes < bytes || g.pages == nil {
		return m
	}
	way, shift := g.ways[index(t.write)], r.shift[1]
	q := queue{
		mine: newTouch(mem.order.clock, mem.at, false, mem.index*warpThreads), seen: &mem.order.settled,
		since: r.turns.starts[len(r.turns.starts)-1], write: t.write,
	}
	var p *page
	have, inside := ^uint64(0), uint64(1)<<(shift+pageBits)-1
	for base, r := &f.regs[t.p.base], &f.regs[t.slots[0]]; m != 0; m &= m - 1 {
		n := next(m)
		address := (base[n] + t.p.offset) & t.p.ones
		if address-way.start > way.bytes-bytes || address&(bytes-1) != 0 {
			return m
		}
		at := address - g.Start
		if k := at >> (shift + pageBits); k != have {
			if p = g.pages[k]; p == nil || t.write && p.apart != nil && !p.apart.copied || t.constant && p.constant == nil {
				return m
			}
			have = k
		}
		if at &= inside; !t.quickPage(p, at, shift, &q, touch(n)) { //nolint:gosec // not negative
			return m
		}
		switch {
		case t.write:
			t.store(p.bytes[at:at+bytes], f, n)
		case bytes == 4 && !t.extend: //nolint:mnd // the usual width
			r[n] = uint64(binary.LittleEndian.Uint32(p.bytes[at:]))
		default:
			t.load(p.bytes[at:at+bytes], f, n)
		}
	}
	return 0
}

// quickPage notes an access in a page, or reports false.
func (t *transfer) quickPage(p *page, at uint64, shift uint, q *queue, n touch) bool {
	first, field := at>>shift, mask(t.bytes)<<(at&63) //nolint:mnd // bits of a word
	if p.written != nil && !t.write && p.written[at>>6]&field != field {
		return false
	}
	cells := p.cells[first:min((at+uint64(t.bytes)-1)>>shift+1, pageCells)] //nolint:gosec // few bytes
	if p.constant != nil && !t.quickConstant(p, cells, first, q.mine+n) {
		return false
	}
	if !q.pass(cells, n) {
		return false
	}
	if p.apart != nil {
		p.apart.mark(first, uint64(len(cells)), t.write)
	}
	if t.write && p.written != nil {
		p.written[at>>6] |= field
	}
	if t.write && p.stored != nil {
		p.stored[at>>6] |= field
	}
	return true
}

// quickConstant notes a non-coherent load. It reports false where the launch stores, too.
func (t *transfer) quickConstant(p *page, cells []cell, first uint64, mine touch) bool {
	for n := range cells {
		c := &p.constant[first+uint64(n)] //nolint:gosec // few
		if t.write && *c != 0 || t.constant && cells[n].store != 0 {
			return false
		}
		if t.constant && *c == 0 {
			*c = mine
		}
	}
	return true
}

// queue is the order of plain accesses of a warp after earlier ones.
type queue struct {
	mine      touch   // of thread 0
	seen      *clocks // every thread of the warp sees the accesses of each warp up to here
	since     uint32  // accesses up to here are of other blocks
	forgotten uint32  // accesses up to here do not count
	write     bool
	known     touch // what orders a touch, of one that was found ordered: all but the lane
}

// laneBits are the bits of a touch that tell the threads of a warp apart.
const laneBits = 5

// pass notes an access of a thread in cells whose earlier accesses are ordered before it. It reports false where another
// one is there, or a crowd.
func (q *queue) pass(cells []cell, n touch) bool {
	mine := q.mine + n
	for k := range cells {
		c := &cells[k]
		if s := c.store; s != 0 && s>>laneBits != q.known && !q.follows(s, mine) {
			return false
		}
		if !q.write {
			if l := c.load; l != 0 && (l^mine)&(1<<threadBits-1) != 0 {
				c.other = l
			}
			c.load = mine
			continue
		}
		if l := c.load; l != 0 && l>>laneBits != q.known && !q.follows(l, mine) {
			return false
		}
		if o := c.other; o != 0 && o>>laneBits != q.known && !q.follows(o, mine) {
			return false
		}
		*c = cell{store: mine}
	}
	return true
}

// follows reports whether an access is surely ordered before one of the current turn.
func (q *queue) follows(t, mine touch) bool {
	clock := t.clock()
	switch {
	case t.crowded():
		return false
	case clock <= q.forgotten || clock > q.since && clock <= q.seen[t>>laneBits&(maxWarps-1)]:
		q.known = t >> laneBits
		return true
	}
	return clock > q.since && t.thread() == mine.thread()
}

// load reads the registers of a thread.
func (t *transfer) load(from []byte, f *frame, n int) {
	for _, d := range t.slots {
		v := load(from, t.each)
		if t.extend {
			v = t.wide.pack(signExtend(v, 8*t.each, true)) //nolint:mnd // bits
		}
		f.regs[d][n] = v
		from = from[t.each:]
	}
}

// store writes the registers of a thread.
func (t *transfer) store(to []byte, f *frame, n int) {
	for k, s := range t.slots {
		store(to[k*t.each:], t.each, f.regs[s][n])
	}
}
