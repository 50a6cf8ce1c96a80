package magazine

import "github.com/go-vram/vram/cudadrv/site"

// Watch remembers a live handle's size, tag and place, and has its free told. The caller has the
// handle and no other goroutine knows it yet.
func (s *Slot) Watch(handle uint64, bytes int64, tag string, allocated site.Stack) *History {
	h := &History{Address: s.address, Bytes: bytes, Tag: tag, Allocated: allocated, word: handle}
	n := s.noted()
	if r := n.record.Load(); r != nil {
		h.former = r.history.cut(formerLimit)
	}
	n.record.Store(&record{word: handle, tag: tag, history: h})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
	return h
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
	if r := s.recorded(); r != nil && r.history != nil && r.isOf(s.word.Load()) {
		return r.history.Allocated
	}
	return nil
}

// tellWatcher notes the place of a free, which the caller has won, and tells the watcher.
func (s *Slot) tellWatcher(handle uint64) {
	r := s.recorded()
	if r == nil || !r.isOf(handle) || r.history == nil {
		return
	}
	ended := *r.history
	ended.Freed = site.Here(2)
	s.noted().record.Store(&record{word: r.word, tag: r.tag, history: &ended})
	if w := s.magazine.home.watcher; w != nil {
		w.Freed(&ended)
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
