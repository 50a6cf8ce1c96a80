package interp

// apart is a page of a worker: until it ends, other workers see none of its stores.
type apart struct {
	copied         bool // the bytes
	loaded, stored marks
}

// marks has a bit for each cell of a page.
type marks [pageCells / wordBits]uint64

func (m *marks) set(first, count uint64) {
	for n := first; n < first+count; n++ {
		m[n>>6] |= 1 << (n & 63) //nolint:mnd // bits of a word
	}
}

func (a *apart) mark(first, count uint64, write bool) {
	if write {
		a.stored.set(first, count)
		return
	}
	a.loaded.set(first, count)
}

// worker executes a part of the blocks of a run.
type worker struct{}

// note marks an access.
func (p *page) note(*access, uint64, *run) {}
