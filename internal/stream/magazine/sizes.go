package magazine

import "math/bits"

// SizeCount is the number of sizes by which frees are counted: a unit, and each power of two of it up to the
// longest block that an uint32 counts.
const SizeCount = 33

// SizeOf returns the size of a block of that many units: the binary logarithm of the smallest power of two that
// is as long.
func SizeOf(units uint32) int { return bits.Len32(units - 1) }

// SameSize reports whether two lengths have one size: their highest bits are the same.
func SameSize(a, b uint32) bool { return (a-1)^(b-1) <= (a-1)&(b-1) }

// Refit moves a slot that the owner has to the size of a new length, which the caller sets. The frees of the
// slot so far still count for its former size. It is not inlined: it is rare on the path of a miss.
//
//go:noinline
func (l *Loose) Refit(s *Slot, units uint32) {
	n := s.Frees()
	l.owner.carried[SizeOf(s.Units)] += n
	l.owner.carried[SizeOf(units)] -= n
}

// Uncount reverts one free of a block of that many units that no caller made.
func (r *register) Uncount(units uint32) { r.carried[SizeOf(units)]-- }

// AddFrees passes how often blocks of each size were freed, also in dropped magazines, in parts. Parts may be
// negative, modulo 2^64; the sums are not.
func (o *Owner) AddFrees(add func(size int, frees uint64)) {
	for i := range o.carried {
		add(i, o.carried[i])
	}
	o.All(func(m *Magazine) {
		if m.units != 0 {
			add(SizeOf(m.units), m.Frees())
			return
		}
		m.Each(func(s *Slot) { add(SizeOf(s.Units), s.Frees()) })
	})
}
