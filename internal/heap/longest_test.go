package heap

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestTakeLongestFollowsTheReference compares the taken pages with an array that names one owner for each
// unit.
func TestTakeLongestFollowsTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		page := rapid.Uint32Range(0, modelPages-1)
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { m.check() },
			"grant": func(t *rapid.T) {
				m.grant(page.Draw(t, "first"), rapid.Uint32Range(1, 24).Draw(t, "pages"))
			},
			"take": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "count") {
					m.take(rapid.Uint32Range(1, 3*modelPageUnits).Draw(t, "units"))
				}
			},
			"give": func(t *rapid.T) { m.giveSome(t, rapid.IntRange(1, 6).Draw(t, "count")) },
			"take longest": func(t *rapid.T) {
				m.takeLongest(rapid.Uint32Range(0, 30).Draw(t, "pages"), rapid.Bool().Draw(t, "whole"), 0, modelPages)
			},
			"take longest within": func(t *rapid.T) {
				from := page.Draw(t, "from")
				m.takeLongest(rapid.Uint32Range(0, 30).Draw(t, "pages"), rapid.Bool().Draw(t, "whole"), from, rapid.Uint32Range(from, modelPages).Draw(t, "to"))
			},
		})
	})
}

// TestTakeFittingFollowsTheReference compares the taken block with the free ranges: it has enough whole
// pages, and no range of a lower bin has.
func TestTakeFittingFollowsTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) { m.check() },
			"grant": func(t *rapid.T) {
				m.grant(rapid.Uint32Range(0, modelPages-1).Draw(t, "first"), rapid.Uint32Range(1, 24).Draw(t, "pages"))
			},
			"take": func(t *rapid.T) {
				for range rapid.IntRange(1, 6).Draw(t, "count") {
					m.take(rapid.Uint32Range(1, 3*modelPageUnits).Draw(t, "units"))
				}
			},
			"give":         func(t *rapid.T) { m.giveSome(t, rapid.IntRange(1, 6).Draw(t, "count")) },
			"take fitting": func(t *rapid.T) { m.takeFitting(rapid.Uint32Range(0, 30).Draw(t, "pages")) },
		})
	})
	h := New(4096)
	_, _, ok := h.TakeFitting(1 << 20)
	assert.False(t, ok, "more units than a block can have")
}

func (m *model) takeFitting(pages uint32) {
	ranges := m.ref.free()
	wholePages := func(s span) uint32 {
		first, end := (s.from+modelPageUnits-1)/modelPageUnits, s.end/modelPageUnits
		return max(first, end) - first
	}
	first, count, ok := m.heap.TakeFitting(pages)
	if !ok {
		for _, s := range ranges {
			require.False(m.t, pages > 0 && s.units() >= (pages+2)*modelPageUnits && wholePages(s) > pages+1 && binOf(s.units()) > binOf(pages*modelPageUnits) &&
				len(ranges) == 1, "one range that holds the pages however it lies was not found")
		}
		return
	}
	require.GreaterOrEqual(m.t, count, pages)
	begin, end := first*modelPageUnits, (first+count)*modelPageUnits
	i := slices.IndexFunc(ranges, func(s span) bool { return s.from <= begin && end <= s.end })
	require.GreaterOrEqual(m.t, i, 0, "pages %d+%d left, and are not free", first, count)
	require.Equal(m.t, wholePages(ranges[i]), count, "a part of a range left")
	for _, s := range ranges {
		between := binOf(s.units()) > binOf(pages*modelPageUnits) && binOf(s.units()) < binOf(ranges[i].units())
		require.False(m.t, between, "a shorter range that is long enough was passed over")
	}
	m.ref.fill(begin, end, foreign)
}

// A block that is long enough, and that lies so that it has fewer whole pages, stays.
func TestTakeFittingLeavesABlockThatLiesBadly(t *testing.T) {
	t.Parallel()
	const pageUnits, units = 8, 32
	for from := uint32(1); from < units-1; from++ {
		for end := from + 1; end < units; end++ {
			for pages := uint32(1); pages <= 4; pages++ {
				h := New(pageUnits)
				h.Grant(0, units/pageUnits)
				h.Take(from)
				block := h.Take(end - from)
				h.Take(units - end)
				h.Give(block)
				first, count, ok := h.TakeFitting(pages)
				whole := max(end/pageUnits, (from+pageUnits-1)/pageUnits) - (from+pageUnits-1)/pageUnits
				if require.Equal(t, whole >= pages, ok, "%d pages of the units %d to %d", pages, from, end); ok {
					require.Equal(t, (from+pageUnits-1)/pageUnits, first)
					require.Equal(t, whole, count)
				} else {
					require.EqualValues(t, end-from, h.FreeUnits())
				}
				require.NoError(t, h.Check())
			}
		}
	}
}

// takeLongest takes pages of [from, to). It checks that they are free, that ranges are in falling order of
// their bins, and that the pages add up to as many as requested or available: with whole, only the rest of
// the last range may exceed that.
func (m *model) takeLongest(pages uint32, whole bool, from, to uint32) {
	ranges := m.ref.free()
	within := func(first, end uint32) (uint32, uint32) {
		first, end = max(first, from), min(end, to)
		return first, max(first, end)
	}
	pagesOf := func(s span) uint32 {
		first, end := (s.from+modelPageUnits-1)/modelPageUnits, s.end/modelPageUnits
		if first >= end {
			return 0
		}
		first, end = within(first, end)
		return end - first
	}
	var there, taken, last uint32
	for _, s := range ranges {
		there += pagesOf(s)
	}
	narrow := within
	if from == 0 && to == modelPages {
		narrow = nil
	}
	lowest := binOf(modelUnits) + 1
	left := slices.Clone(ranges) // ranges of which no page was taken
	m.heap.TakeLongest(pages, whole, narrow, func(first, count uint32) {
		require.Positive(m.t, count)
		require.Less(m.t, taken, pages, "there were enough")
		begin, end := first*modelPageUnits, (first+count)*modelPageUnits
		i := slices.IndexFunc(left, func(s span) bool { return s.from <= begin && end <= s.end })
		require.GreaterOrEqual(m.t, i, 0, "pages %d+%d left, they are not free, or the range has been visited", first, count)
		require.True(m.t, from <= first && first+count <= to)
		require.True(m.t, count == pagesOf(left[i]) || !whole && taken+count == pages, "a part of a range left")
		require.LessOrEqual(m.t, binOf(left[i].units()), lowest)
		lowest = binOf(left[i].units())
		left = slices.Delete(left, i, i+1)
		taken, last = taken+count, count
		m.ref.fill(begin, end, foreign)
	})
	for _, s := range left {
		require.False(m.t, pagesOf(s) > 0 && binOf(s.units()) > lowest, "a longer range was passed over")
	}
	if whole {
		require.GreaterOrEqual(m.t, taken, min(pages, there))
		require.True(m.t, taken == 0 || taken-last < pages)
	} else {
		require.Equal(m.t, min(pages, there), taken)
	}
}

// TestTakeLongestGrowsItsBooks cuts more ranges than the array of nodes has room for.
func TestTakeLongestGrowsItsBooks(t *testing.T) {
	t.Parallel()
	const ranges = 300
	h := New(8)
	h.Grant(0, 4*ranges)
	for range 2 * ranges {
		h.Take(16)
	}
	for i := range int32(2 * ranges) {
		if b := blockAt(h, 32*uint32(i)+16); b != None { //nolint:gosec // a few
			h.Give(b)
		}
	}
	taken := uint32(0)
	h.TakeLongest(^uint32(0), true, nil, func(_, pages uint32) { taken += pages })
	assert.EqualValues(t, 2*ranges, taken)
	require.NoError(t, h.Check())
	assert.Zero(t, h.FreeUnits())
}

// TestLongestBoundIsNeverTooShort compares the bound with the longest range.
func TestLongestBoundIsNeverTooShort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel(t)
		require.Zero(t, m.heap.LongestBound())
		m.grant(0, modelPages)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.Bool().Draw(t, "take") {
				m.take(rapid.Uint32Range(1, 9*modelPageUnits).Draw(t, "units"))
			} else {
				m.giveSome(t, 1)
			}
			longest := m.heap.LargestFree()
			require.GreaterOrEqual(t, m.heap.LongestBound(), longest)
			require.Equal(t, longest == 0, m.heap.LongestBound() == 0)
		}
	})
}

// Each visit of whole pages has some, also where a free block is shorter than a page, or ends where its first whole page begins.
func TestEachPagesVisitsNoEmptyRange(t *testing.T) {
	t.Parallel()
	const pageUnits = 8
	for units := uint32(1); units < 3*pageUnits; units++ {
		h := New(pageUnits)
		h.Grant(0, 3)
		kept := h.Take(units)
		require.NotEqual(t, None, kept)
		var pages uint32
		h.EachPages(func(first, end uint32) {
			assert.Less(t, first, end, "%d units are used", units)
			pages += end - first
		})
		assert.Equal(t, (3*pageUnits-units)/pageUnits, pages)
	}
}
