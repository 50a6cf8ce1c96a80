package magazine

import (
	"time"

	"github.com/go-vram/vram/cudadrv/site"
)

// Watch remembers a live handle's size, tag, time and place, and has its free told. The caller has
// the handle and no other goroutine knows it yet.
func (s *Slot) Watch(handle uint64, bytes int64, tag string, at time.Time, allocated site.Stack) *History {
	h := &History{Address: s.address, Bytes: bytes, Tag: tag, At: at, Allocated: allocated, word: handle}
	n := s.noted()
	if r := n.record.Load(); r != nil {
		h.former = r.history.cut(formerLimit)
	}
	n.record.Store(&record{handle, bytes, tag, at, h})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
	return h
}

// SetTag names the block of a live handle, and remembers its size and time. A watched one has the
// name that it was watched with.
func (s *Slot) SetTag(handle uint64, bytes int64, name string, at time.Time) {
	n := s.noted()
	if r := n.record.Load(); r == nil || !r.isOf(handle) || r.history == nil {
		n.record.Store(&record{word: handle, bytes: bytes, tag: name, at: at})
	}
}

// recorded is the record of the slot's last allocation that has one; nil if there was none.
func (s *Slot) recorded() *record {
	if n := s.note.Load(); n != nil {
		return n.record.Load()
	}
	return nil
}

// Facts are what a slot knows of its present handle. Handles that were neither named, charged nor
// watched have none.
type Facts struct {
	RequestedBytes int64
	Tag            string
	Payer          string     // charged with it; empty: nobody
	At             time.Time  // of its allocation
	Allocated      site.Stack // unknown if it is not watched
}

// Facts are those of the present handle. Any goroutine may ask; while the handle is being freed, or
// handed out, the facts may be in part those of its follower.
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

// tellWatcher notes the place of a free, which the caller has won, and tells the watcher.
func (s *Slot) tellWatcher(handle uint64) {
	r := s.recorded()
	if r == nil || !r.isOf(handle) || r.history == nil {
		return
	}
	ended := *r.history
	ended.Freed = site.Here(2)
	s.noted().record.Store(&record{r.word, r.bytes, r.tag, r.at, &ended})
	if w := s.magazine.home.watcher; w != nil {
		w.Freed(&ended)
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

// SetCharge sets the payer of a live handle until it is freed, for a block of that many bytes. The
// caller has the handle and no other goroutine knows it yet.
func (s *Slot) SetCharge(handle uint64, of payer, bytes, requestedBytes int64, at time.Time) {
	s.noted().charge.Store(&charge{of, bytes, requestedBytes, at})
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
