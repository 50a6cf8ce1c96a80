package magazine

import "math/bits"

// Leased is a slot of a leased magazine as its lane sees it, which works on the slot's words by
// loads and plain stores.
type Leased Slot

// HandOut writes down that the slot is handed out, and returns the handle.
func (s *Leased) HandOut() (handle uint64) {
	handle = s.word.Load()
	storePlain(&s.aside, handle)
	return handle
}

// Has reports whether the slot's word is that of the handle, without flags.
func (s *Leased) Has(handle uint64) bool { return s.word.Load() == handle }

// End ends a handle that the slot has.
func (s *Leased) End(handle uint64) { storePlain(&s.word, freed(handle)) }

// Forget writes down that no handle of the slot is out, whatever others have freed.
func (s *Leased) Forget() { storePlain(&s.aside, unhanded) }

// Index is the slot's bit in its magazine.
func (s *Leased) Index() uint8 { return s.index & 63 }

// isBack reports whether a slot was freed since it was handed out, and with which word.
func (s *Leased) isBack() (w uint64, ok bool) {
	w = s.word.Load()
	return w, isBack(w, s.aside.Load())
}

// OutMask is those of the slots whole that callers have. Those of a lane at work change meanwhile.
func (m *Magazine) OutMask(whole uint64) uint64 {
	var out uint64
	for f := whole; f != 0; f &= f - 1 {
		s := m.At(bits.TrailingZeros64(f))
		if isOut(s.word.Load(), s.aside.Load()) {
			out |= 1 << s.index
		}
	}
	return out
}

// Lease enters a magazine for lanes in the owner's books; m begins a larger object, which has SlotCount
// slots at SlotsOffset. Its slots have no blocks, and none is free for callers.
func (o *Owner) Lease(m *Magazine, part Part) {
	o.add(m, leasedKind, 0, part)
	m.mask.Store(leasedMask)
}

// CameHome collects the slots that others freed since the last time, of those of a leased magazine
// that are out. A bit says only that a slot is worth a look: two frees of one handle that raced set
// it once too often, and at any later time.
func (o *Owner) CameHome(m *Magazine, out uint64) uint64 {
	var back uint64
	for f := m.mask.Swap(leasedMask) & out; f != 0; f &= f - 1 {
		s := m.At(bits.TrailingZeros64(f))
		if o.isHome((*Leased)(s)) {
			back |= 1 << s.index
		}
	}
	return back
}

// isHome reports whether a slot is back and is not kept.
func (o *Owner) isHome(s *Leased) bool {
	w, ok := s.isBack()
	if !ok || o.keeps(s, w) {
		return false
	}
	if w&flagMask != 0 {
		s.word.CompareAndSwap(w, w&^flagMask)
	}
	return true
}

// Sift asks, about the announced slots of a leased magazine that others freed, whether they are kept,
// before a lane takes them home.
func (o *Owner) Sift(m *Magazine, whole uint64) {
	for f := m.mask.Load() & whole; f != 0; f &= f - 1 {
		s := (*Leased)(m.At(bits.TrailingZeros64(f)))
		if w, ok := s.isBack(); ok {
			o.keeps(s, w)
		}
	}
}

// keeps reports whether a slot, which was back with that word, is kept, or stays with its lane. The flags go from the word to the slot, where no free of a leased one writes: they
// are there as long as it is kept. A word that has changed since is of a handle that lives, or has
// lived, behind a free that raced with another: its flags are not those of that word.
func (o *Owner) keeps(s *Leased, w uint64) bool {
	switch {
	case s.flags != 0:
		return true
	case w&uint64(Announced) == 0:
		return false
	case !s.word.CompareAndSwap(w, w&^flagMask):
		return true
	}
	s.flags = uint8(w & flagMask &^ uint64(Watched))
	if !o.keepLeased((*Slot)(s)) {
		s.flags = 0
	}
	return s.flags != 0
}

// Return frees a slot of a leased magazine that a part has kept. It reports whether the magazine is
// home by that.
func (s *Leased) Return() (isHome bool) {
	s.flags = 0 // flags of the word are of a later handle
	return put(s.magazine.mask.Or(1<<s.index)) == handMagazine
}
