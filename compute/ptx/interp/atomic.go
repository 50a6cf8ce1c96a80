package interp

import (
	"math"

	"github.com/go-vram/vram/compute/ptx"
)

// lowerAtomic translates atom and red.
func lowerAtomic(c *lowering, i *ptx.Instruction) {
	t := i.Type(0)
	operands := i.Operands
	d := none
	if i.Op == ptx.OpAtom {
		d = c.out(&operands[0])
		operands = operands[1:]
	}
	p := c.pointer(&operands[0], i.Space())
	b := c.in(&operands[1], t)
	third := b
	if len(operands) > 2 { //nolint:mnd // of cas
		third = c.in(&operands[2], t)
	}
	fn := atomicFunction(i)
	if fn == nil {
		return
	}
	swaps := i.Mod(ptx.KindOperation) == ptx.ModCas
	c.to.swaps, c.kernel.swaps = swaps, c.kernel.swaps || swaps
	bytes, s := t.Bytes(), strengthOf(c, i)
	c.narrow(p.space, bytes)
	c.to.strong = true
	if p.space == ptx.Global || p.space == ptx.Generic {
		c.to.result, c.kernel.alone = d, c.kernel.alone || swaps || s.acquires
	}
	c.to.run = func(w *warp, f *frame, m uint32) {
		a := access{bytes: bytes, read: true, write: true, strong: true}
		for ; m != 0; m &= m - 1 {
			n := next(m)
			a.space, a.address, a.thread = p.space, p.of(f, n), n
			a.deferred = w.block.run.worker != nil && (p.space == ptx.Global || p.space == ptx.Generic && spaceAt(a.address) == ptx.Global)
			at := w.memory.reach(&a)
			if at == nil {
				return
			}
			if a.deferred {
				w.block.run.worker.later = append(w.block.run.worker.later, later{w.block.number, a.address, bytes, fn, f.regs[b][n], f.regs[third][n]})
				continue
			}
			if swaps && len(w.block.guesses.open) > 0 {
				w.block.guesses.confirm(guessKey{w.index*warpThreads + n, keyOf(&a)}, f.regs[b][n]&mask(8*bytes)) //nolint:mnd // bits
			}
			w.order.synchronise(keyOf(&a), true, true, s.acquires, s.releases)
			old := load(at, bytes)
			store(at, bytes, fn(old, f.regs[b][n], f.regs[third][n]))
			if d != none {
				f.regs[d][n] = old
			}
		}
	}
}

// atomicFunction returns the function from the old value and the operands to the new value of memory.
func atomicFunction(i *ptx.Instruction) func3 {
	t := integerOf(i.Type(0))
	switch i.Mod(ptx.KindOperation) {
	case ptx.ModAdd:
		return atomicAdd(i.Type(0))
	case ptx.ModMin:
		return func(old, b, _ uint64) uint64 { return choose(t.less(b, old), b, old) }
	case ptx.ModMax:
		return func(old, b, _ uint64) uint64 { return choose(t.less(old, b), b, old) }
	case ptx.ModInc:
		return func(old, b, _ uint64) uint64 { return choose(old >= b&mask(t.width), 0, old+1) }
	case ptx.ModDec:
		return func(old, b, _ uint64) uint64 { return choose(old == 0 || old > b&mask(t.width), b, old-1) }
	case ptx.ModAnd:
		return func(old, b, _ uint64) uint64 { return old & b }
	case ptx.ModOr:
		return func(old, b, _ uint64) uint64 { return old | b }
	case ptx.ModXor:
		return func(old, b, _ uint64) uint64 { return old ^ b }
	case ptx.ModExch:
		return func(_, b, _ uint64) uint64 { return b }
	case ptx.ModCas:
		return func(old, b, c uint64) uint64 { return choose((old^b)&mask(t.width) == 0, c, old) }
	default:
		return nil
	}
}

// atomicAdd rounds to the nearest. PTX flushes subnormal numbers of f32 in global memory; the hardware does not, so neither
// does atomicAdd.
func atomicAdd(t ptx.Type) func3 {
	switch {
	case t == ptx.F32:
		return func(old, b, _ uint64) uint64 { return bits32(f32(old) + f32(b)) }
	case t == ptx.F64:
		return func(old, b, _ uint64) uint64 {
			return math.Float64bits(math.Float64frombits(old) + math.Float64frombits(b))
		}
	case t.Class() == ptx.Float:
		h := halfOf(t, nil)
		add := h.each2(func(a, b uint64) uint64 { return h.pack(odd(h.value(a), h.value(b))) })
		return func(old, b, _ uint64) uint64 { return add(old, b) }
	}
	return func(old, b, _ uint64) uint64 { return old + b }
}
