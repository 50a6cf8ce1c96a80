package core

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// excess releases the excess over the budget and checks that the budget then holds, as far as pages allow,
// and that no more pages than needed left.
func (w *world) excess() {
	budget := w.core.limits.budget
	w.core.Drain()
	before := w.core.limits.overBytes()
	pages, ranges := w.freePages()
	if w.core.Over() {
		require.True(w.t, before > 0 || ranges > budget.CacheRanges && budget.CacheRanges > 0)
	}
	keptBefore := w.core.retention.units
	runs := w.core.Excess(false)
	gone := w.back(runs)

	left, leftRanges := w.freePages()
	if keptBefore == w.core.retention.units {
		require.Equal(w.t, pages-gone, left)
	}
	if budget.CacheBytes > 0 && left > 0 {
		require.Zero(w.t, w.core.limits.overBytes(), "over the budget, and %d whole pages are free", left)
	}
	if budget.CacheRanges > 0 {
		require.LessOrEqual(w.t, leftRanges, budget.CacheRanges)
	}
	if budget.CacheRanges == 0 && gone > 0 { // one page less would not have been enough
		require.Greater(w.t, w.keptAndFree()+int64(w.pageUnits)<<sizeclass.UnitShift, budget.CacheBytes)
	}
	require.Empty(w.t, w.core.Excess(false), "twice")
}

func (w *world) keptAndFree() int64 {
	return int64(w.core.heap.FreeUnits()+w.core.retention.units) << sizeclass.UnitShift
}

// units is a run of units of the arena.
type units struct{ from, end uint32 }

// freeRanges returns the longest runs of units that are lent and in no block of a slot or a span, in order. The reference does
// not know the magazines' contents.
func (w *world) freeRanges() (free []units) {
	busy := []units{{worldUnits, worldUnits}}
	for from := uint32(0); from < worldUnits; from += w.pageUnits {
		if w.owners[from] == foreign {
			busy = append(busy, units{from, from + w.pageUnits})
		}
	}
	eachBlock(w.core.owner, func(block int32, _ occupant) {
		from := w.core.heap.Offset(block)
		busy = append(busy, units{from, from + w.core.heap.Units(block)})
	})
	slices.SortFunc(busy, func(a, b units) int { return cmp.Compare(a.from, b.from) })
	at := uint32(0)
	for _, b := range busy {
		if b.from > at {
			free = append(free, units{at, b.from})
		}
		at = b.end
	}
	return free
}

// pagesIn returns the whole pages in a run of units.
func (w *world) pagesIn(u units) (first, end uint32) {
	first, end = (u.from+w.pageUnits-1)/w.pageUnits, u.end/w.pageUnits
	return first, max(first, end)
}

// freePages counts the whole pages in free ranges, and the ranges that hold one.
func (w *world) freePages() (pages uint32, ranges int) {
	for _, u := range w.freeRanges() {
		if first, end := w.pagesIn(u); first < end {
			pages += end - first
			ranges++
		}
	}
	return pages, ranges
}

// checkCached compares the figures of cached memory with the reference.
func (w *world) checkCached(s Snapshot) {
	var free, longest, spans uint64
	all := w.freeRanges()
	for _, u := range all {
		free += uint64(u.end - u.from)
		longest = max(longest, uint64(u.end-u.from))
	}
	w.core.owner.Spans.Each(func(m *magazine.Span) {
		if m.Block != heap.None {
			spans += uint64(w.core.heap.Units(m.Block)) - uint64(m.LiveSlots())*uint64(m.Units())
		}
	})
	kept, _ := w.kept()
	pages, _ := w.freePages()
	require.Equal(w.t, free<<sizeclass.UnitShift, uint64(s.RangeBytes))
	require.Equal(w.t, longest<<sizeclass.UnitShift, uint64(s.LargestFreeBytes))
	require.Len(w.t, all, s.FreeRanges)
	require.Equal(w.t, spans<<sizeclass.UnitShift, uint64(s.SpanBytes))
	require.Equal(w.t, (kept+w.partUnits())<<sizeclass.UnitShift, uint64(s.MagazineBytes))
	require.Equal(w.t, uint64(pages)*uint64(w.pageUnits)<<sizeclass.UnitShift, uint64(s.PageBytes))
	require.Equal(w.t, s.CachedBytes, s.RangeBytes+s.SpanBytes+s.MagazineBytes)
}

// MostPages allows a request all pages that fit its stream's budget even if it leaves the last of its own pages almost unused,
// and not one more.
func TestMostPagesUsesTheWholeBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 512, Budget{})
		pageBytes := w.core.ranges.pageBytes()
		require.True(t, w.lend(0, rapid.Uint32Range(1, 5).Draw(t, "kept pages")))
		kept := w.keptAndFree()
		budget := rapid.OneOf(rapid.SampledFrom([]int64{1, kept, kept + 1, kept + pageBytes - 1, kept + pageBytes, kept + 2*pageBytes - 1, kept + 2*pageBytes}),
			rapid.Int64Range(1, 20*pageBytes)).Draw(t, "budget")
		w.core.SetBudget(Budget{CacheBytes: budget})
		pages := rapid.Uint32Range(1, 1000).Draw(t, "pages")
		spare := int64(w.core.MostPages(pages)) - int64(pages)
		require.GreaterOrEqual(t, spare, int64(0), "the request itself is always served")
		if spare > 0 {
			require.LessOrEqual(t, kept+(spare+1)*pageBytes, budget, "within it, with the last page unused")
		}
		require.Greater(t, kept+(spare+2)*pageBytes, budget, "a page more is not")

		w.core.SetBudget(Budget{CacheRanges: 1})
		require.Zero(t, w.core.MostPages(pages), "no bound of bytes")
		w.core.SetBudget(Budget{CacheBytes: 1 << 62})
		require.EqualValues(t, 1<<32-1, w.core.MostPages(pages))
	})
}

// An unused span pins its page. Free memory adjoining it counts against the budget, and the next tick
// releases it with the span.
func TestIdleSpansGoWhereTheirPagesAreOverTheBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{CacheBytes: 4 * mib})
	source := func(need uint32) bool { return w.lend(0, need) }
	var all []*buffer
	for i := range 8 {
		small := w.alloc(int64(512<<min(i, 6)), 0, source) // a span of each class
		all = append(all, small, w.alloc(2*mib-64*kib, 0, source))
	}
	kept := w.alloc(512, 0, source)
	for _, b := range all {
		w.free(b)
	}
	w.excess()
	w.core.Tick()
	w.excess()
	assert.LessOrEqual(t, w.keptAndFree(), int64(4*mib))
	assert.LessOrEqual(t, w.core.HeldBytes(), int64(6*mib), "the budget, and the page of the buffer that lives")
	w.free(kept)
	w.finish(true)
}

// The pages beyond a budget are the bytes beyond it, rounded up.
func TestBytesBeyondTheBudgetAreWholePages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	require.True(t, w.lend(0, 5))
	pageBytes := w.core.ranges.pageBytes()
	for _, c := range []struct {
		bytes int64
		pages uint32
	}{
		{-1, 0},
		{0, 0},
		{1, 1},
		{2, 1},
		{pageBytes - 1, 1},
		{pageBytes, 1},
		{pageBytes + 1, 2},
		{5*pageBytes - 1, 5},
		{5 * pageBytes, 0},
		{2 * pageBytes, 2},
	} { // a budget of no bytes is none
		w.core.SetBudget(Budget{CacheBytes: 5*pageBytes - c.bytes})
		assert.Equal(t, c.pages, w.core.limits.overPages(), "%d bytes", c.bytes)
		assert.Equal(t, c.pages > 0, w.core.Over(), "%d bytes", c.bytes)
	}
	w.back(w.core.Excess(false))
	assert.Equal(t, 3*pageBytes, w.core.HeldBytes())
}
