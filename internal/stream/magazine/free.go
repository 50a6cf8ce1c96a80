package magazine

// Free ends a handle and returns its block. Of several frees of one handle one succeeds. It may be called
// from any goroutine, does not block and allocates nothing.
func (s *Slot) Free(handle uint64) error {
	if !s.word.CompareAndSwap(handle, freed(handle)) {
		return s.freeSlow(handle)
	}
	m := s.magazine
	if m.kind == looseKind {
		s.flags = 0
		for h := m.home; ; { // handSlot, inlined
			head := h.freed.Load()
			storePlain(&s.aside, entry(s.Units, uint32(head)))
			if h.freed.CompareAndSwap(head, nextPush(head, s.name())) {
				if life(h.life.Load()) == serving {
					return nil
				}
				return h.wake()
			}
		}
	}
	if old := m.mask.Or(1 << s.index); old >= parkedBit {
		return m.putSlow(s, old)
	}
	return nil
}

// freeSlow frees a handle whose slot carries flags, or returns why it is not live.
func (s *Slot) freeSlow(handle uint64) error {
	for {
		w := s.word.Load()
		next, ok := nextFree(w, handle)
		if !ok {
			return s.refused(w, handle)
		}
		if !s.word.CompareAndSwap(w, next) {
			continue
		}
		if w&uint64(Watched) != 0 {
			s.tell(handle)
		}
		if w&uint64(Announced) != 0 {
			return s.returnAnnounced(w)
		}
		return s.returnFlagged(w)
	}
}

// returnFlagged returns a slot that was freed with that word. A slot that was only watched returns as if it
// had no flag.
func (s *Slot) returnFlagged(word uint64) error {
	m := s.magazine
	flags := uint8(word & flagMask &^ uint64(Watched))
	if flags != 0 || m.kind == looseKind {
		return m.home.handSlot(s, flags)
	}
	if old := m.mask.Or(1 << s.index); old >= parkedBit {
		return m.putSlow(s, old)
	}
	return nil
}

// returnAnnounced returns a slot that other streams use and that was freed with that word.
func (s *Slot) returnAnnounced(word uint64) error {
	h := s.magazine.home
	units := s.magazine.UnitsOf(s) // read before the owner has it
	s.leaveHand(word, units)
	isPile := h.handUsed(s, units, uint8(word&flagMask&^uint64(Watched)))
	err := h.wake()
	if isPile {
		h.waker.Piled()
	}
	return err
}

// leaveHand subtracts the block of a handle that the caller has freed from its hand.
func (s *Slot) leaveHand(word uint64, units uint32) {
	if word&moveMask == 0 {
		return
	}
	if held := s.note.Load().holder.Load(); held != nil {
		held.hand.Load().add(-int64(units))
	}
}
