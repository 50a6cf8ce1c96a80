package magazine

import "github.com/go-vram/vram/cudadrv/site"

// Watch remembers a live handle's history, to which it adds the address and the handle, and has its
// free told. The caller has the handle and no other goroutine knows it yet.
func (s *Slot) Watch(handle uint64, h *History) {
	h.Address, h.word = s.address, handle
	n := s.noted()
	if r := n.record.Load(); r != nil && s.keepsPlaces() {
		h.former = r.history.cut(formerLimit)
	}
	n.record.Store(&record{handle, h.Tag, h})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
}

// keepsPlaces reports whether the places of frees, and the histories of before, are kept: where everything
// is sampled. Of few samples they are of little use.
func (s *Slot) keepsPlaces() bool { return s.magazine.home.Share() == Everything }

// Adopt is Watch of a handle that was handed out before, by the owner. The history of one that is watched
// already is that; a new one has the bytes of the block. It is nil if the slot was freed meanwhile.
func (s *Slot) Adopt(bytes int64) *History {
	n, handle := s.noted(), s.Word()
	for {
		r := n.record.Load()
		h := &History{Address: s.address, Bytes: bytes, word: handle}
		if r != nil && r.isOf(handle) {
			if r.history != nil {
				return r.history
			}
			h.Tag = r.tag
		}
		if !n.record.CompareAndSwap(r, &record{handle, h.Tag, h}) {
			continue
		}
		if s.Announce(handle, Watched) != nil {
			return nil
		}
		return h
	}
}

// SetTag names the block of a live handle. A watched one has the name that it was watched with.
func (s *Slot) SetTag(handle uint64, name string) {
	n := s.noted()
	for {
		r := n.record.Load()
		if r != nil && r.isOf(handle) && r.history != nil { // perhaps since a moment ago: see Adopt
			return
		}
		if n.record.CompareAndSwap(r, &record{word: handle, tag: name}) {
			return
		}
	}
}

// recorded is the record of the slot's last allocation that has one; nil if there was none.
func (s *Slot) recorded() *record {
	if n := s.note.Load(); n != nil {
		return n.record.Load()
	}
	return nil
}

// Tag is the name of the block of the present handle, or "".
func (s *Slot) Tag() string {
	if r := s.recorded(); r != nil && r.isOf(s.word.Load()) {
		return r.tag
	}
	return ""
}

// Allocated is the place where the present handle was handed out; unknown if it is not watched.
func (s *Slot) Allocated() site.Stack {
	if h := s.History(); h != nil {
		return h.Allocated
	}
	return nil
}

// History is that of the present handle; nil if it is not watched.
func (s *Slot) History() *History {
	if r := s.recorded(); r != nil && r.isOf(s.word.Load()) {
		return r.history
	}
	return nil
}

// tellWatcher notes the place of a free, which the caller has won, if places are kept, and tells
// the watcher.
func (s *Slot) tellWatcher(handle uint64) {
	r := s.recorded()
	if r == nil || !r.isOf(handle) || r.history == nil {
		return
	}
	h := r.history
	if s.keepsPlaces() {
		ended := *h
		ended.Freed = site.Here(2)
		h = &ended
		s.noted().record.Store(&record{r.word, r.tag, h})
	}
	if w := s.magazine.home.watcher; w != nil {
		w.Freed(h)
	}
}

// refused is the error of a free of a handle that is not live, with its places if they are known.
func (s *Slot) refused(word, handle uint64) error {
	err := refusal(word, handle)
	r := s.recorded()
	if r == nil {
		return err
	}
	for h := r.history; h != nil; h = h.former {
		if h.word>>generationShift == handle>>generationShift {
			return &FreeError{Err: err, Allocated: h.Allocated, Freed: h.Freed}
		}
	}
	return err
}

// SetCharge sets the payer of a live handle until it is freed. The caller has the handle and no
// other goroutine knows it yet.
func (s *Slot) SetCharge(handle uint64, of payer, bytes int64) {
	s.noted().charge.Store(&charge{of, bytes})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
}

// IsCharged reports whether the live handle has a payer.
func (s *Slot) IsCharged() bool {
	n := s.note.Load()
	return n != nil && n.charge.Load() != nil
}

// tell tells the watcher and the payer of a handle of its free, which the caller has won.
func (s *Slot) tell(handle uint64) {
	s.tellWatcher(handle)
	if n := s.note.Load(); n != nil {
		if c := n.charge.Swap(nil); c != nil {
			c.payer.Paid(c.bytes)
		}
	}
}

// noted is the slot's note.
func (s *Slot) noted() *note {
	if n := s.note.Load(); n != nil {
		return n
	}
	s.note.CompareAndSwap(nil, new(note))
	return s.note.Load()
}
