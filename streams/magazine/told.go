package magazine

import "github.com/go-vram/vram/cudadrv/site"

// Watch remembers a live handle's history, to which it adds the address and the handle, and has its
// free told. The caller has the handle and no other goroutine knows it yet.
func (s *Slot) Watch(handle uint64, h *History) {
	h.Address, h.word = s.address, handle
	n := s.noted()
	if r := n.record.Load(); r != nil && s.magazine.home.places.Load() { // without places they are of little use
		h.former = r.history.cut(formerLimit)
	}
	n.record.Store(&record{word: handle, tag: h.Tag, history: h})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
}

// SetTag names the block of a live handle. A watched one has the name that it was watched with.
func (s *Slot) SetTag(handle uint64, name string) {
	n := s.noted()
	if r := n.record.Load(); r == nil || !r.isOf(handle) || r.history == nil {
		n.record.Store(&record{word: handle, tag: name})
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

// tellWatcher notes the place of a free, which the caller has won, if places are kept, and tells the
// watcher.
func (s *Slot) tellWatcher(handle uint64) {
	r := s.recorded()
	if r == nil || !r.isOf(handle) || r.history == nil {
		return
	}
	h := r.history
	if home := s.magazine.home; home.places.Load() {
		ended := *h
		ended.Freed = site.Here(2)
		h = &ended
		s.noted().record.Store(&record{word: r.word, tag: r.tag, history: h})
	}
	if w := s.magazine.home.watcher; w != nil {
		w.Freed(h)
	}
}

// refused is the error of a free of a handle that is not live, with its places if they are known.
func (s *Slot) refused(word, handle uint64) error {
	if k := s.Waker(); k != nil {
		k.Refused()
	}
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
	s.noted().charge.Store(&charge{payer: of, bytes: bytes})
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
