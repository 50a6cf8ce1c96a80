package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
)

// runs are runs by their first pages and lengths.
func runs(pairs ...uint32) (all []Run) {
	for i := 0; i < len(pairs); i += 2 {
		all = append(all, Run{First: pairs[i], Pages: pairs[i+1]})
	}
	return all
}

// apart returns a core that holds free runs of 16, 8, 4, 2 and 1 pages of 256 KiB, none adjoining another.
func apart(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, 512, Budget{})
	for _, run := range runs(60, 2, 0, 16, 50, 4, 70, 1, 30, 8) {
		require.True(t, w.grant(run.First, run.Pages))
	}
	return w
}

// A reclaim request for some pages gets the shortest free run that has as many, and if none has, the longest
// ones: no more of them than needed, and each whole, since a part of a run would leave two short ones.
func TestReleaseSome(t *testing.T) {
	t.Parallel()
	for pages, want := range map[uint32][]Run{
		1:   runs(70, 1),
		2:   runs(60, 2),
		3:   runs(50, 4),
		16:  runs(0, 16),
		17:  runs(0, 16, 30, 8),
		25:  runs(0, 16, 30, 8, 50, 4),
		31:  runs(0, 16, 30, 8, 50, 4, 60, 2, 70, 1),
		100: runs(0, 16, 30, 8, 50, 4, 60, 2, 70, 1),
	} {
		w := apart(t)
		all, longest := w.core.NoteFree()
		assert.EqualValues(t, 31, all)
		assert.EqualValues(t, 16, longest)
		got := append([]Run(nil), w.core.ReleaseSome(pages, false)...)
		assert.Equal(t, want, got, "%d pages", pages)
		gone := w.back(got)
		all, _ = w.core.NoteFree()
		assert.Equal(t, 31-gone, all)
		w.check()
		w.finish(true)
	}
}

// A reclaim request for some pages collects freed slots, and closes no magazine.
func TestReleaseSomeLeavesMagazinesOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	w.hoard(4, mib, 0, w.always)
	freed := w.alloc(5*mib, 0, w.always)
	w.free(freed)
	kept := w.core.retention.units
	require.Positive(t, kept)
	gone := w.back(w.core.ReleaseSome(20, false))
	assert.GreaterOrEqual(t, gone, uint32(20), "also what no turn had taken home")
	assert.Equal(t, kept, w.core.retention.units)
	w.finish(true)
}

// If only covered pages may leave, the others stay, and the longest covered runs leave.
func TestReleaseSomeLeavesUncoveredPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	w.core.coverage.begin()
	require.True(t, w.grant(0, 16))
	require.True(t, w.grant(30, 8))
	assert.Empty(t, w.core.ReleaseSome(4, true), "no fence covers what was granted")
	w.core.Seal()
	w.core.Covered()
	require.True(t, w.grant(50, 20))
	assert.EqualValues(t, 16, w.back(w.core.ReleaseSome(4, true)))
	assert.EqualValues(t, 8, w.back(w.core.ReleaseSome(4, true)))
	assert.Empty(t, w.core.ReleaseSome(4, true))
	assert.EqualValues(t, 20, w.back(w.core.ReleaseSome(4, false)))
	w.finish(true)
}

// checkFree compares the free pages that a turn publishes with all ranges: at least the largest, at most the
// sum.
func (w *world) checkFree() {
	w.core.Drain()
	all, longest := w.core.NoteFree()
	s := w.core.Snapshot()
	pageBytes := int64(w.pageUnits) << sizeclass.UnitShift
	pages, _ := w.freePages()
	require.GreaterOrEqual(w.t, all, pages)
	require.LessOrEqual(w.t, int64(all)*pageBytes, s.RangeBytes)
	require.GreaterOrEqual(w.t, int64(longest), s.LargestFreeBytes/pageBytes)
	require.LessOrEqual(w.t, int64(longest)*pageBytes, s.HeldBytes)
}
