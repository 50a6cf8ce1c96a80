package memory

import "math/bits"

// bitmap is a set of pages.
type bitmap []uint64

func (b *bitmap) set(r Run, on bool) {
	for uint32(len(*b))*64 < r.End() {
		*b = append(*b, 0)
	}
	for r.Pages > 0 {
		w, mask, rest := word(r)
		if on {
			(*b)[w] |= mask
		} else {
			(*b)[w] &^= mask
		}
		r = rest
	}
}

// word returns the word of a run's first page, the bits of the run in it, and the rest of the run.
func word(r Run) (w, mask uint64, rest Run) {
	at := r.First & 63
	n := min(r.Pages, 64-at)
	_, rest = r.Front(n)
	return uint64(r.First >> 6), (^uint64(0) >> (64 - n)) << at, rest
}

// next returns the first page in [from, end) whose bit is want, or end.
func (b bitmap) next(from, end uint32, want bool) uint32 {
	for from < end {
		w := b[from>>6]
		if !want {
			w = ^w
		}
		if w >>= from & 63; w != 0 {
			return min(end, from+uint32(bits.TrailingZeros64(w)))
		}
		from = (from | 63) + 1
	}
	return end
}

// count returns the number of pages of the run in the set.
func (b bitmap) count(r Run) uint32 {
	var n int
	for r.Pages > 0 && r.First>>6 < uint32(len(b)) {
		w, mask, rest := word(r)
		n += bits.OnesCount64(b[w] & mask)
		r = rest
	}
	return uint32(n)
}
