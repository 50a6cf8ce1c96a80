package magazine

import "math/bits"

// Frees frees slots and returns them by one access for each magazine. Before Flush they are freed, but cannot
// be taken. The zero value is ready.
type Frees struct {
	magazines [waysOut]*Magazine
	bits      [waysOut]uint64
	used      uint32 // bits of the ways in use
	home      *Home  // of the slots in the list
	head      uint32 // names the first of the slots that go to the owner
	tail      *Slot
	err       error
}

// Free ends a handle as Slot.Free does. It immediately returns a slot with flags, after all slots before it: the owner that
// it wakes may have a turn here, and slots that are freed and not returned would count as live in it.
func (f *Frees) Free(s *Slot, handle uint64) error {
	if !s.word.CompareAndSwap(handle, freed(handle)) {
		f.putAll()
		return s.freeSlow(handle)
	}
	m := s.magazine
	if m.kind == looseKind {
		f.list(s)
		return nil
	}
	way := uint32(m.way)
	if f.magazines[way] != m {
		f.put(way)
		f.magazines[way] = m
		f.used |= 1 << way
	}
	f.bits[way] |= 1 << s.index
	return nil
}

// list adds a slot to those that Flush hands to the owner together.
func (f *Frees) list(s *Slot) {
	h := s.magazine.home
	if f.home != h {
		f.push()
		f.home = h
	}
	s.flags = 0
	if f.tail == nil {
		f.tail = s
	}
	storePlain(&s.aside, entry(s.Units, f.head))
	f.head = s.name()
}

// push hands the listed slots to their owner.
func (f *Frees) push() {
	if f.head == noSlot {
		return
	}
	h := f.home
	for {
		head := h.freed.Load()
		storePlain(&f.tail.aside, entry(f.tail.Units, uint32(head)))
		if h.freed.CompareAndSwap(head, nextPush(head, f.head)) {
			break
		}
	}
	f.head, f.tail = noSlot, nil
	f.keep(h.wake())
}

// put returns the freed slots of one magazine.
func (f *Frees) put(way uint32) {
	m, freed := f.magazines[way], f.bits[way]
	f.bits[way] = 0
	if freed == 0 {
		return
	}
	old := m.mask.Or(freed)
	if old < parkedBit {
		return
	}
	if put(old) != handSlot {
		f.keep(m.putSlow(nil, old))
		return
	}
	for ; freed != 0; freed &= freed - 1 {
		f.keep(m.putSlow(m.At(bits.TrailingZeros64(freed)), old))
	}
}

func (f *Frees) keep(err error) {
	if err != nil {
		f.err = err
	}
}

// Flush makes all freed slots available again. It returns ErrClosed if their memory is gone.
func (f *Frees) Flush() error {
	f.putAll()
	return f.err
}

// putAll returns the freed slots of all magazines, and those in the list.
func (f *Frees) putAll() {
	for used := f.used; used != 0; used &= used - 1 {
		f.put(uint32(bits.TrailingZeros32(used)))
	}
	f.push()
}
