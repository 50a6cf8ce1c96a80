package interp

import "math/bits"

// next is the first thread of a mask.
func next(m uint32) int { return bits.TrailingZeros32(m) & (warpThreads - 1) }

// Functions of one thread.
type (
	func1 func(a uint64) uint64
	func2 func(a, b uint64) uint64
	func3 func(a, b, c uint64) uint64
)

// apply1 applies a function in each thread.
func apply1(d, a int, fn func1) action {
	return func(_ *warp, f *frame, m uint32) {
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
func apply2(d, a, b int, fn func2) action {
	return func(_ *warp, f *frame, m uint32) {
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
func apply3(d, a, b, c int, fn func3) action {
	return func(_ *warp, f *frame, m uint32) {
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

// compared sets two predicates, the second to the opposite of the first, each combined with a third.
func compared(p, q, a, b int, fn func(a, b uint64) bool, combine func(result, other uint32) uint32, other int, negated bool) action {
	return func(_ *warp, f *frame, m uint32) {
		ra, rb := &f.regs[a], &f.regs[b]
		var result uint32
		for rest := m; rest != 0; rest &= rest - 1 {
			i := next(rest)
			if fn(ra[i], rb[i]) {
				result |= 1 << i
			}
		}
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
