package magazine

import "hash/maphash"

// seen are the states that a search has been in, by a hash of each: 8 bytes that the garbage collector need not look at, in
// place of hundreds. That any two of two million states meet has a chance of one in ten million; it would leave out one
// way of many, and another one in each run.
type seen[W comparable] struct {
	seed   maphash.Seed
	hashes map[uint64]struct{}
}

func newSeen[W comparable]() *seen[W] {
	return &seen[W]{maphash.MakeSeed(), map[uint64]struct{}{}}
}

// add reports whether the state is new.
func (s *seen[W]) add(w W) bool {
	before := len(s.hashes)
	s.hashes[maphash.Comparable(s.seed, w)] = struct{}{}
	return len(s.hashes) > before
}

func (s *seen[W]) count() int { return len(s.hashes) }
