package interp

import "github.com/go-vram/vram/compute/ptx"

// lowerSet translates set, which writes a number where a comparison holds, else 0: all bits of an integer, or 1.0. Of a
// pair of halves each is compared, and has its half of the result.
func lowerSet(c *lowering, i *ptx.Instruction) {
	to, t := i.Type(0), i.Type(1)
	d, a, b := c.out(&i.Operands[0]), c.in(&i.Operands[1], t), c.in(&i.Operands[2], t)
	combine, other, negated := combination(c, i)
	fn := comparisonOf(i.Mod(ptx.KindCompare), t, i.Has(ptx.ModFtz))
	if fn == nil {
		return
	}
	pair := t.Lanes() == 2 //nolint:mnd // a pair
	yes := holds(to, pair)
	p, q := c.fn.predicates, c.fn.predicates+1 // two that nothing else has
	c.fn.predicates += 2
	lower := compared(p, none, a, b, comparing(fn), combine, other, negated)
	upper := compared(q, none, a, b, comparing(func(a, b uint64) bool { return fn(a>>16, b>>16) }), combine, other, negated) //nolint:mnd // the upper one
	c.to.compute = func(f *frame, m uint32) {
		lower(f, m)
		if pair {
			upper(f, m)
		}
		for rd := &f.regs[d]; m != 0; m &= m - 1 {
			n := next(m)
			rd[n] = choose(f.preds[p]>>n&1 != 0, yes, 0)
			if pair {
				rd[n] |= choose(f.preds[q]>>n&1 != 0, yes, 0) << 16 //nolint:mnd // the upper half
			}
		}
	}
}

// holds returns the value of a true comparison in the type of the result, for one half of a pair.
func holds(t ptx.Type, pair bool) uint64 {
	switch t {
	case ptx.F32:
		return bits32(1)
	case ptx.F16, ptx.F16x2:
		return toF16(1)
	case ptx.BF16, ptx.BF16x2:
		return bits32(1) >> 16 //nolint:mnd // the upper half of single precision
	}
	if pair {
		return mask(16) //nolint:mnd // a half of the result
	}
	return mask(t.Bits())
}
