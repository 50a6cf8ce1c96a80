package interp

import "github.com/go-vram/vram/compute/ptx"

// lowerMov translates mov, also of predicates, of vectors and of clocks.
func lowerMov(c *lowering, i *ptx.Instruction) {
	t := i.Type(0)
	to, from := &i.Operands[0], &i.Operands[1]
	switch {
	case t == ptx.Pred:
		d := c.predOut(to)
		a, negated := c.predIn(from)
		c.to.compute = func(f *frame, m uint32) { f.setPred(d, f.predMask(a, negated), m) }
	case to.Kind == ptx.OperandVector:
		lowerUnpack(c, to, c.in(from, t), t.Bits()/len(to.Elements))
	case from.Kind == ptx.OperandVector:
		lowerPack(c, c.out(to), from, t.Bits()/len(from.Elements))
	case from.Kind == ptx.OperandSpecial && isClock(from.Special):
		d, special := c.out(to), from.Special
		c.kernel.alone = true
		c.to.run = func(w *warp, f *frame, m uint32) { readClock(w, &f.regs[d], special, m) }
	default:
		d, a := c.out(to), c.in(from, t)
		ones := mask(t.Bits())
		c.to.compute = func(f *frame, m uint32) {
			if m == full && ones == mask(64) { //nolint:mnd // the whole register
				f.regs[d] = f.regs[a]
				return
			}
			rd, ra := &f.regs[d], &f.regs[a]
			if m == full {
				for n := range rd {
					rd[n] = ra[n] & ones
				}
				return
			}
			for ; m != 0; m &= m - 1 {
				n := next(m)
				rd[n] = ra[n] & ones
			}
		}
	}
}

// lowerUnpack splits a value into the elements of a vector, the lowest bits first.
func lowerUnpack(c *lowering, to *ptx.Operand, a, bits int) {
	var slots []int
	for n := range to.Elements {
		slots = append(slots, c.out(&to.Elements[n]))
	}
	c.to.compute = func(f *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			v := f.regs[a][n]
			for part, d := range slots {
				f.regs[d][n] = v >> (part * bits) & mask(bits)
			}
		}
	}
}

func lowerPack(c *lowering, d int, from *ptx.Operand, bits int) {
	var slots []int
	for n := range from.Elements {
		slots = append(slots, c.in(&from.Elements[n], unsignedOf(bits)))
	}
	c.to.compute = func(f *frame, m uint32) {
		for ; m != 0; m &= m - 1 {
			n := next(m)
			var v uint64
			for part, a := range slots {
				v |= f.regs[a][n] & mask(bits) << (part * bits)
			}
			f.regs[d][n] = v
		}
	}
}

// unsignedOf returns the untyped type of a width.
func unsignedOf(bits int) ptx.Type {
	switch bits {
	case 8: //nolint:mnd // a width
		return ptx.B8
	case 16: //nolint:mnd // a width
		return ptx.B16
	case 32: //nolint:mnd // a width
		return ptx.B32
	default:
		return ptx.B64
	}
}

// lowerCvta adds or subtracts the window of a space.
func lowerCvta(c *lowering, i *ptx.Instruction) {
	t := i.Type(0)
	d, a := c.out(&i.Operands[0]), c.in(&i.Operands[1], t)
	offset, ones := window(i.Space()), mask(t.Bits())
	if i.Has(ptx.ModTo) {
		offset = -offset
	}
	c.to.compute = apply1(d, a, func(a uint64) uint64 { return (a + offset) & ones })
}

func lowerIsspacep(c *lowering, i *ptx.Instruction) {
	p, a := c.predOut(&i.Operands[0]), c.in(&i.Operands[1], ptx.B64)
	space := i.Space()
	consts := space == ptx.Const
	c.to.run = func(w *warp, f *frame, m uint32) {
		var result uint32
		for rest := m; rest != 0; rest &= rest - 1 {
			n := next(rest)
			address := f.regs[a][n]
			inside := spaceAt(address) == space
			if spaceAt(address) == ptx.Global {
				inside = w.block.run.isConst(address) == consts && (consts || space == ptx.Global)
			}
			if inside {
				result |= 1 << n
			}
		}
		f.setPred(p, result, m)
	}
}

// isClock reports whether a special register changes while a kernel runs.
func isClock(s ptx.Special) bool { return s >= ptx.Clock && s <= ptx.GlobaltimerHi }

// readClock counts instructions of the block: time does not exist here.
func readClock(w *warp, rd *lanes, s ptx.Special, m uint32) {
	now := uint64(w.block.instructions) //nolint:gosec // not negative
	switch s {
	case ptx.Clock, ptx.GlobaltimerLo:
		now &= mask(32) //nolint:mnd // the lower half
	case ptx.ClockHi, ptx.GlobaltimerHi:
		now >>= 32
	default:
	}
	for ; m != 0; m &= m - 1 {
		rd[next(m)] = now
	}
}
