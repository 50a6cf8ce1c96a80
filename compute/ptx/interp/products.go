package interp

import (
	"slices"
	"sort"
)

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

// watchProducts makes the instructions of a function with products note their accesses to registers of products.
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
	for n := range c.fn.source.Code().Instructions {
		in := &c.kernel.code[c.fn.start+n]
		var touched []int
		for _, slot := range slices.Concat(in.reads, in.writes) {
			if used[slot] {
				touched = append(touched, slot)
			}
		}
		if len(touched) > 0 {
			watch(in, touched)
		}
	}
}

// watch makes an instruction note its accesses to registers of products.
func watch(in *instruction, touched []int) {
	run, compute := in.run, in.compute
	in.compute = nil
	in.run = func(w *warp, f *frame, m uint32) {
		switch {
		case !w.products.touch(touched, f, m):
		case compute != nil:
			compute(f, m)
		default:
			run(w, f, m)
		}
	}
}

// touch notes an access to registers of products, and reports whether none of them is in flight.
func (s *products) touch(slots []int, f *frame, m uint32) bool {
	for _, slot := range slots {
		if q := f.use.last[slot]; q != nil && !s.ignores(WgmmaInFlight) {
			s.inFlight(f, slot, q, next(m))
			return false
		}
		f.use.touched[slot] |= m
	}
	return true
}

// inFlight reports an access to a register of a product.
func (s *products) inFlight(f *frame, slot int, q *product, thread int) {
	other := s.block.place(q.pc, s.index*warpThreads+thread)
	s.fail(&Fault{
		Kind: WgmmaInFlight, Other: &other,
		Detail: "register " + f.fn.registerName(slot, false) + " belongs to a product that the thread has not waited for",
	}, thread)
}

// admit reports whether a product may use its registers.
func (s *products) admit(p *productForm, accumulate bool) bool {
	f, ignored := s.frame, &s.block.run.ignored
	u := f.use
	if !s.fenced && !ignored[WgmmaFence] {
		s.fail(&Fault{Kind: WgmmaFence, Detail: "no wgmma.fence is in front of the first product"}, 0)
		return false
	}
	for n, slot := range p.registers {
		isD := n < len(p.d)
		q := u.last[slot]
		switch {
		case u.touched[slot] != 0 && !ignored[WgmmaFence]:
			s.fail(&Fault{
				Kind:   WgmmaFence,
				Detail: "register " + f.fn.registerName(slot, false) + " was accessed, and no wgmma.fence followed",
			}, next(u.touched[slot]))
			return false
		case q == nil:
			if missing := ^f.defined[slot]; missing != 0 && (!isD || accumulate) && !s.undefined(f, slot, next(missing), false) {
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
	b := s.block
	t := newTouch(s.order.clock, q.pc, false, s.index*warpThreads)
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

// fenceProxy is fence.proxy.async.
func (s *products) fenceProxy(m uint32) {
	if s != nil {
		s.proxies = append(s.proxies, proxyFence{s.order.clock, m})
		s.order.clock = s.block.run.tick()
	}
}

// fencedAt returns the time of the first proxy fence of a thread since a clock, or 0.
func (s *products) fencedAt(clock uint32, thread int) uint32 {
	from := sort.Search(len(s.proxies), func(n int) bool { return s.proxies[n].clock >= clock })
	for _, p := range s.proxies[from:] {
		if p.threads>>thread&1 != 0 {
			return p.clock
		}
	}
	return 0
}

// proxied reports whether everything that a product reads was stored before a proxy fence of the thread that stored it,
// which is ordered before the product.
func (s *products) proxied(a *access) bool {
	b := s.block
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
		if b.kernel.code[stored.pc()].bulk {
			continue
		}
		at := b.warps[stored.thread()/warpThreads].products.fencedAt(stored.clock(), stored.thread()%warpThreads)
		if at != 0 && s.order.sees(newTouch(at, 0, false, stored.thread()), s.index*warpThreads) {
			continue
		}
		other := b.place(stored.pc(), stored.thread())
		s.fail(&Fault{
			Kind: ProxyFence, Space: a.space, Address: a.address, Bytes: a.bytes, Other: &other,
			Detail: "the memory was stored without a fence.proxy.async of the same thread between the store and the barrier",
		}, a.thread)
		return false
	}
	return true
}
