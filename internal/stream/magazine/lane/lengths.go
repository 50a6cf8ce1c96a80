package lane

import "github.com/go-vram/vram/internal/stream/magazine"

const (
	// lengthPlaces is the number of places for lengths beyond the classes; a length has two to choose
	// from. Not smaller: lengths that meet push each other out. Not larger: each lane has them.
	lengthPlaces = 1 << lengthBits
	// lengthBits is its binary logarithm.
	lengthBits = 9
)

// lengths are the free large blocks of a lane, in lists of one length each.
type lengths struct {
	top    *magazine.Slot // the block that was freed last: a fixed place is quicker than a look-up
	places [lengthPlaces]*magazine.Slot
}

// lengthPlace is the first of the two places for a length; the other is its neighbour.
func lengthPlace(units uint64) uint64 {
	return units * 0x9E3779B97F4A7C15 >> (64 - lengthBits)
}

// take takes a block of that length, or returns nil.
func (l *lengths) take(units uint64) *magazine.Slot {
	if s := l.top; s != nil && uint64(s.Units) == units {
		l.top = nil
		return s
	}
	place := lengthPlace(units)
	for _, i := range [...]uint64{place, place ^ 1} {
		if s := l.places[i]; s != nil && uint64(s.Units) == units {
			l.places[i] = s.Next
			return s
		}
	}
	return nil
}

// lay puts a block where its length is looked up: in its place, or in the neighbour if another
// length has that. A length that finds both taken has its place cleared: evicted is the list of
// what was there.
func (l *lengths) lay(s *magazine.Slot) (evicted *magazine.Slot) {
	i := lengthPlace(uint64(s.Units))
	if !l.fits(i, s.Units) {
		if l.fits(i^1, s.Units) {
			i ^= 1
		} else {
			evicted, l.places[i] = l.places[i], nil
		}
	}
	s.Place = uint16(i)
	s.Next = l.places[i]
	l.places[i] = s
	return evicted
}

// fits reports whether blocks of that length may lie in a place.
func (l *lengths) fits(place uint64, units uint32) bool {
	head := l.places[place]
	return head == nil || head.Units == units
}

// each takes all blocks out and visits their lists.
func (l *lengths) each(visit func(list *magazine.Slot)) {
	if s := l.top; s != nil {
		s.Next, l.top = nil, nil
		visit(s)
	}
	for i, list := range l.places {
		l.places[i] = nil
		visit(list)
	}
}
