package magazine

import "hash/maphash"

// seen are the states that a search has been in, by a hash of each: 8 bytes that the garbage collector need not look at, in
// place of hundreds. That any two of two million states meet has a chance of one in ten million; it would leave out one
// way of many, and another one in each run.
type seen[W comparable] struct {
	seed  maphash.Seed
	slots []uint64 // the hashes, each at the first slot that was empty from its place on; 0: empty
	known int
}

func newSeen[W comparable]() *seen[W] {
	return &seen[W]{seed: maphash.MakeSeed(), slots: make([]uint64, 1<<12)}
}

// add reports whether the state is new.
func (s *seen[W]) add(w *W) bool {
	if !s.put(max(maphash.Comparable(s.seed, *w), 1)) {
		return false
	}
	if s.known++; s.known > len(s.slots)/2 {
		old := s.slots
		s.slots = make([]uint64, 4*len(old))
		for _, hash := range old {
			if hash != 0 {
				s.put(hash)
			}
		}
	}
	return true
}

func (s *seen[W]) put(hash uint64) bool {
	last := uint64(len(s.slots) - 1)
	at := hash & last
	for ; s.slots[at] != 0; at = (at + 1) & last {
		if s.slots[at] == hash {
			return false
		}
	}
	s.slots[at] = hash
	return true
}

func (s *seen[W]) count() int { return s.known }
