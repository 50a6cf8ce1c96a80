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
	q := mem.queue(SharedRace, t.write)
	if t.isWord(shift) {
		return t.quickWords(b, f, m, &q)
	}
	for base, r := &f.regs[t.p.base], &f.regs[t.slots[0]]; m != 0; m &= m - 1 {
		n := next(m)
		at := (base[n] + t.p.offset) & t.p.ones
		if at > last || at&(bytes-1) != 0 {
			return m
		}
		word, field := &b.initialised[at>>6], ones<<(at&63)                                                  //nolint:mnd // bits of a word
		if !t.write && *word&field != field || !q.pass(b.cells[at>>shift:(at+bytes-1)>>shift+1], touch(n)) { //nolint:gosec // not negative
			return m
		}
		switch {
		case t.write:
			*word |= field
			t.store(b.shared[at:at+bytes], f, n)
		case t.each == 4 && bytes == 4 && !t.extend: //nolint:mnd // the usual width
			r[n] = uint64(binary.LittleEndian.Uint32(b.shared[at:]))
		default:
			t.load(b.shared[at:at+bytes], f, n)
		}
	}
	return 0
}

// isWord reports whether each access is one register and one cell of 32 bits.
func (t *transfer) isWord(shift uint) bool {
	return t.bytes == 4 && shift == 2 && t.each == 4 && !t.extend
}

// quickWords is quickShared for cells of 32 bits.
func (t *transfer) quickWords(b *block, f *frame, m uint32, q *queue) uint32 {
	last, cells, written, shared := uint64(len(b.shared))-4, b.cells, b.initialised, b.shared //nolint:mnd // bytes
	base, r := &f.regs[t.p.base], &f.regs[t.slots[0]]
	for ; m != 0; m &= m - 1 {
		n := next(m)
		at := (base[n] + t.p.offset) & t.p.ones
		if at > last || at&3 != 0 {
			return m
		}
		if t.write {
			if !q.store(&cells[at>>2], touch(n)) { //nolint:gosec // not negative
				return m
			}
			written[at>>6] |= 15 << (at & 63)                        //nolint:mnd // bits of a word
			binary.LittleEndian.PutUint32(shared[at:], uint32(r[n])) //nolint:gosec // cut to the width
			continue
		}
		if written[at>>6]>>(at&63)&15 != 15 || !q.load(&cells[at>>2], touch(n)) { //nolint:gosec,mnd // not negative; bits of a word
			return m
		}
		r[n] = uint64(binary.LittleEndian.Uint32(shared[at:]))
	}
	return 0
}

// quickRow is quickGlobal for all threads of a warp and words one after the other, as far as it can be. It reports whether
// it has executed the transfer.
func (t *transfer) quickRow(g *region, f *frame, q *queue) bool {
	base, r := &f.regs[t.p.base], &f.regs[t.slots[0]]
	const inside, rowBytes = pageCells*4 - 1, 4 * warpThreads
	way, first := g.ways[index(t.write)], (base[0]+t.p.offset)&t.p.ones
	at := first - g.Start
	if first-way.start > way.bytes-rowBytes || way.bytes < rowBytes || (first|at)&3 != 0 || at&inside > inside+1-rowBytes || first > t.p.ones-rowBytes {
		return false
	}
	for n := range base {
		if base[n] != base[0]+4*uint64(n) { //nolint:gosec // few
			return false
		}
	}
	p := g.pages[at/(inside+1)]
	at &= inside
	if p == nil || t.constant && p.constant == nil || t.write && p.apart != nil && !p.apart.copied || !t.write && p.written != nil && !isFull(p.written, at) {
		return false
	}
	cells := p.cells[at>>2:][:warpThreads]
	bytes := p.bytes[at:][:rowBytes]
	if p.constant != nil && !t.quickConstant(p, cells, at>>2, q.mine) {
		return false
	}
	if !t.write {
		for n := range cells {
			if !t.constant && !q.load(&cells[n], touch(n)) { //nolint:gosec // not negative
				return false
			}
			r[n] = uint64(binary.LittleEndian.Uint32(bytes[4*n:]))
		}
		if p.apart != nil {
			p.apart.loaded.set(at>>2, warpThreads)
		}
		return true
	}
	for n := range cells {
		if !q.store(&cells[n], touch(n)) { //nolint:gosec // not negative
			return false
		}
	}
	for n := range r {
		binary.LittleEndian.PutUint32(bytes[4*n:], uint32(r[n])) //nolint:gosec // cut to the width
	}
	if p.apart != nil {
		p.apart.stored.set(at>>2, warpThreads)
	}
	if p.written != nil {
		fill(p.written, at)
	}
	if p.stored != nil {
		fill(p.stored, at)
	}
	return true
}

// isFull reports whether the bits of a row of words are set.
func isFull(bits []uint64, at uint64) bool {
	word, shift := at>>6, at&63 //nolint:mnd // bits of a word
	if shift == 0 {
		return bits[word]&bits[word+1] == ^uint64(0)
	}
	ones := ^uint64(0)
	return bits[word]>>shift == ones>>shift && bits[word+1] == ones && bits[word+2]&(1<<shift-1) == 1<<shift-1
}

// fill sets the bits of a row of words.
func fill(bits []uint64, at uint64) {
	word, shift := at>>6, at&63 //nolint:mnd // bits of a word
	bits[word] |= ^uint64(0) << shift
	bits[word+1] = ^uint64(0)
	if shift != 0 {
		bits[word+2] |= 1<<shift - 1
	}
}

// quickGlobal is quick for global memory.
func (t *transfer) quickGlobal(mem *memory, f *frame, m uint32) uint32 {
	g, r, bytes := mem.block.memo[mem.at].region, mem.block.run, uint64(t.bytes) //nolint:gosec // few
	if g == nil || mem.ignores(GlobalRace) || mem.ignores(NonCoherent) || g.ways[index(t.write)].bytes < bytes || g.pages == nil {
		return m
	}
	way, shift := g.ways[index(t.write)], r.shift[1]
	q := mem.queue(GlobalRace, t.write)
	if m == full && t.isWord(shift) && t.quickRow(g, f, &q) {
		return 0
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
		case t.each == 4 && bytes == 4 && !t.extend: //nolint:mnd // the usual width
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
	cells := p.cells[first:min((at+uint64(t.bytes)-1)>>shift+1, uint64(len(p.cells)))] //nolint:gosec // few bytes
	if p.constant != nil && !t.quickConstant(p, cells, first, q.mine+n) {
		return false
	}
	if !t.constant && !q.pass(cells, n) { // a store after a non-coherent load is a fault in any order
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
	constant := p.constant[first:][:len(cells)]
	for n := range cells {
		if t.write && constant[n] != 0 || t.constant && cells[n].store != 0 {
			return false
		}
		if t.constant && constant[n] == 0 {
			constant[n] = mine
		}
	}
	return true
}

// queue is the order of plain accesses of a warp after earlier ones.
type queue struct {
	mine      touch   // of thread 0
	seen      *clocks // every thread of the warp sees the accesses of each warp up to here
	since     uint32  // accesses up to here are of other blocks
	others    uint32  // likewise, for sure
	forgotten uint32  // accesses up to here do not count
	write     bool
	known     touch // a touch that is ordered, without its lane
}

// queue returns the order of the warp's next accesses to memory whose races are of a kind.
func (d *detector) queue(kind Kind, write bool) queue {
	q := queue{mine: newTouch(d.order.clock, d.at, false, d.index*warpThreads), seen: &d.order.settled, write: write}
	if kind == SharedRace {
		q.forgotten = d.block.began
		return q
	}
	r := d.block.run
	if q.since = r.turns.starts[len(r.turns.starts)-1]; !r.launch.Cooperative {
		q.others = q.since
	}
	return q
}

// laneBits are the bits of a touch that tell the threads of a warp apart.
const laneBits = 5

// pass notes an access of a thread in cells whose earlier accesses are ordered before it. It reports false where another
// one is there, or a crowd.
func (q *queue) pass(cells []cell, n touch) bool {
	for k := range cells {
		if q.write && !q.store(&cells[k], n) || !q.write && !q.load(&cells[k], n) {
			return false
		}
	}
	return true
}

// load is pass for a load and a cell.
func (q *queue) load(c *cell, n touch) bool {
	mine := q.mine + n
	if s := c.store; s != 0 && s>>laneBits != q.known && !q.follows(s, mine) {
		return false
	}
	if l, o := c.load, c.other; l != 0 {
		switch {
		case (l^mine)&(1<<threadBits-1) == 0 && l.clock() > q.since: // its own
		case o == 0 || o>>laneBits == l>>laneBits, !q.follows(l, mine) && (q.follows(o, mine) || q.distance(l) >= q.distance(o)):
			c.other = l // as detector.keep has it
		}
	}
	c.load = mine
	return true
}

// distance is detector.distance, but for a cooperative launch, where other blocks are not known.
func (q *queue) distance(t touch) int {
	switch {
	case t.clock() <= q.others:
		return 2 //nolint:mnd // the farthest
	case (t^q.mine)&(1<<threadBits-1)>>laneBits != 0:
		return 1
	}
	return 0
}

// store is pass for a store and a cell.
func (q *queue) store(c *cell, n touch) bool {
	mine := q.mine + n
	for _, t := range [...]touch{c.store, c.load, c.other} {
		if t != 0 && t>>laneBits != q.known && !q.follows(t, mine) {
			return false
		}
	}
	*c = cell{store: mine}
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
