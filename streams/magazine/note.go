package magazine

import "sync/atomic"

// note is what few slots have beside their words: it stays with the slot once it has one.
type note struct {
	bits   atomic.Uint64          // by the numbers of other streams, while Announced is set; see Record
	uses   atomic.Pointer[use]    // of the live handle, the latest first; taken whole by the owner when it is free
	holder atomic.Pointer[use]    // by the stream that a moved block belongs to
	record atomic.Pointer[record] // of tags and places
}

// noted is the slot's note.
func (s *Slot) noted() *note {
	if n := s.note.Load(); n != nil {
		return n
	}
	s.note.CompareAndSwap(nil, new(note))
	return s.note.Load()
}
