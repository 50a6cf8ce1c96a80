package interp

import "github.com/go-vram/vram/compute/ptx"

// lowerPrefetch checks the operand of a hint, which does nothing.
func lowerPrefetch(c *lowering, i *ptx.Instruction) {
	c.pointer(&i.Operands[0], i.Space())
	c.to.compute = func(*frame, uint32) {}
}

// lowerPolicy gives a cache policy the value 0.
func lowerPolicy(c *lowering, i *ptx.Instruction) {
	d := c.out(&i.Operands[0])
	c.to.compute = func(f *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			f.regs[d][next(m)] = 0
		}
	}
}

// strength is how an access orders memory.
type strength struct{ strong, acquires, releases, volatile bool }

// in is whether an access counts as strong in a run.
func (s strength) in(r *run) bool { return s.strong && (!s.volatile || !r.launch.Strict) }

// strengthOf returns the order of an access, and notes in the kernel that it has one.
func strengthOf(c *lowering, i *ptx.Instruction) strength {
	s := strength{}
	switch i.Mod(ptx.KindOrder) {
	case ptx.ModVolatile:
		s.strong, s.volatile = true, true
	case ptx.ModRelaxed:
		s.strong = true
	case ptx.ModAcquire:
		s.strong, s.acquires = true, true
	case ptx.ModRelease:
		s.strong, s.releases = true, true
	case ptx.ModAcqRel:
		s.strong, s.acquires, s.releases = true, true, true
	default:
	}
	if i.Op == ptx.OpAtom || i.Op == ptx.OpRed {
		s.strong = true
	}
	c.kernel.fences = c.kernel.fences || s.acquires || s.releases
	if space := i.Space(); s.strong && i.Op != ptx.OpAtom && i.Op != ptx.OpRed && (space == ptx.Global || space == ptx.Generic) {
		c.kernel.alone = true
	}
	return s
}

// registerWidth returns the width of a result's register, to which a load extends.
func registerWidth(o *ptx.Operand, least int) int {
	if o.Kind == ptx.OperandVector && len(o.Elements) > 0 {
		o = &o.Elements[0]
	}
	if o.Kind == ptx.OperandRegister {
		return max(o.Register.Type.Bits(), least)
	}
	return least
}

// lowerLoad translates ld and ldu.
func lowerLoad(c *lowering, i *ptx.Instruction) {
	typ := i.Type(0)
	slots := c.vector(&i.Operands[0], c.out)
	t := &transfer{
		p: c.pointer(&i.Operands[1], i.Space()), slots: slots, each: typ.Bytes(), bytes: typ.Bytes() * len(slots),
		extend: typ.Class() == ptx.Signed, wide: integer{width: registerWidth(&i.Operands[0], typ.Bits())}, constant: i.Has(ptx.ModNc),
	}
	s := strengthOf(c, i)
	c.narrow(t.p.space, t.each)
	c.to.strong, c.to.shaky, c.kernel.constants = s.strong, s.volatile, c.kernel.constants || t.constant
	if t.p.space == ptx.Param && i.Operands[1].Variable != nil && len(slots) == 1 && !t.extend {
		c.to.run = loadParam(t.p, slots[0], t.each)
		return
	}
	own := t.p.space == ptx.Local || t.p.space == ptx.Generic // the memory may be the thread's own
	quick := !s.strong && t.p.space != ptx.Local && t.p.space != ptx.Param
	c.to.run = func(w *warp, f *frame, m uint32) {
		a := access{bytes: t.bytes, read: true, strong: s.in(w.block.run), constant: t.constant}
		for ; m != 0; m &= m - 1 {
			if quick {
				if m = t.quick(&w.memory, f, m); m == 0 {
					return
				}
			}
			n := next(m)
			a.space, a.address, a.thread = t.p.space, t.p.of(f, n), n
			from := w.memory.reach(&a)
			if from == nil {
				return
			}
			if own && a.space == ptx.Local && w.memory.local[n].holes(int(a.address), a.bytes) { //nolint:gosec // below the end
				w.memory.loadHoles(f, &a, slots, t.extend, t.wide)
			}
			t.load(from, f, n)
			if a.strong {
				w.order.synchronise(keyOf(&a), true, false, s.acquires, false)
			}
		}
	}
}

// loadParam loads a parameter of the kernel, which is the same in all threads.
func loadParam(p pointer, d, bytes int) action {
	return func(w *warp, f *frame, m uint32) {
		a := access{space: ptx.Param, address: p.of(f, 0), bytes: bytes, thread: next(m), read: true}
		from := w.memory.reach(&a)
		if from == nil {
			return
		}
		v, rd := load(from, bytes), &f.regs[d]
		if m == full {
			for n := range rd {
				rd[n] = v
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			rd[next(m)] = v
		}
	}
}

// lowerStore translates st.
func lowerStore(c *lowering, i *ptx.Instruction) {
	typ := i.Type(0)
	t := &transfer{p: c.pointer(&i.Operands[0], i.Space()), each: typ.Bytes(), write: true}
	t.slots = c.vectorIn(&i.Operands[1], typ)
	t.bytes = t.each * len(t.slots)
	s := strengthOf(c, i)
	c.narrow(t.p.space, t.each)
	c.to.strong, c.to.shaky = s.strong, s.volatile
	own := t.p.space == ptx.Local || t.p.space == ptx.Generic // the memory may be the thread's own
	quick := !s.strong && (t.p.space == ptx.Global || t.p.space == ptx.Generic || t.p.space == ptx.Shared)
	c.to.carries = carriesStore(t.p, t.slots, t.each)
	c.to.run = func(w *warp, f *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			if quick {
				if m = t.quick(&w.memory, f, m); m == 0 {
					return
				}
			}
			n := next(m)
			a := access{space: t.p.space, address: t.p.of(f, n), thread: n, bytes: t.bytes, write: true, strong: s.in(w.block.run)}
			a.value = w.memory.value[:t.bytes]
			t.store(a.value, f, n)
			to := w.memory.reach(&a)
			if to == nil {
				return
			}
			if a.strong {
				w.order.synchronise(keyOf(&a), false, true, false, s.releases)
			}
			copy(to, a.value)
			if own && a.space == ptx.Local {
				w.memory.storeHoles(f, &a, t.slots)
			}
		}
	}
}

// lowerFence translates fences.
func lowerFence(c *lowering, i *ptx.Instruction) {
	if i.Op == ptx.OpFenceProxy {
		c.to.run = func(w *warp, _ *frame, m uint32) { w.products.fenceProxy(m) }
		return
	}
	c.kernel.fences = true
	c.to.run = func(w *warp, _ *frame, m uint32) { w.order.fence(m) }
}

// loadHoles makes registers undefined that a load takes from memory of the thread that was not written.
func (mem *memory) loadHoles(f *frame, a *access, slots []int, extend bool, wide integer) {
	if mem.ignores(Uninitialised) {
		return
	}
	each := a.bytes / len(slots)
	for n, d := range slots {
		missing := mem.local[a.thread].undefinedBits(int(a.address)+n*each, each) //nolint:gosec // below the end
		if extend {
			missing = wide.pack(signExtend(missing, 8*each, true)) //nolint:mnd // bits
		}
		f.lose(d, a.thread, missing, causeInstruction|cause(mem.at)) //nolint:gosec // not negative
	}
}

// storeHoles makes memory of the thread uninitialised where a store puts undefined bits.
func (mem *memory) storeHoles(f *frame, a *access, slots []int) {
	each := a.bytes / len(slots)
	for n, s := range slots {
		if f.defined[s]>>a.thread&1 == 0 && !mem.ignores(Uninitialised) {
			mem.local[a.thread].lose(int(a.address)+n*each, each, f.undefinedBits(s, a.thread)) //nolint:gosec // below the end
		}
	}
}
