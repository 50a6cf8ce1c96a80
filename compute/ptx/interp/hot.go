package interp

import (
	"math"

	"github.com/go-vram/vram/compute/ptx"
)

// The loops of frequent instructions: a call of a function in each thread would cost more than
// the operation. Each computes the function of its instruction, as a test holds.

// hot2 is the loop of a binary instruction, or nil.
func hot2(i *ptx.Instruction, d, a, b int) action {
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

// f32 is the number with those bits.
func f32(v uint64) float32 { return math.Float32frombits(uint32(v)) } //nolint:gosec // the upper half is empty

// bits32 are the bits of a number; NaN has one form.
func bits32(v float32) uint64 {
	if v != v { //nolint:gocritic // NaN
		return nanF32
	}
	return uint64(math.Float32bits(v))
}

// hotLoop2 runs the loop over all threads of a warp, in a copy where some threads do not take part.
func hotLoop2(d, a, b int, loop func(rd, ra, rb *lanes)) action {
	return func(_ *warp, f *frame, m uint32) {
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

// hot3 is the loop of a ternary instruction, or nil.
func hot3(i *ptx.Instruction, d, a, b, c int) action {
	switch {
	case i.Op == ptx.OpMad && len(i.Mods) == 1 && i.Has(ptx.ModLo) && i.Type(0).Bits() == 32:
		return hotLoop3(d, a, b, c, func(rd, ra, rb, rc *lanes) {
			for i := range rd {
				rd[i] = uint64(uint32(ra[i]*rb[i] + rc[i])) //nolint:gosec // wraps
			}
		})
	case (i.Op == ptx.OpFma || i.Op == ptx.OpMad) && isPlainF32(i):
		return hotLoop3(d, a, b, c, func(rd, ra, rb, rc *lanes) {
			for i := range rd {
				rd[i] = bits32(fma32(f32(ra[i]), f32(rb[i]), f32(rc[i])))
			}
		})
	}
	return nil
}

func hotLoop3(d, a, b, c int, loop func(rd, ra, rb, rc *lanes)) action {
	return func(_ *warp, f *frame, m uint32) {
		if m == full {
			loop(&f.regs[d], &f.regs[a], &f.regs[b], &f.regs[c])
			return
		}
		var all lanes
		loop(&all, &f.regs[a], &f.regs[b], &f.regs[c])
		f.merge(d, &all, m)
	}
}
