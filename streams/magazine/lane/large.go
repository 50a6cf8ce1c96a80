package lane

import "github.com/go-vram/vram/streams/magazine"

const (
	// laneLengths is the number of places for lengths beyond the classes; a length has two to choose from.
	// Not smaller: lengths that meet push each other out. Not larger: each lane has them.
	laneLengths = 1 << laneLengthBits
	// laneLengthBits is its binary logarithm.
	laneLengthBits = 9
)

// lengthPlace is the first of the two places for a length; the other is its neighbour.
func lengthPlace(units uint64) uint64 {
	return units * 0x9E3779B97F4A7C15 >> (64 - laneLengthBits)
}

// takeLarge takes a block of that length from wherever it may be.
func (l *Lane) takeLarge(units uint64) *magazine.Slot {
	if s := l.top; s != nil && uint64(s.Units) == units {
		l.top = nil
		return s
	}
	place := lengthPlace(units)
	for _, i := range [...]uint64{place, place ^ 1} {
		if s := l.large[i]; s != nil && uint64(s.Units) == units {
			l.large[i] = s.Next
			return s
		}
	}
	return nil
}

// keepLarge books a large block that is free.
func (l *Lane) keepLarge(s *magazine.Slot) Outcome {
	units := uint64(s.Units)
	if !l.admits(units) {
		l.shedSlot(s)
		return Surplus
	}
	l.chargeUnits += units
	return l.lay(s)
}

// lay puts a large block, which is charged, where its length is looked up: in its place, or in the neighbour if
// another length has that. A length that finds both taken has one cleared.
func (l *Lane) lay(s *magazine.Slot) Outcome {
	i, outcome := lengthPlace(uint64(s.Units)), Kept
	if !l.fits(i, s.Units) {
		if l.fits(i^1, s.Units) {
			i ^= 1
		} else {
			l.clearPlace(i)
			outcome = Surplus
		}
	}
	s.Place = uint16(i)
	s.Next = l.large[i]
	l.large[i] = s
	return outcome
}

// layTop lays the block that was freed last.
func (l *Lane) layTop() {
	if s := l.top; s != nil {
		l.top = nil
		l.lay(s)
	}
}

// fits reports whether blocks of that length may lie in a place.
func (l *Lane) fits(place uint64, units uint32) bool {
	head := l.large[place]
	return head == nil || head.Units == units
}

// clearPlace gives up the blocks of a length.
func (l *Lane) clearPlace(place uint64) {
	for s := l.large[place]; s != nil; {
		next := s.Next
		l.chargeUnits -= uint64(s.Units)
		l.shedSlot(s)
		s = next
	}
	l.large[place] = nil
}
