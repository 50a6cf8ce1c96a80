package sim

import (
	"cmp"
	"slices"
	"sync"

	"github.com/go-vram/vram/cudadrv"
)

const (
	// spaceBase is where addresses begin; a low one would look like an offset.
	spaceBase = 0x3_0000_0000
	// spaceEnd is the end of the 47-bit address space that devices and host share.
	spaceEnd = 1 << 47
)

// space allocates the address space that the devices of a driver share. Ranges are whole granules and are followed by an empty
// one. A freed range is reused for the same size, the last one first, as drivers do; when the space runs out, freed ranges are
// merged.
//
// A balanced tree would merge at once; merging late keeps both calls at one map access however many
// ranges there are, and address space is plentiful.
type space struct {
	mu           sync.Mutex
	granuleBytes int64
	next         int64                   // the end of all that was ever given out
	free         map[int64][]cudadrv.Ptr // by span, guard included
}

func (s *space) init(granuleBytes int64) {
	s.granuleBytes = granuleBytes
	s.next = roundUp(spaceBase, granuleBytes)
	s.free = map[int64][]cudadrv.Ptr{}
}

// take finds address space for bytes. spanBytes is for give.
func (s *space) take(bytes int64) (p cudadrv.Ptr, spanBytes int64, ok bool) {
	if bytes > spaceEnd {
		return 0, 0, false
	}
	spanBytes = roundUp(bytes, s.granuleBytes) + s.granuleBytes
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok = s.carve(spanBytes); !ok {
		s.merge()
		p, ok = s.carve(spanBytes)
	}
	return p, spanBytes, ok
}

// give frees a span of take.
func (s *space) give(p cudadrv.Ptr, spanBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free[spanBytes] = append(s.free[spanBytes], p)
}

// carve takes a free range of that very span, or space never used before.
func (s *space) carve(spanBytes int64) (cudadrv.Ptr, bool) {
	if list := s.free[spanBytes]; len(list) > 0 {
		p := list[len(list)-1]
		s.free[spanBytes] = list[:len(list)-1]
		return p, true
	}
	if spanBytes <= spaceEnd-s.next {
		p := cudadrv.Ptr(s.next)
		s.next += spanBytes
		return p, true
	}
	return s.split(spanBytes)
}

// split cuts the span off the smallest free range that is larger.
func (s *space) split(spanBytes int64) (cudadrv.Ptr, bool) {
	best := int64(0)
	for span, list := range s.free {
		if len(list) > 0 && span > spanBytes && (best == 0 || span < best) {
			best = span
		}
	}
	if best == 0 {
		return 0, false
	}
	list := s.free[best]
	p := list[len(list)-1]
	s.free[best] = list[:len(list)-1]
	rest := best - spanBytes
	s.free[rest] = append(s.free[rest], p+cudadrv.Ptr(spanBytes))
	return p, true
}

// merge joins free ranges that touch, and those at the end with the space never used.
func (s *space) merge() {
	type span struct{ start, bytes int64 }
	var spans []span
	for bytes, list := range s.free {
		for _, p := range list {
			spans = append(spans, span{start: int64(p), bytes: bytes})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	joined := spans[:0]
	for _, sp := range spans {
		if last := len(joined) - 1; last >= 0 && joined[last].start+joined[last].bytes == sp.start {
			joined[last].bytes += sp.bytes
			continue
		}
		joined = append(joined, sp)
	}
	if last := len(joined) - 1; last >= 0 && joined[last].start+joined[last].bytes == s.next {
		s.next = joined[last].start
		joined = joined[:last]
	}
	clear(s.free)
	for _, sp := range joined {
		s.free[sp.bytes] = append(s.free[sp.bytes], cudadrv.Ptr(sp.start))
	}
}

// roundUp rounds up to a multiple of step, a power of two.
func roundUp(bytes, step int64) int64 { return (bytes + step - 1) &^ (step - 1) }
