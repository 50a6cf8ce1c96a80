package tape

import (
	"cmp"
	"slices"
)

// shelves find the places that are taken during a life without looking at all others. The step is cut into windows of
// several lengths; a window has, in rising order, the places that are taken at some time in it. A life is looked up in
// the shortest window that holds it whole: windows of one length overlap by half.
type shelves struct {
	n      uint32 // requests of the step
	levels []shelf
	all    []box
}

// shelf are the windows of one length: one begins every half.
type shelf struct {
	half    uint32
	windows [][]box
}

const (
	// shortestHalf: lives in real programs are mostly shorter than a hundred requests. Not less: a long life is in all windows.
	shortestHalf = 128
	// shelfLooks is what it costs to put a place on the windows of a level, in looks at a place.
	shelfLooks = 100
	// shelfStep is how much longer the windows of the next level are.
	shelfStep = 8
)

func newShelves(n uint32) *shelves {
	s := &shelves{n: n}
	for half := uint32(shortestHalf); half < n/2; half *= shelfStep {
		s.levels = append(s.levels, shelf{half, make([][]box, (n+half-1)/half)})
	}
	return s
}

func (s *shelves) clear() {
	s.all = s.all[:0]
	for _, l := range s.levels {
		for i := range l.windows {
			l.windows[i] = l.windows[i][:0]
		}
	}
}

// during are places of which those that are taken at some time in the life are a part.
func (s *shelves) during(begin, life uint32) []box {
	for _, l := range s.levels {
		if life <= l.half {
			return l.windows[begin/l.half]
		}
	}
	return s.all
}

// add takes a place.
func (s *shelves) add(b box) {
	s.all = insert(s.all, b)
	for _, l := range s.levels {
		// A window begins at each half and is two of them long, less where the step ends: it goes on at the start.
		count := uint32(len(l.windows)) //nolint:gosec // bounded by historyLimit
		for w := range count {
			if begin := w * l.half; b.meets(begin, min(2*l.half, s.n), s.n) {
				l.windows[w] = insert(l.windows[w], b)
			}
		}
	}
}

func insert(boxes []box, b box) []box {
	to, _ := slices.BinarySearchFunc(boxes, b.first, func(b box, first uint32) int { return cmp.Compare(b.first, first) })
	return slices.Insert(boxes, to, b)
}
