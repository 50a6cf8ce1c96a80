package magazine

import "sync/atomic"

// note is what few slots have beside their words: it stays with the slot once it has one.
type note struct {
	bits   atomic.Uint64          // by the numbers of other streams, while Announced is set; see Record
	uses   atomic.Pointer[use]    // of the live handle, the latest first; taken whole by the owner when it is free
	holder atomic.Pointer[use]    // by the stream that a moved block belongs to
	moved  atomic.Uint64          // the handle of which holder is
	record atomic.Pointer[record] // of tags and places
	charge atomic.Pointer[charge] // of a charged handle
}

// Payer is told of the frees of what is charged to it, on the goroutine that frees, perhaps inside a turn. It must not wait.
type Payer interface{ Paid(bytes int64) }

// charge is who pays for a live handle. It does not change.
type charge struct {
	payer Payer
	bytes int64
}

// SetCharge says who pays for a live handle, until it is freed. The caller has the handle and has not shown it to anybody yet.
func (s *Slot) SetCharge(handle uint64, payer Payer, bytes int64) {
	s.noted().charge.Store(&charge{payer, bytes})
	_ = s.Announce(handle, Watched) // the handle is the caller's alone, so it is live
}

// IsCharged reports whether somebody pays for the live handle.
func (s *Slot) IsCharged() bool {
	n := s.note.Load()
	return n != nil && n.charge.Load() != nil
}

// pay tells who pays. The caller has won the free.
func (s *Slot) pay() {
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
