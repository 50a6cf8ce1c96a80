package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Surplus is the least that was free over a window, at its end; then another window begins.
func TestSurplusIsTheLeastThatWasFree(t *testing.T) {
	t.Parallel()
	s := newSurplus(3)
	ticks := func(notes ...uint64) (all []uint64) {
		for _, free := range notes {
			s.note(free)
			units, _ := s.tick()
			all = append(all, units)
		}
		return all
	}
	assert.Equal(t, []uint64{0, 0, 4}, ticks(9, 4, 7))
	assert.Equal(t, []uint64{0, 0, 7}, ticks(9, 7, 8), "the window before does not count")
	assert.Equal(t, []uint64{0, 0, 0}, ticks(9, 0, 8), "all was needed once")
	s.note(5)
	s.note(2)
	s.note(6)
	assert.Equal(t, []uint64{0, 0, 2}, ticks(9, 9, 9), "every turn counts")
	for range 3 {
		units, _ := s.tick()
		assert.Zero(t, units, "nothing is known without a turn")
	}
	assert.Equal(t, []uint64{0, 0}, ticks(9, 4))
	s.setWindow(3) // as it is
	assert.Equal(t, []uint64{4}, ticks(7), "the same window")
	assert.Equal(t, []uint64{0, 0}, ticks(9, 4))
	s.setWindow(2)
	assert.Equal(t, []uint64{0, 7}, ticks(9, 7), "another window")
	s = newSurplus(0)
	assert.Equal(t, []uint64{0, 0, 0, 0}, ticks(9, 9, 9, 9), "there is no window")
}

// aging returns a core with a window of four ticks that holds so many free pages of 256 KiB.
func aging(t *testing.T, pages uint32) *world {
	t.Helper()
	w := newWorld(t, 512, Budget{})
	w.core.SetSettings(Settings{AgeTicks: 4})
	require.True(t, w.grant(0, pages))
	return w
}

// ages ticks once and returns how many pages are surplus.
func (w *world) ages() (pages uint32) {
	w.core.Tick()
	pages = w.back(w.core.Surplus(false))
	w.core.NoteMinFree() // as every turn ends
	w.check()
	return pages
}

// A loop shorter than the window keeps the memory of its peak, however little it uses at the ticks; the rest
// leaves once.
func TestALoopKeepsWhatItNeeds(t *testing.T) {
	t.Parallel()
	w := aging(t, 40)
	var gone []uint32
	for tick := range 12 {
		if tick%3 == 0 { // the peak of the loop
			var all []*buffer
			for range 10 {
				all = append(all, w.alloc(256*kib, 0, nil))
				w.core.NoteMinFree()
			}
			for _, b := range all {
				w.free(b)
			}
		}
		gone = append(gone, w.ages())
	}
	assert.Equal(t, []uint32{0, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0}, gone)
	w.finish(true)
}

// A loop longer than the window releases memory that it does not need within one.
func TestALongLoopReturnsWhatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	w := aging(t, 40)
	w.free(w.alloc(40*256*kib, 0, nil))
	var gone uint32
	for range 9 {
		gone += w.ages()
	}
	assert.EqualValues(t, 40, gone)
	w.finish(true)
}

// One page that was free for a whole window is surplus, one unit less is not.
func TestAPageIsSurplus(t *testing.T) {
	t.Parallel()
	for used, surplus := range map[int64]uint32{0: 1, 512: 0} {
		w := aging(t, 1)
		require.True(t, w.grant(3, 1))
		w.alloc(256*kib, 0, nil)
		if used > 0 {
			w.aligned(used, 512, nil)
		}
		w.core.NoteMinFree()
		var gone uint32
		for range 4 {
			gone += w.ages()
		}
		assert.Equal(t, surplus, gone, "%d bytes of the page are in use", used)
		w.finish(true)
	}
}

// Random requests, frees and ticks: a window's surplus is the least that was free at the end of its turns, in
// whole pages.
func TestSurplusFollowsTheReference(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 512, Budget{})
		w.core.SetSettings(Settings{AgeTicks: 3})
		require.True(t, w.grant(0, 60))
		minFree, ticks := ^uint64(0), 0
		turnEnds := func() {
			w.core.NoteMinFree()
			minFree = min(minFree, w.core.heap.FreeUnits())
			w.check()
		}
		t.Repeat(map[string]func(*rapid.T){
			"alloc": func(t *rapid.T) {
				w.alloc(rapid.Int64Range(1, 3*mib).Draw(t, "bytes"), 0, func(uint32) bool { return false })
				turnEnds()
			},
			"free": func(t *rapid.T) { w.freeSome(t, rapid.IntRange(1, 8).Draw(t, "count")) }, // no turn
			"grant": func(t *rapid.T) {
				w.lend(rapid.Uint32Range(0, 100).Draw(t, "from"), rapid.Uint32Range(1, 3).Draw(t, "pages"))
				turnEnds()
			},
			"tick": func(t *rapid.T) {
				w.core.Tick()
				whole, _ := w.freePages()
				gone := w.back(w.core.Surplus(false))
				if ticks++; ticks%3 > 0 || minFree == ^uint64(0) {
					require.Zero(t, gone)
				} else {
					require.Equal(t, min(whole, uint32(minFree/512)), gone)
				}
				if ticks%3 == 0 {
					minFree = ^uint64(0)
				}
				turnEnds()
			},
		})
		w.finish(true)
	})
}

// A core at work returns memory that magazines kept for a window of ticks and nobody used: spans of several
// classes, and blocks of lengths that recurred.
func TestAnActiveCoreReturnsUnusedMagazines(t *testing.T) {
	t.Parallel()
	w := aging(t, 40)
	w.hoard(4, 512*kib, 0, w.always)
	for range 4 * magazine.SlotCount { // some of the spans are full
		w.alloc(512, 0, w.always)
	}
	w.alloc(64*kib, 0, w.always)
	for len(w.live) > 0 {
		w.free(w.live[0])
	}
	require.Positive(t, w.exact(512*kib).FreeSlots())
	require.GreaterOrEqual(t, w.core.spans.units, 4*uint64(sizeclass.SpanUnits(0)))
	for range 20 { // five windows
		b := w.alloc(256*kib, 0, w.always)
		w.core.NoteMinFree()
		w.free(b)
		w.ages()
	}
	assert.Zero(t, w.core.spans.units)
	assert.Zero(t, w.exact(512*kib).FreeSlots())
	assert.LessOrEqual(t, w.heldPages, uint32(2), "the working set")
	w.finish(true)
}

// A loop shorter than the window keeps its magazines: later rounds need no turn and no page.
func TestALoopKeepsItsMagazines(t *testing.T) {
	t.Parallel()
	w := aging(t, 40)
	w.repeat(heatKept+worthHits+4, 512*kib, 0, w.always)
	round := func() {
		var all []*buffer
		for range 2 * magazine.SlotCount {
			all = append(all, w.alloc(512, 0, w.always))
		}
		for _, b := range all {
			w.free(b)
		}
		w.free(w.alloc(512*kib, 0, w.always))
	}
	round()
	spanUnits, large := w.core.spans.units, w.exact(512*kib)
	for tick := range 40 {
		w.ages()
		if tick%3 == 0 {
			round()
		}
		assert.Equal(t, spanUnits, w.core.spans.units)
		assert.True(t, large.Open)
	}
	w.finish(true)
}
