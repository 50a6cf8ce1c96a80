package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
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

// freePages counts the whole pages in free ranges, and the ranges that hold one: lent, and not touched by a
// block of a slot or a span. The reference does not know the magazines' contents.
func (w *world) freePages() (pages uint32, ranges int) {
	touched := make([]bool, worldUnits/w.pageUnits)
	eachBlock(w.core.owner, func(block int32, _ occupant) {
		from := w.core.heap.Offset(block)
		for p := from / w.pageUnits; p <= (from+w.core.heap.Units(block)-1)/w.pageUnits; p++ {
			touched[p] = true
		}
	})
	before := false
	for p := range touched {
		free := !touched[p] && w.owners[uint32(p)*w.pageUnits] != foreign
		if free {
			pages++
			if !before {
				ranges++
			}
		}
		before = free
	}
	return pages, ranges
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
