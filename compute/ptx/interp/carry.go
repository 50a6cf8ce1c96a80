package interp

import (
	"math/bits"

	"github.com/go-vram/vram/compute/ptx"
)

// lowerCarry translates the instructions of a carry chain. Each thread has a flag: add.cc and mad.cc write the carry of
// their sum to it, sub.cc the borrow of its difference, and addc, madc and subc read it.
func lowerCarry(c *lowering, i *ptx.Instruction) {
	t := i.Type(0)
	d := c.out(&i.Operands[0])
	var s [3]int
	for n := range i.Operands[1:] {
		s[n] = c.in(&i.Operands[n+1], t)
	}
	reads := i.Op == ptx.OpAddc || i.Op == ptx.OpSubc || i.Op == ptx.OpMadc
	writes := i.Has(ptx.ModCC)
	step := carryStep(i)
	c.to.compute = func(f *frame, m uint32) {
		carry := f.carry
		for rest := m; rest != 0; rest &= rest - 1 {
			n := next(rest)
			var in uint64
			if reads {
				in = uint64(carry >> n & 1)
			}
			sum, out := step(f.regs[s[0]][n], f.regs[s[1]][n], f.regs[s[2]][n], in)
			f.regs[d][n] = sum
			if writes {
				carry = carry&^(1<<n) | uint32(out)<<n //nolint:gosec // one bit
			}
		}
		f.carry = carry
	}
}

// carryStep returns the function from the operands and the flag to the result and the new flag.
func carryStep(i *ptx.Instruction) func(a, b, c, in uint64) (result, out uint64) {
	t := integerOf(i.Type(0))
	switch i.Op {
	case ptx.OpSub, ptx.OpSubc:
		return func(a, b, _, in uint64) (uint64, uint64) { return t.subtract(a, b, in) }
	case ptx.OpMad, ptx.OpMadc:
		product := t.product(i)
		return func(a, b, c, in uint64) (uint64, uint64) { return t.add(product(a, b), c, in) }
	default:
		return func(a, b, _, in uint64) (uint64, uint64) { return t.add(a, b, in) }
	}
}

// add returns a sum with a carry, cut to the type, and its own carry.
func (t integer) add(a, b, in uint64) (sum, out uint64) {
	sum, out = bits.Add64(a&mask(t.width), b&mask(t.width), in)
	if t.width < 64 { //nolint:mnd // the sum has the carry above it
		out = sum >> t.width
	}
	return sum & mask(t.width), out
}

// subtract returns a difference with a borrow, cut to the type, and its own borrow.
func (t integer) subtract(a, b, in uint64) (difference, out uint64) {
	difference, out = bits.Sub64(a&mask(t.width), b&mask(t.width), in)
	return difference & mask(t.width), out
}
