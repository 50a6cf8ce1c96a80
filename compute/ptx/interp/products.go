package interp

import (
	"slices"
	"sort"

	"github.com/go-vram/vram/compute/ptx"
)

// products is the state of a warp's wgmma; nil in kernels without it.
type products struct {
	warp    *warp
	fenced  bool         // by a wgmma.fence in this block
	issued  int          // in this block
	open    []*product   // not committed
	groups  [][]*product // the oldest first
	proxies []proxyFence // of its threads, in order

	x [rowsA][maxProductDepth]float64
	y [maxProductColumns][maxProductDepth]float64 // by columns
}

// product is a wgmma.mma_async whose results have not arrived.
type product struct {
	pc     int
	frame  *frame
	form   *productForm
	chunks []uint16 // of shared memory that it reads
}

// issue is a product as the first warp of a warpgroup executed it.
type issue struct {
	pc, warp    int
	left, right uint64 // descriptors
}

// proxyFence is a fence.proxy.async of some threads: accesses up to the clock are seen by products.
type proxyFence struct{ clock, threads uint32 }

// registerUse is the use of a frame's registers by products, by slot; nil in functions without products.
type registerUse struct {
	touched []uint32   // threads that accessed the register since the last wgmma.fence
	reads   []int      // products that read it as A
	writes  []int      // products that write it as D
	last    []*product // that uses it
}

func newRegisterUse(slots int) *registerUse {
	return &registerUse{make([]uint32, slots), make([]int, slots), make([]int, slots), make([]*product, slots)}
}

func (u *registerUse) clear() {
	clear(u.touched)
	clear(u.reads)
	clear(u.writes)
	clear(u.last)
}

// inFlight is the product that uses a register, or nil.
func (u *registerUse) inFlight(slot int) *product {
	if u == nil || slot >= len(u.last) || u.reads[slot]+u.writes[slot] == 0 {
		return nil
	}
	return u.last[slot]
}

// renew makes the state ready for another block.
func (s *products) renew() {
	s.fenced, s.issued, s.open, s.groups, s.proxies = false, 0, nil, nil, s.proxies[:0]
}

// fence orders accesses to registers, of the frame and of its callers, before later products.
func (s *products) fence(f *frame) {
	s.fenced = true
	for ; f != nil; f = f.parent {
		if f.use != nil {
			clear(f.use.touched)
		}
	}
}

func (s *products) commit() {
	s.groups = append(s.groups, s.open)
	s.open = nil
}

// all are the products whose results have not arrived.
func (s *products) all() []*product { return append(slices.Concat(s.groups...), s.open...) }

// touches notes accesses to registers of products, at instructions that a function with products has.
func watchProducts(c *lowering) {
	if c.fn.watched = len(c.products) > 0; !c.fn.watched {
		return
	}
	used := map[int]bool{}
	for _, p := range c.products {
		for _, slot := range p.registers {
			used[slot] = true
		}
	}
	if c.kernel.touches == nil {
		c.kernel.touches = make([][]int, len(c.kernel.code))
	}
	for n := range c.fn.source.Code().Instructions {
		in := &c.kernel.code[c.fn.start+n]
		var touched []int
		for _, slot := range slices.Concat(in.reads, in.writes) {
			if used[slot] {
				touched = append(touched, slot)
			}
		}
		c.kernel.touches[c.fn.start+n] = touched
		if run := in.run; len(touched) > 0 && run != nil {
			in.run = func(w *warp, f *frame, m uint32) {
				if w.products.touch(touched, f, m) {
					run(w, f, m)
				}
			}
		}
	}
}

// touch notes an access to registers of products, and reports whether none of them is in flight.
func (s *products) touch(slots []int, f *frame, m uint32) bool {
	w := s.warp
	for _, slot := range slots {
		if q := f.use.inFlight(slot); q != nil && !w.block.run.ignored[WgmmaInFlight] {
			s.inFlight(f, slot, q, next(m))
			return false
		}
		f.use.touched[slot] |= m
	}
	return true
}

// inFlight reports an access to a register of a product.
func (s *products) inFlight(f *frame, slot int, q *product, thread int) {
	w := s.warp
	other := w.block.place(q.pc, w.index*warpThreads+thread)
	w.fail(&Fault{
		Kind: WgmmaInFlight, Other: &other,
		Detail: "register " + f.fn.registerName(slot, false) + " belongs to a product that the thread has not waited for",
	}, thread)
}

// admit reports whether a product may use its registers.
func (s *products) admit(p *productForm, accumulate bool) bool {
	w := s.warp
	f, ignored := w.frame, &w.block.run.ignored
	u := f.use
	if !s.fenced && !ignored[WgmmaFence] {
		w.fail(&Fault{Kind: WgmmaFence, Detail: "no wgmma.fence is in front of the first product"}, 0)
		return false
	}
	for n, slot := range p.registers {
		isD := n < len(p.d)
		q := u.inFlight(slot)
		switch {
		case u.touched[slot] != 0 && !ignored[WgmmaFence]:
			w.fail(&Fault{
				Kind:   WgmmaFence,
				Detail: "register " + f.fn.registerName(slot, false) + " was accessed, and no wgmma.fence followed",
			}, next(u.touched[slot]))
			return false
		case q == nil:
			if missing := ^f.defined[slot]; missing != 0 && (!isD || accumulate) && !w.undefined(f, slot, next(missing), false) {
				return false
			}
		case ignored[WgmmaInFlight]:
		case isD && (u.reads[slot] > 0 || q.form.columns != p.columns || q.form.depth != p.depth || !slices.Equal(q.form.d, p.d)), !isD && u.writes[slot] > 0:
			s.inFlight(f, slot, q, 0)
			return false
		}
	}
	return true
}

// begin puts a product on its way.
func (s *products) begin(b *block, q *product) {
	f, p := q.frame, q.form
	for _, slot := range p.d {
		f.use.writes[slot]++
	}
	for _, slot := range p.a {
		f.use.reads[slot]++
	}
	for _, slot := range p.registers {
		f.use.last[slot] = q
		f.defined[slot] = full
	}
	for _, chunk := range q.chunks {
		b.reading[chunk]++
	}
	s.open = append(s.open, q)
}

// deliver ends products: all groups but the youngest.
func (s *products) deliver(keep int) {
	for len(s.groups) > keep {
		for _, q := range s.groups[0] {
			s.arrive(q)
		}
		s.groups = s.groups[1:]
	}
}

// arrive lets a result arrive. The product has read its matrices up to now.
func (s *products) arrive(q *product) {
	w := s.warp
	u := q.frame.use
	for n, slot := range q.form.registers {
		if n < len(q.form.d) {
			u.writes[slot]--
		} else {
			u.reads[slot]--
		}
		if u.reads[slot]+u.writes[slot] == 0 {
			u.last[slot] = nil
		}
	}
	b := w.block
	t := newTouch(w.order.clock, q.pc, false, w.index*warpThreads)
	each := uint64(chunkBytes) >> b.run.shift[0]
	for _, chunk := range q.chunks {
		b.reading[chunk]--
		if b.run.ignored[SharedRace] {
			continue
		}
		cells := b.cells[uint64(chunk)*each:][:each]
		for n := range cells {
			cells[n].note(t, false)
		}
	}
}

// unread reports whether no product on its way reads the memory that is stored to.
func (s *products) unread(a *access) bool {
	w := s.warp
	b := w.block
	chunk := uint16(a.address / chunkBytes) //nolint:gosec // of at most 227 KiB
	if b.reading[chunk] == 0 || b.run.ignored[SharedRace] {
		return true
	}
	for _, v := range b.warps {
		for _, q := range v.products.all() {
			if slices.Contains(q.chunks, chunk) {
				other := b.place(q.pc, v.index*warpThreads)
				w.fail(&Fault{
					Kind: SharedRace, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other,
					Detail: "the product may not have read its matrices: its warp has not waited for it",
				}, a.thread)
				return false
			}
		}
	}
	return true
}

// beside is the next conflict where the found one is a product of the warp's own that has ended: all its threads waited for it.
func (s *products) beside(c *cell, found touch, a *access, thread int, since uint32) touch {
	w := s.warp
	for found != 0 && found.thread()/warpThreads == w.index && w.block.kernel.code[found.pc()].source.Op == ptx.OpWgmmaMmaAsync {
		if c.load == found {
			c.load = 0
		} else {
			c.other = 0
		}
		found = w.conflict(c, a, thread, since)
	}
	return found
}

// fenceProxy is fence.proxy.async.
func (s *products) fenceProxy(m uint32) {
	if s != nil {
		s.proxies = append(s.proxies, proxyFence{s.warp.order.clock, m})
		s.warp.order.clock = s.warp.block.run.tick()
	}
}

// fencedAt is the time of the first proxy fence of a thread since a clock, or 0.
func (s *products) fencedAt(clock uint32, thread int) uint32 {
	from := sort.Search(len(s.proxies), func(n int) bool { return s.proxies[n].clock >= clock })
	for _, p := range s.proxies[from:] {
		if p.threads>>thread&1 != 0 {
			return p.clock
		}
	}
	return 0
}

// proxied reports whether everything that a product reads was stored before a proxy fence of the thread that stored it, which is
// ordered before the product.
func (s *products) proxied(a *access) bool {
	w := s.warp
	b := w.block
	if b.run.ignored[ProxyFence] {
		return true
	}
	since := b.began
	each := uint64(chunkBytes) >> b.run.shift[0]
	cells := b.cells[a.address/chunkBytes*each:][:each]
	var last touch
	for n := range cells {
		stored := cells[n].store
		if stored == last || stored.clock() <= since {
			continue
		}
		last = stored
		at := b.warps[stored.thread()/warpThreads].products.fencedAt(stored.clock(), stored.thread()%warpThreads)
		if at != 0 && w.sees(newTouch(at, 0, false, stored.thread()), w.index*warpThreads) {
			continue
		}
		other := b.place(stored.pc(), stored.thread())
		w.fail(&Fault{
			Kind: ProxyFence, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other,
			Detail: "the memory was stored without a fence.proxy.async of the same thread behind it, before the barrier",
		}, a.thread)
		return false
	}
	return true
}
