package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
)

// fenced is a world whose core tracks fences; it also records the step in which each page was last freed or
// granted.
type fenced struct {
	*world
	now            int
	given          map[uint32]int // when a buffer on the page was freed, or the page was granted
	opened         map[uint32]int // when a block on the page became free in the core's heap, or the page was granted
	sealed, fenced int            // steps of the last begun fence, and of the last recorded one
}

func newFenced(t require.TestingT) *fenced {
	f := &fenced{world: newWorld(t, 4096, Budget{}), now: 1, given: map[uint32]int{}, opened: map[uint32]int{}}
	f.core.coverage.begin()
	f.core.onFree = append(f.core.onFree, func(block int32) { f.open(f.core.pagesOf(block)) })
	f.core.onGrant = append(f.core.onGrant, f.open)
	return f
}

func (f *fenced) open(r Run) {
	for at := r.First; at < r.End(); at++ {
		f.opened[at] = f.now
	}
}

// checkUncovered compares the sum of the pages that no fence covers with the steps in which the core got them.
func (f *fenced) checkUncovered() {
	var pages int64
	for _, u := range f.freeRanges() {
		first, end := f.pagesIn(u)
		for at := first; at < end; at++ {
			if f.opened[at] > f.fenced {
				pages++
			}
		}
	}
	require.Equal(f.t, pages*f.core.ranges.pageBytes(), f.core.UncoveredBytes())
}

func (f *fenced) give(b *buffer) {
	first, end := b.from/f.pageUnits, (b.from+b.units-1)/f.pageUnits
	if b.units <= sizeclass.MaxUnits { // its whole span becomes free later
		first, end = 0, 0
	}
	for at := first; at <= end; at++ {
		f.given[at] = f.now
	}
	f.free(b)
}

func (f *fenced) source(need uint32) bool {
	if !f.lend(0, need) {
		return false
	}
	for at := range uint32(worldUnits) / f.pageUnits {
		if _, known := f.given[at]; !known && f.owners[at*f.pageUnits] != foreign {
			f.given[at] = f.now
		}
	}
	return true
}

// leaves takes pages that left and compares them with the fence.
func (f *fenced) leaves(runs []Run) {
	for _, r := range runs {
		for at := r.First; at < r.First+r.Pages; at++ {
			require.LessOrEqual(f.t, f.given[at], f.fenced, "page %d left, and no fence covers it", at)
			delete(f.given, at)
		}
	}
	f.back(runs)
}

// In any order of events, no page leaves on which a block was freed since the start of the last recorded
// fence; and without such frees, all free pages leave.
func TestOnlyCoveredPagesLeave(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := newFenced(t)
		sealing := false
		steps := map[string]func(*rapid.T){
			"": func(*rapid.T) {
				f.checkUncovered()
				f.now++
			},
			"alloc": func(t *rapid.T) {
				f.alloc(rapid.Int64Range(sizeclass.MaxBytes+1, 12*mib).Draw(t, "bytes"), 0, f.source)
			},
			"free": func(t *rapid.T) {
				if len(f.live) > 0 {
					f.give(f.live[rapid.IntRange(0, len(f.live)-1).Draw(t, "live")])
				}
			},
			"seal": func(*rapid.T) {
				if !sealing {
					f.core.Seal()
					f.sealed, sealing = f.now, true
				}
			},
			"record": func(t *rapid.T) {
				switch {
				case !sealing:
				case rapid.Bool().Draw(t, "fails"):
					f.core.Unsealed()
				default:
					f.core.Covered()
					f.fenced = f.sealed
				}
				sealing = false
			},
			"release": func(t *rapid.T) {
				limit, held := rapid.SampledFrom([]uint32{0, 1, 3, ^uint32(0)}).Draw(t, "limit"), f.heldPages
				f.leaves(f.core.Release(limit, true))
				require.LessOrEqual(t, held-f.heldPages, limit)
			},
			"tick": func(*rapid.T) {
				f.core.Tick()
				f.leaves(f.core.Decay(true))
			},
		}
		for range 3 {
			t.Repeat(steps)
		}
		f.core.Release(0, true) // frees cached slots
		f.core.Seal()
		f.core.Covered()
		f.sealed, f.fenced = f.now, f.now
		assert.Zero(t, f.core.UncoveredBytes())
		f.leaves(f.core.Release(^uint32(0), true))
		pages, _ := f.freePages()
		assert.Zero(t, pages, "all that is covered leaves")
		f.finish(rapid.Bool().Draw(t, "close first"))
	})
}

// Granted pages may have a later fence than the stream's last: they stay.
func TestGrantedPagesAreNotCovered(t *testing.T) {
	t.Parallel()
	f := newFenced(t)
	require.True(t, f.lend(0, 4))
	assert.EqualValues(t, 4*4096<<sizeclass.UnitShift, f.core.UncoveredBytes())
	assert.Empty(t, f.core.Release(^uint32(0), true))
	f.core.WantFence()
	assert.True(t, f.core.Over())
	f.core.Seal()
	f.core.Unsealed()
	f.core.WantFence()
	assert.True(t, f.core.FenceWanted(), "it was not recorded")
	f.core.Seal()
	assert.False(t, f.core.FenceWanted())
	assert.Empty(t, f.core.Release(^uint32(0), true), "the fence is not recorded yet")
	f.core.Covered()
	f.core.WantFence()
	assert.False(t, f.core.FenceWanted(), "it would cover nothing more")
	f.back(f.core.Release(^uint32(0), true))
	assert.Zero(t, f.core.HeldBytes())
}

// A covered part of a longer range leaves up to the limit, also where the range has several.
func TestCoveredPagesLeaveUpToTheLimit(t *testing.T) {
	t.Parallel()
	for limit := range uint32(8) {
		f := newFenced(t)
		require.True(t, f.lend(0, 7))
		f.core.Seal()
		f.core.Covered()
		f.sealed, f.fenced = f.now, f.now
		f.core.coverage.open.add(Run{First: 2, Pages: 1})
		f.core.coverage.open.add(Run{First: 5, Pages: 1}) // two pages, two pages, and one are covered
		runs := f.core.Release(limit, true)
		var pages uint32
		for _, r := range runs {
			require.False(t, r.Contains(2) || r.Contains(5))
			pages += r.Pages
		}
		assert.Equal(t, min(limit, 5), pages)
	}
}

// Of the covered runs in a range the longest leaves, wherever it lies.
func TestTheLongestCoveredRunLeaves(t *testing.T) {
	t.Parallel()
	var c coverage
	for _, open := range []uint32{0, 1, 2, 4} {
		c.open.add(Run{First: open, Pages: 1})
	}
	from, to := c.longest(0, 7)
	assert.Equal(t, [2]uint32{5, 7}, [2]uint32{from, to})
}
