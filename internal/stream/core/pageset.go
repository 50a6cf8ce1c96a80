package core

// pageSet is a set of pages by number. The zero value is empty.
type pageSet struct{ words []uint64 }

func (s *pageSet) add(r Run) {
	first, end := r.First, r.End()
	for uint32(len(s.words))*64 < end {
		s.words = append(s.words, 0)
	}
	for first < end {
		at := first & 63
		n := min(end-first, 64-at)
		s.words[first>>6] |= (^uint64(0) >> (64 - n)) << at
		first += n
	}
}

func (s *pageSet) addAll(o *pageSet) {
	for len(s.words) < len(o.words) {
		s.words = append(s.words, 0)
	}
	for i, w := range o.words {
		s.words[i] |= w
	}
}

func (s *pageSet) has(page uint32) bool {
	return int(page>>6) < len(s.words) && s.words[page>>6]>>(page&63)&1 != 0
}
