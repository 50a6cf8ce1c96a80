package magazine

import (
	"time"

	"github.com/go-vram/vram/cudadrv/site"
)

// Watch records a live handle's history, completes it with the address and the handle, and reports its free.
// Only the caller knows the handle yet.
func (s *Slot) Watch(handle uint64, h *History) {
	h.Address, h.word = s.address, handle
	n := s.noted()
	if r := n.record.Load(); r != nil && s.keepsPlaces() {
		h.former = r.history.cut(formerLimit)
	}
	n.record.Store(&record{word: handle, bytes: h.Bytes, tag: h.Tag, at: h.At, history: h})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
}

// keepsPlaces reports whether places of frees and previous histories are kept: if everything is sampled. With
// few samples they are of little use.
func (s *Slot) keepsPlaces() bool { return s.magazine.home.Share() == Everything }

// Adopt is Watch for a handle that the owner handed out before. It returns the existing history of a watched
// handle; a new one has the bytes of the block. It returns nil if the handle was freed.
func (s *Slot) Adopt(handle uint64, bytes int64) *History {
	n := s.noted()
	for {
		r := n.record.Load()
		if s.FreedSince(handle) { // after the load: a record of a later handle stays
			return nil
		}
		h := &History{Address: s.address, Bytes: bytes, word: handle}
		if r != nil && r.isOf(handle) {
			if r.history != nil {
				return r.history
			}
			h.Bytes, h.Tag, h.At = r.bytes, r.tag, r.at
		}
		if !n.record.CompareAndSwap(r, &record{word: handle, bytes: h.Bytes, tag: h.Tag, at: h.At, history: h}) {
			continue
		}
		for w := handle; s.Announce(w, Watched) != nil; { // freed or moved
			if w = s.Word(); w>>generationShift != handle>>generationShift {
				return nil
			}
		}
		return h
	}
}

// SetTag names the block of a live handle, and records its size and time. A watched handle keeps the name
// that it was watched with.
func (s *Slot) SetTag(handle uint64, bytes int64, name string, at time.Time) {
	n := s.noted()
	for {
		r := n.record.Load()
		if r != nil && r.isOf(handle) && r.history != nil { // possibly set concurrently: see Adopt
			return
		}
		if n.record.CompareAndSwap(r, &record{word: handle, bytes: bytes, tag: name, at: at}) {
			return
		}
	}
}

// recorded returns the record of the slot's last allocation that has one; nil if there was none.
func (s *Slot) recorded() *record {
	if n := s.note.Load(); n != nil {
		return n.record.Load()
	}
	return nil
}

// Facts describe a slot's current handle. Handles that were neither named, charged nor watched have none.
type Facts struct {
	RequestedBytes int64
	Tag            string
	Payer          string     // charged with it; empty: none
	At             time.Time  // of its allocation
	Allocated      site.Stack // unknown if it is not watched
}

// Facts returns the facts of the current handle. It is safe for concurrent use; while the handle is being
// freed or handed out, some facts may be the next handle's.
func (s *Slot) Facts() (f Facts) {
	n := s.note.Load()
	if n == nil {
		return f
	}
	if c := n.charge.Load(); c != nil {
		f = Facts{RequestedBytes: c.requestedBytes, Payer: c.payer.PayerName(), At: c.at}
	}
	if r := n.record.Load(); r != nil && r.isOf(s.word.Load()) {
		f.RequestedBytes, f.Tag, f.At = r.bytes, r.tag, r.at
		if r.history != nil {
			f.Allocated = r.history.Allocated
		}
	}
	return f
}

// History returns the history of the current handle; nil if it is not watched.
func (s *Slot) History() *History {
	if r := s.recorded(); r != nil && r.isOf(s.word.Load()) {
		return r.history
	}
	return nil
}

// tellWatcher records the place of a free that the caller has won, if places are kept, and notifies the
// watcher.
func (s *Slot) tellWatcher(handle uint64) {
	r := s.recorded()
	if r == nil || !r.isOf(handle) || r.history == nil {
		return
	}
	h := r.history
	if s.keepsPlaces() {
		ended := *h
		var helpers *site.Helpers
		if w := s.magazine.home.watcher; w != nil {
			helpers = w.Helpers()
		}
		ended.Freed = helpers.Here(2)
		h = &ended
		s.noted().record.Store(&record{word: r.word, bytes: r.bytes, tag: r.tag, at: r.at, history: h})
	}
	if w := s.magazine.home.watcher; w != nil {
		w.Freed(h)
	}
}

// refused returns the error of a free of a handle that is not live, with its places if they are known.
func (s *Slot) refused(word, handle uint64) error {
	if k := s.Waker(); k != nil {
		k.Refused()
	}
	err := refusal(word, handle)
	if h := s.former(handle); h != nil {
		return &FreeError{Err: err, Allocated: h.Allocated, Freed: h.Freed}
	}
	return err
}

// former returns the history of a handle that is not live; nil if it is not kept.
func (s *Slot) former(handle uint64) *History {
	r := s.recorded()
	if r == nil {
		return nil
	}
	for h := r.history; h != nil; h = h.former {
		if h.word>>generationShift == handle>>generationShift {
			return h
		}
	}
	return nil
}

// Places returns where a handle that is not live was allocated and freed, as far as that is known.
func (s *Slot) Places(handle uint64) (allocated, freed site.Stack) {
	if h := s.former(handle); h != nil {
		return h.Allocated, h.Freed
	}
	return nil, nil
}

// SetCharge sets the payer of a live handle until it is freed, for a block of that many bytes. Only the
// caller knows the handle yet.
func (s *Slot) SetCharge(handle uint64, of payer, bytes, requestedBytes int64, at time.Time) {
	s.noted().charge.Store(&charge{payer: of, bytes: bytes, requestedBytes: requestedBytes, at: at})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
}

// IsCharged reports whether the live handle has a payer.
func (s *Slot) IsCharged() bool {
	n := s.note.Load()
	return n != nil && n.charge.Load() != nil
}

// tell notifies the watcher and the payer of a handle of its free, which the caller has won.
func (s *Slot) tell(handle uint64) {
	s.tellWatcher(handle)
	if n := s.note.Load(); n != nil {
		if c := n.charge.Swap(nil); c != nil {
			c.payer.Paid(c.bytes)
		}
	}
}
