package interp

import (
	"math/bits"

	"github.com/go-vram/vram/compute/ptx"
)

// lowerLogic translates and, or, xor and not, of registers and of predicates.
func lowerLogic(c *lowering, i *ptx.Instruction) {
	if i.Type(0) == ptx.Pred {
		lowerPredicateLogic(c, i)
		return
	}
	t := i.Type(0)
	d, a := c.out(&i.Operands[0]), c.in(&i.Operands[1], t)
	ones := mask(t.Bits())
	if i.Op == ptx.OpNot {
		c.to.compute = apply1(d, a, func(a uint64) uint64 { return ^a & ones })
		return
	}
	b := c.in(&i.Operands[2], t)
	switch i.Op {
	case ptx.OpAnd:
		c.to.compute = apply2(d, a, b, func(a, b uint64) uint64 { return a & b & ones })
	case ptx.OpOr:
		c.to.compute = apply2(d, a, b, func(a, b uint64) uint64 { return (a | b) & ones })
	default:
		c.to.compute = apply2(d, a, b, func(a, b uint64) uint64 { return (a ^ b) & ones })
	}
}

func lowerPredicateLogic(c *lowering, i *ptx.Instruction) {
	d := c.predOut(&i.Operands[0])
	a, notA := c.predIn(&i.Operands[1])
	b, notB := none, false
	if i.Op != ptx.OpNot {
		b, notB = c.predIn(&i.Operands[2])
	}
	op := i.Op
	c.to.compute = func(f *frame, m uint32) {
		x, y := f.predMask(a, notA), f.predMask(b, notB)
		switch op {
		case ptx.OpAnd:
			x &= y
		case ptx.OpOr:
			x |= y
		case ptx.OpXor:
			x ^= y
		default:
			x = ^x
		}
		f.setPred(d, x, m)
	}
}

// lowerSelp translates a choice by a predicate.
func lowerSelp(c *lowering, i *ptx.Instruction) {
	t := i.Type(0)
	d, a, b := c.out(&i.Operands[0]), c.in(&i.Operands[1], t), c.in(&i.Operands[2], t)
	p, negated := c.predIn(&i.Operands[3])
	ones := mask(t.Bits())
	c.to.compute = func(f *frame, m uint32) {
		chosen := f.predMask(p, negated)
		rd, ra, rb := &f.regs[d], &f.regs[a], &f.regs[b]
		for ; m != 0; m &= m - 1 {
			n := next(m)
			v := rb[n]
			if chosen>>n&1 != 0 {
				v = ra[n]
			}
			rd[n] = v & ones
		}
	}
}

// lowerBitwise translates shifts and instructions on single bits.
func lowerBitwise(c *lowering, i *ptx.Instruction) {
	d := c.out(&i.Operands[0])
	types := operandTypes(i)
	s := make([]int, len(types))
	for n, t := range types {
		s[n] = c.in(&i.Operands[n+1], t)
	}
	switch fn := bitFunction(i).(type) {
	case func1:
		c.to.compute = apply1(d, s[0], fn)
	case func2:
		c.to.compute = apply2(d, s[0], s[1], fn)
	case func3:
		c.to.compute = apply3(d, s[0], s[1], s[2], fn)
	case func(a, b, c, d uint64) uint64:
		c.to.compute = func(f *frame, m uint32) {
			rd, r0, r1, r2, r3 := &f.regs[d], &f.regs[s[0]], &f.regs[s[1]], &f.regs[s[2]], &f.regs[s[3]]
			for ; m != 0; m &= m - 1 {
				n := next(m)
				rd[n] = fn(r0[n], r1[n], r2[n], r3[n])
			}
		}
	}
}

// operandTypes returns the types of the operands after the result.
func operandTypes(i *ptx.Instruction) []ptx.Type {
	t := i.Type(0)
	switch i.Op {
	case ptx.OpShl, ptx.OpShr:
		return []ptx.Type{t, ptx.B32}
	case ptx.OpShf, ptx.OpPrmt:
		return []ptx.Type{t, t, ptx.B32}
	case ptx.OpBfe:
		return []ptx.Type{t, ptx.B32, ptx.B32}
	case ptx.OpBfi:
		return []ptx.Type{t, t, ptx.B32, ptx.B32}
	case ptx.OpLop3:
		return []ptx.Type{t, t, t, ptx.B32}
	case ptx.OpSlct:
		return []ptx.Type{t, t, i.Type(1)}
	default:
		return []ptx.Type{t}
	}
}

// bitFunction returns a func1, func2, func3, or a function of four.
func bitFunction(i *ptx.Instruction) any {
	t := integerOf(i.Type(0))
	ones, width := mask(t.width), t.width
	switch i.Op {
	case ptx.OpCnot:
		return func1(func(a uint64) uint64 { return choose(a&ones == 0, 1, 0) })
	case ptx.OpShl:
		return func2(func(a, n uint64) uint64 { return a << min(n&mask(32), 64) & ones }) //nolint:mnd // the shift is a number of 32 bits
	case ptx.OpShr:
		return func2(func(a, n uint64) uint64 { return t.pack(t.shiftRight(a, n&mask(32))) }) //nolint:mnd // likewise
	case ptx.OpShf:
		return funnel(i.Has(ptx.ModL), i.Has(ptx.ModClamp))
	case ptx.OpBfe:
		return func3(t.extract)
	case ptx.OpBfi:
		return func(a, b, position, length uint64) uint64 {
			p, n := int(position&0xff), int(length&0xff) //nolint:gosec // 8 bits
			field := mask(min(n, 64)) << p & ones        //nolint:mnd // the widest
			return b&ones&^field | a<<p&field
		}
	case ptx.OpBfind:
		shiftamt := i.Has(ptx.ModShiftamt)
		return func1(func(a uint64) uint64 { return t.find(a, shiftamt) })
	case ptx.OpBrev:
		return func1(func(a uint64) uint64 { return bits.Reverse64(a) >> (64 - width) }) //nolint:mnd // the other end
	case ptx.OpClz:
		return func1(func(a uint64) uint64 { return uint64(bits.LeadingZeros64(a&ones) - (64 - width)) }) //nolint:gosec,mnd // not negative
	case ptx.OpPopc:
		return func1(func(a uint64) uint64 { return uint64(bits.OnesCount64(a & ones)) }) //nolint:gosec // not negative
	case ptx.OpPrmt:
		return permutation(i.Mod(ptx.KindPermute))
	case ptx.OpLop3:
		return lop3
	default:
		return slct(i)
	}
}

// shiftRight keeps the sign of signed numbers.
func (t integer) shiftRight(a, n uint64) int64 {
	if t.signed {
		return t.value(a) >> min(n, 63) //nolint:mnd // the sign is left
	}
	return int64(a & mask(t.width) >> min(n, 64)) //nolint:gosec,mnd // in two's complement
}

// funnel shifts the pair b:a.
func funnel(left, clamp bool) func3 {
	return func(a, b, n uint64) uint64 {
		if n &= mask(32); clamp { //nolint:mnd // the shift is a number of 32 bits
			n = min(n, 32)
		} else {
			n &= 31
		}
		pair := b<<32 | a&mask(32)
		if left {
			return pair << n >> 32
		}
		return pair >> n & mask(32)
	}
}

// extract is bfe: a field of bits, with its sign.
func (t integer) extract(a, position, length uint64) uint64 {
	p, n := int(position&0xff), int(length&0xff) //nolint:gosec // 8 bits
	top := t.width - 1
	last := min(p+n-1, top)
	var sign uint64
	if t.signed && n > 0 {
		sign = a >> last & 1
	}
	var r uint64
	for b := range t.width {
		bit := sign
		if b < n && p+b <= top {
			bit = a >> (p + b) & 1
		}
		r |= bit << b
	}
	return r
}

// find is bfind: the highest bit that differs from the sign.
func (t integer) find(a uint64, shiftamt bool) uint64 {
	v := t.value(a)
	if t.signed && v < 0 {
		v = ^v
	}
	n := bits.Len64(uint64(v)&mask(t.width)) - 1 //nolint:gosec // in two's complement
	switch {
	case n < 0:
		return mask(32) //nolint:mnd // none
	case shiftamt:
		n = t.width - 1 - n
	}
	return uint64(n) //nolint:gosec // not negative
}

// lop3 looks each bit up in a table.
func lop3(a, b, c, table uint64) uint64 {
	var r uint64
	for n := range uint64(8) {
		if table>>n&1 != 0 {
			r |= agree(a, n>>2) & agree(b, n>>1) & agree(c, n)
		}
	}
	return r & mask(32) //nolint:mnd // lop3 has no other type
}

// agree returns the bits of v that equal the lowest bit of which.
func agree(v, which uint64) uint64 {
	if which&1 != 0 {
		return v
	}
	return ^v
}

// permutation picks the four bytes of prmt.
func permutation(mode ptx.Modifier) func3 {
	return func(a, b, c uint64) uint64 {
		source := b<<32 | a&mask(32)
		var r uint64
		for n := range uint64(4) {
			selector := c >> (4 * n) & 0xf
			if mode != ptx.NoModifier {
				selector = permuted(mode, c&3, n)
			}
			v := source >> (8 * (selector & 7)) & 0xff
			if selector&8 != 0 {
				v = choose(v&0x80 != 0, 0xff, 0)
			}
			r |= v << (8 * n)
		}
		return r
	}
}

// permuted returns the byte that a mode of prmt picks for the n-th byte.
func permuted(mode ptx.Modifier, c, n uint64) uint64 {
	switch mode {
	case ptx.ModF4e:
		return c + n
	case ptx.ModB4e:
		return (c - n) & 7
	case ptx.ModRc8:
		return c
	case ptx.ModEcl:
		return max(c, n)
	case ptx.ModEcr:
		return min(c, n)
	default: // rc16
		return c&1<<1 + n&1
	}
}

// slct chooses by the sign of a number.
func slct(i *ptx.Instruction) func3 {
	ones := mask(i.Type(0).Bits())
	if i.Type(1) == ptx.S32 {
		return func(a, b, c uint64) uint64 { return choose(c>>31&1 == 0, a, b) & ones }
	}
	ftz := i.Has(ptx.ModFtz)
	return func(a, b, c uint64) uint64 {
		x := f32(c)
		if ftz {
			x = flush(x)
		}
		return choose(x >= 0, a, b) & ones // NaN chooses b
	}
}
