package interp

import (
	"github.com/go-vram/vram/compute/ptx"
)

// pointer is a compiled address.
type pointer struct {
	space  ptx.Space
	base   int // slot
	offset uint64
	ones   uint64 // of the base's width: a sum wraps there
}

// of is the address in a thread.
func (p *pointer) of(f *frame, thread int) uint64 {
	return (f.regs[p.base][thread] + p.offset) & p.ones
}

// pointer compiles an address operand.
func (c *compiler) pointer(o *ptx.Operand, space ptx.Space) pointer {
	p := pointer{space: space, offset: uint64(o.Offset), ones: mask(64)} //nolint:gosec,mnd // in two's complement; an address
	switch {
	case o.Register != nil:
		p.base = c.in(&ptx.Operand{Kind: ptx.OperandRegister, Register: o.Register}, ptx.B64)
		p.ones = mask(o.Register.Type.Bits())
	case o.Variable != nil:
		k := c.address(o.Variable, 0, false)
		if p.space == ptx.Generic {
			k.value += window(o.Variable.Space)
		}
		if _, isLocal := c.fn.locals[o.Variable]; isLocal && space == ptx.Param {
			p.space = ptx.Local // a parameter of a call is on the stack
		}
		p.base = c.constant(k)
	default:
		p.base = c.constant(constant{})
	}
	return p
}

// narrow notes the size of an access, for the cells of its memory.
func (c *compiler) narrow(space ptx.Space, bytes int) {
	if space == ptx.Shared || space == ptx.Generic {
		c.narrowest[0] = min(c.narrowest[0], bytes)
	}
	if space == ptx.Global || space == ptx.Generic || space == ptx.Const {
		c.narrowest[1] = min(c.narrowest[1], bytes)
	}
}

// access compiles loads, stores, atomic operations, and hints about memory.
func (c *compiler) access(i *ptx.Instruction) {
	switch i.Op {
	case ptx.OpLd:
		c.load(i)
	case ptx.OpSt:
		c.store(i)
	case ptx.OpAtom, ptx.OpRed:
		c.atomic(i)
	case ptx.OpLdmatrix:
		c.ldmatrix(i)
	case ptx.OpCreatepolicy:
		d := c.out(&i.Operands[0])
		c.to.run = func(_ *warp, f *frame, m uint32) {
			for ; m != 0; m &= m - 1 {
				f.regs[d][next(m)] = 0
			}
		}
	default: // a hint
		c.pointer(&i.Operands[0], i.Space())
		c.to.run = func(*warp, *frame, uint32) {}
	}
}

// strength is how an access orders memory.
type strength struct{ strong, acquires, releases, volatile bool }

// in is whether an access counts as strong in a run.
func (s strength) in(r *run) bool { return s.strong && (!s.volatile || !r.launch.Strict) }

func (c *compiler) strengthOf(i *ptx.Instruction) strength {
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
	return s
}

// vector are the slots of a value or of the elements of a vector.
func (c *compiler) vector(o *ptx.Operand, slot func(o *ptx.Operand) int) (slots []int) {
	if o.Kind != ptx.OperandVector {
		return []int{slot(o)}
	}
	for n := range o.Elements {
		slots = append(slots, slot(&o.Elements[n]))
	}
	return slots
}

// width is the width of the register of a result, which a load extends to.
func registerWidth(o *ptx.Operand, least int) int {
	if o.Kind == ptx.OperandVector && len(o.Elements) > 0 {
		o = &o.Elements[0]
	}
	if o.Kind == ptx.OperandRegister {
		return max(o.Register.Type.Bits(), least)
	}
	return least
}

func (c *compiler) load(i *ptx.Instruction) {
	t := i.Type(0)
	slots := c.vector(&i.Operands[0], c.out)
	p := c.pointer(&i.Operands[1], i.Space())
	each, s := t.Bytes(), c.strengthOf(i)
	c.narrow(p.space, each)
	bytes := each * len(slots)
	extend := t.Class() == ptx.Signed
	wide := integer{width: registerWidth(&i.Operands[0], t.Bits())}
	c.to.strong = s.strong
	own := p.space == ptx.Local || p.space == ptx.Generic // the memory may be the thread's own
	if p.space == ptx.Param && i.Operands[1].Variable != nil && len(slots) == 1 && !extend {
		c.to.run = loadParam(p, slots[0], each)
		return
	}
	c.to.run = func(w *warp, f *frame, m uint32) {
		a := access{bytes: bytes, read: true, strong: s.in(w.block.run)}
		for ; m != 0; m &= m - 1 {
			n := next(m)
			a.space, a.address, a.thread = p.space, p.of(f, n), n
			from := w.reach(&a)
			if from == nil {
				return
			}
			if own && a.space == ptx.Local && w.local[n].holes(int(a.address), bytes) { //nolint:gosec // below the end
				w.loadHoles(f, &a, slots, extend, wide)
			}
			for _, d := range slots {
				v := load(from, each)
				if extend {
					v = wide.pack(signExtend(v, 8*each, true)) //nolint:mnd // bits
				}
				f.regs[d][n] = v
				from = from[each:]
			}
			if a.strong {
				w.synchronise(keyOf(&a), true, false, s.acquires, false)
			}
		}
	}
}

// loadParam loads a parameter of the kernel, which is the same in all threads.
func loadParam(p pointer, d, bytes int) action {
	return func(w *warp, f *frame, m uint32) {
		a := access{space: ptx.Param, address: p.of(f, 0), bytes: bytes, thread: next(m), read: true}
		from := w.reach(&a)
		if from == nil {
			return
		}
		v := load(from, bytes)
		for rd := &f.regs[d]; m != 0; m &= m - 1 {
			rd[next(m)] = v
		}
	}
}

// keyOf names an atomic variable of a block or of the device.
func keyOf(a *access) uint64 { return a.address | window(a.space) }

func (c *compiler) store(i *ptx.Instruction) {
	t := i.Type(0)
	p := c.pointer(&i.Operands[0], i.Space())
	slots := c.vector(&i.Operands[1], func(o *ptx.Operand) int { return c.in(o, t) })
	each, s := t.Bytes(), c.strengthOf(i)
	c.narrow(p.space, each)
	bytes := each * len(slots)
	c.to.strong = s.strong
	own := p.space == ptx.Local || p.space == ptx.Generic // the memory may be the thread's own
	c.to.carries = carriesStore(p, slots, each)
	c.to.run = func(w *warp, f *frame, m uint32) {
		var value [32]byte
		a := access{bytes: bytes, write: true, strong: s.in(w.block.run), value: value[:bytes]}
		for ; m != 0; m &= m - 1 {
			n := next(m)
			for k, d := range slots {
				store(value[k*each:], each, f.regs[d][n])
			}
			a.space, a.address, a.thread = p.space, p.of(f, n), n
			to := w.reach(&a)
			if to == nil {
				return
			}
			if a.strong {
				w.synchronise(keyOf(&a), false, true, false, s.releases)
			}
			copy(to, a.value)
			if own && a.space == ptx.Local {
				w.storeHoles(f, &a, slots)
			}
		}
	}
}

// ordering compiles fences and asynchronous copies.
func (c *compiler) ordering(i *ptx.Instruction) {
	switch i.Op {
	case ptx.OpMembar, ptx.OpFence:
		c.kernel.fences = true
		c.to.run = func(w *warp, _ *frame, m uint32) { w.fence(m) }
	case ptx.OpFenceProxy:
		c.to.run = func(w *warp, _ *frame, m uint32) { w.products.fenceProxy(m) }
	case ptx.OpCpAsync:
		c.cpAsync(i)
	case ptx.OpCpAsyncCommitGroup:
		c.to.run = func(w *warp, _ *frame, m uint32) {
			for ; m != 0; m &= m - 1 {
				w.async[next(m)].commit()
			}
		}
	default:
		var keep int
		all := i.Op == ptx.OpCpAsyncWaitAll
		if !all {
			keep = int(min(i.Operands[0].Value, 1<<20)) //nolint:gosec,mnd // more than anybody has
		}
		c.to.run = func(w *warp, _ *frame, m uint32) {
			for ; m != 0; m &= m - 1 {
				w.deliver(next(m), keep, all)
			}
		}
	}
}
