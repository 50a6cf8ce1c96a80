package magazine

import "math/bits"

// SizeCount is the number of sizes by which frees are counted: a unit, and each power of two of it
// up to the longest block that an uint32 counts.
const SizeCount = 33

// SizeOf is the size of a block of so many units: the binary logarithm of the smallest power of two
// that is as long.
func SizeOf(units uint32) int { return bits.Len32(units - 1) }

// Fit sets the length of the block that a slot which is home is to serve. What the slot was freed so
// far stays with the size that it had: one comparison where that is the same.
func (r *register) Fit(s *Slot, units uint32) {
	if SizeOf(s.Units) != SizeOf(units) {
		r.refit(s, units)
	}
	s.Units = units
}

func (r *register) refit(s *Slot, units uint32) {
	n := s.Frees()
	r.carried[SizeOf(s.Units)] += n
	r.carried[SizeOf(units)] -= n
}

// Fit is Owner.Fit.
func (l *Loose) Fit(s *Slot, units uint32) { l.owner.Fit(s, units) }

// Uncount takes back one free of a block of so many units that no caller made.
func (r *register) Uncount(units uint32) { r.carried[SizeOf(units)]-- }

// AddFrees passes, in parts, how often blocks of each size were freed, also those of magazines that
// are no more. Parts may be negative, modulo 2^64; the sums are not.
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
