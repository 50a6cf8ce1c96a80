package core

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// With exact counting, the peaks of a stream and of the gauge are the highest sums that ever lived.
func TestExactPeaks(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 512, Budget{})
		var gauge Gauge
		w.core.usage.gauge = &gauge
		source := func(need uint32) bool { return w.lend(0, need) }
		size := rapid.SampledFrom([]int64{1, 600, 5 * kib, 64 * kib, 70 * kib, 2 * mib})
		before := w.alloc(5*kib, 0, source) // its span counts until it is freed
		w.core.SetSettings(Settings{Exact: true})
		if before != nil {
			w.free(before)
		}
		w.core.Tick()
		w.core.ResetPeak()
		gauge.ResetPeak()
		var peak int64
		t.Repeat(map[string]func(*rapid.T){
			"": func(*rapid.T) {
				require.Equal(t, peak, w.core.usage.givenPeak.Peak()<<sizeclass.UnitShift)
				require.Equal(t, peak, gauge.PeakBytes())
				w.check()
			},
			"alloc": func(t *rapid.T) {
				w.alloc(size.Draw(t, "bytes"), 0, source)
				peak = max(peak, int64(w.liveUnits)<<sizeclass.UnitShift)
			},
			"aligned": func(t *rapid.T) {
				w.aligned(size.Draw(t, "bytes"), int64(512)<<rapid.IntRange(0, 12).Draw(t, "align"), source)
				peak = max(peak, int64(w.liveUnits)<<sizeclass.UnitShift)
			},
			"hold": func(t *rapid.T) { // its parts are given with the answer
				if w.parts == nil {
					w.hold(size.Draw(t, "bytes"), rapid.IntRange(1, 9).Draw(t, "most"), 0)
				}
			},
			"answer": func(t *rapid.T) {
				w.answer(rapid.Bool().Draw(t, "granted"))
				peak = max(peak, int64(w.liveUnits)<<sizeclass.UnitShift)
			},
			"free": func(t *rapid.T) { w.freeSome(t, 1) },
			"tick": func(*rapid.T) { w.core.Tick() },
		})
		w.core.SetSettings(Settings{})
		assert.Zero(t, gauge.live.Load(), "who does not count is no part of the sum")
		w.finish(false)
	})
}

// A scope has peaks of its own. Once it has ended the core keeps nothing of it: it says as much of it as of a scope that never
// began.
func TestAnEndedScopeIsForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	all, _ := newLines(t, w, 2)
	w.core.BeginScope(7)
	b := w.alloc(2*mib, 0, w.always)
	require.NoError(t, b.slot.Record(b.word, 0))
	w.free(b)
	w.core.Drain()
	inside := w.core.EndScope(7)
	assert.GreaterOrEqual(t, inside.LiveBytes, int64(2*mib))
	assert.GreaterOrEqual(t, inside.PendingBytes, int64(2*mib))
	assert.GreaterOrEqual(t, inside.HeldBytes, int64(2*mib))
	number := all[0].Begin()
	all[0].Took(number)
	all[0].Pass(number)
	w.core.Drain()
	w.back(w.core.Release(worldUnits, false))
	w.core.ResetPeak()
	assert.Zero(t, w.core.Inside(7))
	assert.Equal(t, w.core.Inside(8), w.core.Inside(7))
}

// The peak of a scope has at its end the memory that callers have then, also blocks of magazines, which no turn has seen.
func TestTheEndOfAScopeSeesWhatMagazinesGave(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{512, 256 * kib} {
		w := newWorld(t, 4096, Budget{})
		w.hoard(1, bytes, 0, w.always)
		for _, b := range slices.Clone(w.live) {
			w.free(b)
		}
		w.core.Drain()
		turns := w.core.misses.Turns
		w.core.BeginScope(7)
		require.NotNil(t, w.alloc(bytes, 0, nil))
		require.Equal(t, turns, w.core.misses.Turns)
		assert.Equal(t, int64(blockUnits(bytes))<<sizeclass.UnitShift, w.core.EndScope(7).LiveBytes)
	}
}

// A search that is put back, whether it found a block or not, is in no peak, and a later block is.
func TestAProbeHidesNoLaterPeak(t *testing.T) {
	t.Parallel()
	for _, finds := range []bool{true, false} {
		w := newWorld(t, 4096, Budget{})
		require.True(t, w.lend(0, 8))
		w.core.BeginScope(7)
		bytes := int64(4 * mib)
		if !finds {
			bytes = 64 * mib
		}
		require.Equal(t, finds, w.core.Probe(func() *magazine.Slot { s, _ := w.core.Alloc(bytes, 0); return s }))
		require.Zero(t, w.core.Inside(7).LiveBytes)
		w.free(w.alloc(3*mib, 0, w.always))
		w.core.Drain()
		assert.EqualValues(t, 3*mib, w.core.EndScope(7).LiveBytes)
	}
}

// The peaks of a scope begin at what there is at its begin: earlier ones are no part of it, also while other scopes are open.
func TestEarlierPeaksAreNoPartOfAScope(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	all, _ := newLines(t, w, 2)
	w.core.BeginScope(1)
	use := func(bytes int64) (passed func()) {
		b := w.alloc(bytes, 0, w.always)
		require.NoError(t, b.slot.Record(b.word, 0))
		w.free(b)
		w.core.Drain()
		require.Equal(t, bytes, w.core.PendingBytes())
		return func() {
			number := all[0].Begin()
			all[0].Took(number)
			all[0].Pass(number)
			w.core.Drain()
			w.back(w.core.Release(worldUnits, false))
		}
	}
	use(4 * mib)()
	w.core.BeginScope(2)
	assert.Zero(t, w.core.Inside(2))
	use(2 * mib)()
	passed := use(mib)
	w.core.BeginScope(3)
	assert.Equal(t, Peaks{PendingBytes: mib, HeldBytes: mib}, w.core.EndScope(3), "what is pending at the begin counts")
	passed()
	assert.Equal(t, Peaks{2 * mib, 2 * mib, 2 * mib}, w.core.EndScope(2))
	assert.Equal(t, Peaks{4 * mib, 4 * mib, 4 * mib}, w.core.EndScope(1))
}

// After exact counting ends, the earlier magazines serve again.
func TestMagazinesServeAgainAfterCountingExactly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	first := w.alloc(5*kib, 0, w.always)
	w.core.SetSettings(Settings{Exact: true})
	slot, _ := w.cache.Take(5 * kib)
	assert.Nil(t, slot, "every allocation takes a turn")
	w.core.SetSettings(Settings{})
	turns := w.core.misses.Turns
	second := w.alloc(5*kib, 0, w.always)
	assert.Equal(t, first.slot.Magazine(), second.slot.Magazine())
	assert.Equal(t, turns, w.core.misses.Turns, "it takes no turn")
	w.check()
	w.finish(false)
}

// In plain segments an address follows its segment, and alignment holds for the address, not for the page's
// number.
func TestPlacesSayWhereBlocksAre(t *testing.T) {
	t.Parallel()
	const pageBytes = int64(64 * kib)
	places := make([]cudadrv.Ptr, 40)
	segment := func(first, pages int, at cudadrv.Ptr) Run {
		for i := range pages {
			places[first+i] = at + cudadrv.Ptr(i)*cudadrv.Ptr(pageBytes)
		}
		return Run{First: uint32(first), Pages: uint32(pages)}
	}
	var cache magazine.Cache
	w := &world{}
	c := New(Config{PageBytes: pageBytes, Places: places}, &cache, w)
	c.Grant(segment(1, 8, 0x7f0000010000))
	c.Grant(segment(11, 8, 0x7e0000030000))
	inside := func(p cudadrv.Ptr, bytes int64) bool {
		end := p + cudadrv.Ptr(bytes)
		return p >= 0x7f0000010000 && end <= 0x7f0000010000+8<<16 || p >= 0x7e0000030000 && end <= 0x7e0000030000+8<<16
	}
	for _, align := range []int64{512, pageBytes, 2 * pageBytes, 4 * pageBytes} {
		var slots []*magazine.Slot
		for {
			s, _ := c.AllocAligned(100*kib, align, false)
			if s == nil {
				break
			}
			assert.Zero(t, int64(s.Address())%align, "%#x to %d", s.Address(), align)
			assert.True(t, inside(s.Address(), 100*kib))
			slots = append(slots, s)
		}
		assert.GreaterOrEqual(t, len(slots), 3, "aligned to %d", align)
		for _, s := range slots {
			require.NoError(t, s.Free(s.Word()))
		}
	}
	s, _ := c.Alloc(700, 0)
	assert.True(t, inside(s.Address(), 700))
	require.NoError(t, c.Check())
}

// While requests wait no magazine serves, also where exact counting begins or ends then; a free wakes the owner.
func TestNoMagazineServesWhileRequestsWait(t *testing.T) {
	t.Parallel()
	for _, exact := range [][]bool{{false}, {true, false}, {false, true, false}, {true}} {
		for _, wantedAt := range []int{0, 1, 2} {
			w := newWorld(t, 512, Budget{})
			w.free(w.alloc(5*kib, 0, w.always))
			live := w.alloc(5*kib, 0, w.always)
			for i := range max(wantedAt+1, len(exact)) {
				if i == wantedAt {
					w.core.SetWanted(true)
				}
				if i < len(exact) {
					w.core.SetSettings(Settings{Exact: exact[i]})
				}
			}
			slot, _ := w.cache.Take(5 * kib)
			assert.Nil(t, slot, "%v, wanted at %d", exact, wantedAt)
			assert.Empty(t, w.core.spans.shelved)
			wakes := w.wakes
			w.free(live)
			w.core.DrainAll()
			assert.True(t, w.wakes > wakes || w.core.TakeCame(), "%v, wanted at %d", exact, wantedAt)
			w.core.SetWanted(false)
			w.finish(true)
		}
	}
}

// Nor does the magazine from which a batch was served then.
func TestABatchLeavesNoMagazineWhileRequestsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	require.True(t, w.lend(0, 16))
	w.core.SetWanted(true)
	require.Equal(t, 3, w.batch(5*kib, 3, 0, false))
	slot, _ := w.cache.Take(5 * kib)
	assert.Nil(t, slot)
	w.core.SetWanted(false)
	w.finish(true)
}

// Alignment holds for addresses, wherever the arena begins.
func TestAlignmentHoldsInAnyArena(t *testing.T) {
	t.Parallel()
	const pageBytes = int64(256 * kib)
	for first := range cudadrv.Ptr(9) {
		var cache magazine.Cache
		c := New(Config{Base: worldBase + first*sizeclass.UnitBytes, PageBytes: pageBytes}, &cache, &world{})
		c.Grant(Run{First: 0, Pages: 8})
		for align := int64(sizeclass.UnitBytes); align <= 4*pageBytes; align *= 2 {
			s, _ := c.AllocAligned(3*sizeclass.UnitBytes, align, false)
			require.NotNil(t, s)
			require.Zero(t, int64(s.Address())%align, "arena at %d, aligned to %d", first, align)
			c.PutBack(s)
		}
		require.NoError(t, c.Check())
	}
}
