package magazine

import "slices"

// Loose is the part of the owner with the slots for blocks of any length. They are freed one by one; their
// magazines are always closed.
type Loose struct {
	owner  *register
	unused []*Slot // with capacity for all
	count  int     // slots, in use or not
}

// Take returns a slot for a block of any length.
func (l *Loose) Take() *Slot {
	last := len(l.unused) - 1
	if last < 0 {
		l.grow()
		last = len(l.unused) - 1
	}
	s := l.unused[last]
	l.unused = l.unused[:last]
	return s
}

// grow adds a magazine, and capacity for all of its slots.
func (l *Loose) grow() {
	m := new(layout) // without books
	l.owner.add(&m.Magazine, looseKind, 0, l)
	l.count += SlotCount
	l.unused = slices.Grow(l.unused, l.count)
	for i := range m.slots {
		l.unused = append(l.unused, &m.slots[i])
	}
}

// Put is Collect for a loose slot that was freed without flags.
func (l *Loose) Put(s *Slot) { l.unused = append(l.unused, s) }

// SlotHome implements Part.
func (l *Loose) SlotHome(s *Slot) bool {
	l.unused = append(l.unused, s)
	return false
}

// MagazineHome implements Part: a closed magazine is never parked.
func (l *Loose) MagazineHome(*Magazine) {}

// LiveMask implements Part.
func (l *Loose) LiveMask(m *Magazine) (live uint64) {
	m.Each(func(s *Slot) {
		if s.Block != none {
			live |= 1 << s.index
		}
	})
	return live
}

// Refit moves a slot that the owner has to the size of a new length, which the caller sets. The frees of the
// slot so far still count for its former size. It is not inlined: it is rare on the path of a miss.
//
//go:noinline
func (l *Loose) Refit(s *Slot, units uint32) {
	n := s.Frees()
	l.owner.carried[SizeOf(s.Units)] += n
	l.owner.carried[SizeOf(units)] -= n
}
