package heap

import (
	"fmt"
	"slices"

	"github.com/stretchr/testify/require"
)

// The pages of the model have eight units, so that runs soon merge, split, vanish and return; its arena
// is long enough for lengths that share a bin.
const (
	modelPageUnits = 8
	modelPages     = 96
	modelUnits     = modelPages * modelPageUnits
)

// The owner of a unit in the reference; from 0 on it is the index of a used block.
const (
	foreign int32 = -2 // not the heap's
	nobody  int32 = -1 // free
)

// reference records the owner of each unit.
type reference [modelUnits]int32

func newReference() *reference {
	var r reference
	r.fill(0, modelUnits, foreign)
	return &r
}

func (r *reference) fill(from, end uint32, owner int32) {
	for u := from; u < end; u++ {
		r[u] = owner
	}
}

func (r *reference) page(p uint32) int32 { return r[p*modelPageUnits] }

// span is a sequence of units.
type span struct{ from, end uint32 }

func (s span) units() uint32 { return s.end - s.from }

// pages returns the number of whole pages in it.
func (s span) pages() uint32 {
	first, end := (s.from+modelPageUnits-1)/modelPageUnits, s.end/modelPageUnits
	if end < first {
		return 0
	}
	return end - first
}

// free lists the longest sequences of free units, by address. Adjoining pages are merged.
func (r *reference) free() (spans []span) {
	for u := uint32(0); u < modelUnits; u++ {
		from := u
		for u < modelUnits && r[u] == nobody {
			u++
		}
		if u > from {
			spans = append(spans, span{from, u})
		}
	}
	return spans
}

// blocks lists the used blocks.
func (r *reference) blocks() (blocks []int32) {
	for u := range r {
		if b := r[u]; b >= 0 && (u == 0 || r[u-1] != b) {
			blocks = append(blocks, b)
		}
	}
	return blocks
}

// model drives a heap and the reference with the same steps.
type model struct {
	t    require.TestingT
	heap *Heap
	ref  *reference
}

func newModel(t require.TestingT) *model {
	return &model{t: t, heap: New(modelPageUnits), ref: newReference()}
}

// take checks that a fit is found if there is one, and that the block it was cut from is the shortest as far
// as Fit promises.
func (m *model) take(units uint32) {
	before := m.ref.free()
	visits := m.heap.Visits()
	b := m.heap.Take(units)
	visits = m.heap.Visits() - visits

	var fits []uint32
	own := 0 // ranges in the wanted length's bin
	for _, s := range before {
		if binOf(s.units()) == binOf(units) {
			own++
		}
		if s.units() >= units {
			fits = append(fits, s.units())
		}
	}
	slices.Sort(fits)
	if len(fits) == 0 {
		require.Equal(m.t, None, b, "took %d units where no free range is long enough", units)
		return
	}
	require.NotEqual(m.t, None, b, "missed a fit for %d units: %d", units, fits)
	from := m.heap.Offset(b)
	require.Equal(m.t, units, m.heap.Units(b))
	defer m.ref.fill(from, from+units, b)
	at := slices.IndexFunc(before, func(s span) bool { return s.from == from })
	require.GreaterOrEqual(m.t, at, 0, "took from unit %d, where no free range starts", from)
	m.checkChoice(units, before[at].units(), fits, own)
	if binOf(fits[len(fits)-1]) > binOf(units) {
		require.LessOrEqual(m.t, visits, uint64(VisitLimit))
	}
}

// checkChoice compares the length of the cut range with the other candidates, in rising order, as Fit's
// comment promises.
func (m *model) checkChoice(units, chosen uint32, fits []uint32, own int) {
	bin := binOf(fits[0])
	next := bin // the first bin whose ranges all fit
	if bin == binOf(units) {
		for _, l := range fits {
			if next = binOf(l); next > bin {
				break
			}
		}
	}
	require.Contains(m.t, []int{bin, next}, binOf(chosen), "for %d units, cut a range of %d where %d fit", units, chosen, fits)
	peers := 0
	for _, l := range fits {
		if binOf(l) == bin {
			peers++
		}
	}
	if (bin == binOf(units) && own <= scanLimit) || (bin > binOf(units) && peers <= nextLimit) {
		require.Equal(m.t, fits[0], chosen, "for %d units, of %d", units, fits)
	}
}

// give checks that the block merges with its free neighbours.
func (m *model) give(b int32) {
	from := m.heap.Offset(b)
	merged := m.heap.Give(b)
	for u := range m.ref {
		if m.ref[u] == b {
			m.ref[u] = nobody
		}
	}
	m.checkMerged(from, merged)
}

func (m *model) checkMerged(at, merged uint32) {
	for _, s := range m.ref.free() {
		if s.from <= at && at < s.end {
			require.Equal(m.t, s.units(), merged)
		}
	}
}

// grant adds the pages up to the first one that the heap holds.
func (m *model) grant(first, pages uint32) {
	n := uint32(0)
	for n < pages && first+n < modelPages && m.ref.page(first+n) == foreign {
		n++
	}
	if n == 0 {
		return
	}
	merged := m.heap.Grant(first, n)
	m.ref.fill(first*modelPageUnits, (first+n)*modelPageUnits, nobody)
	m.checkMerged(first*modelPageUnits, merged)
}

// takePages checks that as many whole free pages leave as there are, at most limit, from lower bins first.
func (m *model) takePages(limit uint32) {
	var there uint32
	rest := map[int]uint32{} // by bin, of the ranges before
	ranges := m.ref.free()
	for _, s := range ranges {
		there += s.pages()
		rest[binOf(s.units())] += s.pages()
	}
	bin := 0
	var taken uint32
	got := m.heap.TakePages(limit, func(first, pages uint32) bool {
		require.Positive(m.t, pages)
		taken += pages
		from, end := first*modelPageUnits, (first+pages)*modelPageUnits
		i := slices.IndexFunc(ranges, func(s span) bool { return s.from <= from && end <= s.end })
		require.GreaterOrEqual(m.t, i, 0, "pages %d+%d left, they are not free", first, pages)
		at := binOf(ranges[i].units())
		for b, n := range rest {
			require.False(m.t, b < at && n > 0, "a range of bin %d went before %d pages of bin %d", at, n, b)
		}
		require.GreaterOrEqual(m.t, at, bin)
		bin = at
		rest[at] -= pages
		for u := from; u < end; u++ {
			require.Equal(m.t, nobody, m.ref[u])
		}
		m.ref.fill(from, end, foreign)
		return true
	})
	require.Equal(m.t, min(limit, there), got)
	require.Equal(m.t, got, taken)
}

// takeRanges takes all pages of so many ranges, and checks that as many fewer ranges hold a page.
func (m *model) takeRanges(count int) {
	before := m.pageRanges()
	left := count
	m.heap.TakePages(^uint32(0), func(first, pages uint32) bool {
		m.ref.fill(first*modelPageUnits, (first+pages)*modelPageUnits, foreign)
		left--
		return left > 0
	})
	require.Equal(m.t, max(0, before-count), m.pageRanges())
}

// pageRanges counts the free ranges that hold a whole page.
func (m *model) pageRanges() (count int) {
	for _, s := range m.ref.free() {
		if s.pages() > 0 {
			count++
		}
	}
	return count
}

// check compares the heap with its own invariants and the reference.
func (m *model) check() {
	require.NoError(m.t, m.heap.Check())
	var free, held, longest uint32
	spans := m.ref.free()
	for _, s := range spans {
		free += s.units()
		longest = max(longest, s.units())
	}
	for _, owner := range m.ref {
		if owner != foreign {
			held++
		}
	}
	for _, b := range m.ref.blocks() {
		from := m.heap.Offset(b)
		for u := from; u < from+m.heap.Units(b); u++ {
			require.Equal(m.t, b, m.ref[u], fmt.Sprintf("block %d at unit %d", b, u))
		}
	}
	require.Equal(m.t, uint64(free), m.heap.FreeUnits())
	require.Equal(m.t, uint64(held), m.heap.HeldUnits())
	require.Equal(m.t, len(spans), m.heap.FreeRanges())
	require.Equal(m.t, m.pageRanges(), m.heap.PageRanges(modelUnits))
	require.Equal(m.t, min(2, m.pageRanges()), m.heap.PageRanges(2))
	require.Equal(m.t, longest, m.heap.LargestFree())
	require.True(m.t, longest == 0 || m.heap.LargestFits(longest))
	require.False(m.t, m.heap.LargestFits(longest+1))
}
