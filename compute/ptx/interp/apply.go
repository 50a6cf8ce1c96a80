package interp

import "github.com/go-vram/vram/compute/ptx"

// Functions of one thread.
type (
	func1 func(a uint64) uint64
	func2 func(a, b uint64) uint64
	func3 func(a, b, c uint64) uint64
)

// apply1 applies a function in each thread.
func apply1(d, a int, fn func1) computation {
	return func(f *frame, m uint32) {
		rd, ra := &f.regs[d], &f.regs[a]
		if m == full {
			for i := range rd {
				rd[i] = fn(ra[i])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			i := next(m)
			rd[i] = fn(ra[i])
		}
	}
}

// apply2 applies a function in each thread.
func apply2(d, a, b int, fn func2) computation {
	return func(f *frame, m uint32) {
		rd, ra, rb := &f.regs[d], &f.regs[a], &f.regs[b]
		if m == full {
			for i := range rd {
				rd[i] = fn(ra[i], rb[i])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			i := next(m)
			rd[i] = fn(ra[i], rb[i])
		}
	}
}

// apply3 applies a function in each thread.
func apply3(d, a, b, c int, fn func3) computation {
	return func(f *frame, m uint32) {
		rd, ra, rb, rc := &f.regs[d], &f.regs[a], &f.regs[b], &f.regs[c]
		if m == full {
			for i := range rd {
				rd[i] = fn(ra[i], rb[i], rc[i])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			i := next(m)
			rd[i] = fn(ra[i], rb[i], rc[i])
		}
	}
}

// comparing returns the loop of a comparison, or of any function of two values.
func comparing(fn func(a, b uint64) bool) func(ra, rb *lanes, m uint32) uint32 {
	return func(ra, rb *lanes, m uint32) (result uint32) {
		for ; m != 0; m &= m - 1 {
			i := next(m)
			result |= bit(fn(ra[i], rb[i])) << i
		}
		return result
	}
}

// compared sets two predicates, the second to the opposite of the first, each combined with a third.
func compared(p, q, a, b int, fn func(ra, rb *lanes, m uint32) uint32, combine func(result, other uint32) uint32, other int, negated bool) computation {
	return func(f *frame, m uint32) {
		result := fn(&f.regs[a], &f.regs[b], m)
		opposite := ^result
		if combine != nil {
			third := f.predMask(other, negated)
			result, opposite = combine(result, third), combine(opposite, third)
		}
		f.setPred(p, result, m)
		if q != none {
			f.setPred(q, opposite, m)
		}
	}
}

// hotCompare returns the loop of a comparison of integers of 32 or 64 bits, which gives a predicate for all threads, or
// nil.
func hotCompare(op ptx.Modifier, t integer) func(ra, rb *lanes, _ uint32) uint32 {
	if t.width < 32 { //nolint:mnd // a width
		return nil
	}
	less := lessUnsigned
	switch {
	case t.signed && t.width == 32: //nolint:mnd // a width
		less = lessSigned32
	case t.signed:
		less = lessSigned64
	}
	switch op {
	case ptx.ModEq:
		return equal
	case ptx.ModNe:
		return func(ra, rb *lanes, m uint32) uint32 { return ^equal(ra, rb, m) }
	case ptx.ModLt, ptx.ModLo:
		return less
	case ptx.ModGe, ptx.ModHs:
		return func(ra, rb *lanes, m uint32) uint32 { return ^less(ra, rb, m) }
	case ptx.ModGt, ptx.ModHi:
		return func(ra, rb *lanes, m uint32) uint32 { return less(rb, ra, m) }
	case ptx.ModLe, ptx.ModLs:
		return func(ra, rb *lanes, m uint32) uint32 { return ^less(rb, ra, m) }
	default:
		return nil
	}
}

func equal(ra, rb *lanes, _ uint32) (result uint32) {
	for n := range ra {
		result |= bit(ra[n] == rb[n]) << n
	}
	return result
}

func lessUnsigned(ra, rb *lanes, _ uint32) (result uint32) {
	for n := range ra {
		result |= bit(ra[n] < rb[n]) << n
	}
	return result
}

func lessSigned32(ra, rb *lanes, _ uint32) (result uint32) {
	for n := range ra {
		result |= bit(int32(ra[n]) < int32(rb[n])) << n //nolint:gosec // in two's complement
	}
	return result
}

func lessSigned64(ra, rb *lanes, _ uint32) (result uint32) {
	for n := range ra {
		result |= bit(int64(ra[n]) < int64(rb[n])) << n //nolint:gosec // in two's complement
	}
	return result
}

func bit(yes bool) uint32 {
	if yes {
		return 1
	}
	return 0
}

// The loops of frequent instructions: a call of a function in each thread would cost more than
// the operation. Each computes the function of its instruction, as a test holds.

// hot2 returns the loop of a binary instruction, or nil.
func hot2(i *ptx.Instruction, d, a, b int) computation { //nolint:gocognit // a table of loops
	switch {
	case i.Op == ptx.OpAdd && len(i.Mods) == 0 && i.Type(0).IsInteger() && i.Type(0).Bits() == 32:
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = uint64(uint32(ra[i] + rb[i])) //nolint:gosec // wraps
			}
		})
	case i.Op == ptx.OpAdd && len(i.Mods) == 0 && i.Type(0).IsInteger() && i.Type(0).Bits() == 64:
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = ra[i] + rb[i]
			}
		})
	case i.Op == ptx.OpSub && len(i.Mods) == 0 && i.Type(0).IsInteger() && i.Type(0).Bits() == 32:
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = uint64(uint32(ra[i] - rb[i])) //nolint:gosec // wraps
			}
		})
	case i.Op == ptx.OpMul && len(i.Mods) == 1 && i.Has(ptx.ModLo) && i.Type(0).Bits() == 32:
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = uint64(uint32(ra[i] * rb[i])) //nolint:gosec // wraps
			}
		})
	case i.Op == ptx.OpSub && isPlainF32(i):
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = bits32(f32(ra[i]) - f32(rb[i]))
			}
		})
	case i.Op == ptx.OpMul && len(i.Mods) == 1 && i.Has(ptx.ModWide) && i.Type(0) == ptx.U32:
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = ra[i] * rb[i]
			}
		})
	case i.Op == ptx.OpMul && len(i.Mods) == 1 && i.Has(ptx.ModWide) && i.Type(0) == ptx.S32:
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = uint64(int64(int32(ra[i])) * int64(int32(rb[i]))) //nolint:gosec // of two's complement
			}
		})
	case i.Op == ptx.OpAdd && isPlainF32(i):
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = bits32(f32(ra[i]) + f32(rb[i]))
			}
		})
	case i.Op == ptx.OpMul && isPlainF32(i):
		return hotLoop2(d, a, b, func(rd, ra, rb *lanes) {
			for i := range rd {
				rd[i] = bits32(f32(ra[i]) * f32(rb[i]))
			}
		})
	}
	return nil
}

// isPlainF32 reports whether the instruction is one of f32 that only rounds to the nearest.
func isPlainF32(i *ptx.Instruction) bool {
	return i.Type(0) == ptx.F32 && (len(i.Mods) == 0 || len(i.Mods) == 1 && i.Mods[0] == ptx.ModRn)
}

// hotLoop2 runs the loop over all threads of a warp, in a copy where some threads do not take part.
func hotLoop2(d, a, b int, loop func(rd, ra, rb *lanes)) computation {
	return func(f *frame, m uint32) {
		if m == full {
			loop(&f.regs[d], &f.regs[a], &f.regs[b])
			return
		}
		var all lanes
		loop(&all, &f.regs[a], &f.regs[b])
		f.merge(d, &all, m)
	}
}

// merge writes values in the threads of m.
func (f *frame) merge(d int, all *lanes, m uint32) {
	rd := &f.regs[d]
	for ; m != 0; m &= m - 1 {
		i := next(m)
		rd[i] = all[i]
	}
}

// hot3 returns the loop of a ternary instruction, or nil.
func hot3(i *ptx.Instruction, d, a, b, c int) computation {
	switch {
	case i.Op == ptx.OpMad && len(i.Mods) == 1 && i.Has(ptx.ModLo) && i.Type(0).Bits() == 32:
		return hotLoop3(d, a, b, c, func(rd, ra, rb, rc *lanes) {
			for i := range rd {
				rd[i] = uint64(uint32(ra[i]*rb[i] + rc[i])) //nolint:gosec // wraps
			}
		})
	case (i.Op == ptx.OpFma || i.Op == ptx.OpMad) && isPlainF32(i):
		return hotLoop3(d, a, b, c, func(rd, ra, rb, rc *lanes) {
			for i := range rd { // fma32, which is too long for the compiler to have it here
				product, addend := float64(f32(ra[i]))*float64(f32(rb[i])), float64(f32(rc[i]))
				s := product + addend
				if roundsTwice(s) {
					s = odd(product, addend)
				}
				rd[i] = bits32(float32(s))
			}
		})
	}
	return nil
}

func hotLoop3(d, a, b, c int, loop func(rd, ra, rb, rc *lanes)) computation {
	return func(f *frame, m uint32) {
		if m == full {
			loop(&f.regs[d], &f.regs[a], &f.regs[b], &f.regs[c])
			return
		}
		var all lanes
		loop(&all, &f.regs[a], &f.regs[b], &f.regs[c])
		f.merge(d, &all, m)
	}
}
