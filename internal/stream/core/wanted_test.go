package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/memorymap"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// A failed trial restores the state and reports nothing: otherwise two waiting batches would retry each other
// forever. Memory that is freed during the trial is reported.
func TestATrialInVainTellsNobody(t *testing.T) {
	t.Parallel()
	for name, frees := range map[string]bool{"alone": false, "beside a free": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 4096, Budget{})
			require.True(t, w.lend(0, 4))
			other, another := w.alloc(4096, 0, w.always), w.alloc(4096, 0, w.always)
			w.core.SetWanted(true)
			w.core.DrainAll()
			w.core.TakeCame()
			for n := range 2 {
				meanwhile := frees && n == 0
				var got []*magazine.Slot
				found := w.core.Trial(func() bool {
					for range 300 { // more than a span has
						slot, _ := w.core.Alloc(512, 0)
						require.NotNil(t, slot)
						got = append(got, slot)
					}
					if meanwhile {
						w.free(other)
						w.free(another) // the last of its span
					}
					return false
				}, func() {
					for _, slot := range got {
						w.core.PutBack(slot)
					}
				})
				require.False(t, found)
				came := w.core.TakeCame()
				w.core.DrainAll()
				came = w.core.TakeCame() || came
				assert.Equal(t, meanwhile, came)
			}
		})
	}
}

// A failed search retires spans whose last buffer was freed. Another search that this free wakes finds
// nothing, so the retirement is reported.
func TestASearchInVainTellsWhatItRetired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	require.True(t, w.lend(0, 4))
	other := w.alloc(4096, 0, w.always)
	w.core.SetWanted(true)
	w.core.DrainAll()
	w.core.TakeCame()
	w.free(other)
	slot, need := w.core.Alloc(1<<30, 0)
	require.Nil(t, slot)
	require.Positive(t, need)
	w.core.DrainAll()
	assert.True(t, w.core.TakeCame())
	assert.False(t, w.core.TakeCame())
}

// A trial reports whether it found everything, and undoes nothing then.
func TestATrialThatFinds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	for _, found := range []bool{true, false} {
		undone := false
		assert.Equal(t, found, w.core.Trial(func() bool { return found }, func() { undone = true }))
		assert.Equal(t, !found, undone)
	}
}

// While requests wait, a block whose last use has passed is reported, although nobody frees anything then: of a class, and a large
// one. Nothing is reported while none waits.
func TestABlockWhoseUsesHavePassedIsReported(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{4000, 300 * kib} {
		for _, wanted := range []bool{false, true} {
			w := newWorld(t, 512, Budget{})
			lines, _ := newLines(t, w, 2)
			b := w.alloc(bytes, 0, w.always)
			require.NoError(t, b.slot.Record(b.word, 0))
			w.core.SetWanted(wanted)
			w.free(b)
			w.core.DrainAll()
			require.Positive(t, w.core.PendingBytes())
			w.core.TakeCame()
			w.core.DrainAll()
			assert.False(t, w.core.TakeCame(), "nothing has passed")
			lines[0].Took(lines[0].Begin())
			lines[0].Pass(1)
			w.core.DrainAll()
			require.Zero(t, w.core.PendingBytes())
			assert.Equal(t, wanted, w.core.TakeCame(), "%d bytes", bytes)
			w.finish(false)
		}
	}
}

// A block that no caller has seen goes back without a wake of the owner, while requests wait: it was free before.
func TestWhatIsPutBackWakesNobodyWhileRequestsWait(t *testing.T) {
	t.Parallel()
	for _, bytes := range []int64{4000, 300 * kib} {
		w := newWorld(t, 4096, Budget{})
		require.True(t, w.lend(0, 4))
		w.core.SetWanted(true)
		slot, _ := w.core.Alloc(bytes, 0)
		require.NotNil(t, slot)
		w.core.DrainAll()
		w.core.TakeCame()
		wakes := w.wakes
		w.core.PutBack(slot)
		w.core.Drain()
		assert.Equal(t, wakes, w.wakes, "%d bytes", bytes)
		assert.False(t, w.core.TakeCame(), "%d bytes", bytes)
	}
}

// A free into a magazine without free slots is reported while requests wait.
func TestAFreeIntoAFullMagazineIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	var all []*buffer
	for range sizeclass.SpanBlocks(sizeclass.Count - 1) {
		all = append(all, w.alloc(64*kib, 0, w.always))
	}
	w.core.SetWanted(true)
	w.core.DrainAll()
	w.core.TakeCame()
	for i, b := range all {
		w.free(b)
		w.core.DrainAll()
		assert.Equal(t, i == 0 || i == len(all)-1, w.core.TakeCame(), "the first, and the last, which frees the span")
	}
}

// While requests wait, whole free pages that a grant has left are reported, and so is a free that the next search collects. Nothing is
// while none waits.
func TestWhatASpareGrantAndASearchReport(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{false, true} {
		w := newWorld(t, 4096, Budget{})
		c := w.core
		c.SetWanted(wanted)
		c.NoteSpare()
		assert.False(t, c.TakeCame(), "there is nothing")
		require.True(t, w.lend(0, 1))
		small := w.alloc(mib, 0, w.always)
		c.NoteSpare()
		assert.False(t, c.TakeCame(), "a part of a page")
		require.True(t, w.lend(3, 1))
		c.NoteSpare()
		assert.Equal(t, wanted, c.TakeCame(), "a page")
		w.free(small)
		next := w.serve(mib, 0, w.always)
		assert.Equal(t, wanted, c.TakeCame(), "the search has collected a block")
		w.free(next)
		w.finish(false)
	}
}

// While requests wait, no block is where callers may take it without the owner, also where nothing was freed since the last look.
func TestNothingIsTakenUnseenWhileRequestsWait(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	w.swell()
	w.core.SetWanted(true)
	w.core.DrainAll()
	w.core.TakeCame()
	require.NotNil(t, w.alloc(kib, 0, w.always))
	for range 2 * w.core.misses.stability.at {
		w.core.TakeCame()
		w.core.Served(false)
	}
	slot, _ := w.cache.Take(kib)
	assert.Nil(t, slot)
	w.free(w.alloc(256*kib, 0, w.always))
	slot, _ = w.cache.TakeBack(256 * kib)
	assert.Nil(t, slot)
}

// A scope begins with the memory that lives then.
func TestAScopeBeginsWithWhatLives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	all := []*buffer{w.alloc(mib, 0, w.always), w.alloc(3*mib, 0, w.always)}
	w.core.BeginScope(7)
	for _, b := range all {
		w.free(b)
	}
	assert.EqualValues(t, 4*mib, w.core.EndScope(7).LiveBytes)
	w.finish(false)
}

// The map has a range for each state of memory: free, live, pending, cached in a magazine, and the remainder of a span. They follow each
// other from the first page on, each block is where its address says, and the sums equal the statistics.
func TestTheMapHasEachState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	newLines(t, w, 2)
	require.True(t, w.lend(3, 8))
	live, pending := w.alloc(3*mib, 0, w.always), w.alloc(5*mib, 0, w.always)
	small, cached := w.alloc(kib, 0, w.always), w.alloc(kib, 0, w.always)
	class := 0
	for sizeclass.SpanUnits(class)%sizeclass.BlockUnits(class) == 0 {
		class++
	}
	odd := w.alloc(int64(sizeclass.BlockUnits(class))<<sizeclass.UnitShift, 0, w.always) // its span has a remainder
	require.NoError(t, pending.slot.Record(pending.word, 0))
	require.NoError(t, pending.slot.Free(pending.word))
	w.free(cached)
	n := w.core.Snapshot()
	states := map[int64]memorymap.State{} // by start
	bytes := map[memorymap.State]int64{}
	next, buffers := 3*w.core.pageBytes(), 0
	w.core.Map(1, func(r memorymap.Range) {
		assert.Equal(t, next, r.Start)
		next += r.Bytes
		states[r.Start] = r.State
		bytes[r.State] += r.Bytes
		buffers += r.Buffers
		assert.Equal(t, r.State == memorymap.Live, r.Buffers == 1, r.State)
	})
	assert.Equal(t, 11*w.core.pageBytes(), next)
	assert.Equal(t, 3, buffers)
	for b, state := range map[*buffer]memorymap.State{
		live: memorymap.Live, small: memorymap.Live, odd: memorymap.Live, pending: memorymap.Pending, cached: memorymap.CachedBlock,
	} {
		assert.Equal(t, state, states[int64(b.slot.Address()-worldBase)])
	}
	assert.Equal(t, n.LiveBytes, bytes[memorymap.Live])
	assert.EqualValues(t, 5*mib, n.PendingBytes)
	assert.Equal(t, n.PendingBytes, bytes[memorymap.Pending])
	assert.Equal(t, n.RangeBytes, bytes[memorymap.CachedRange])
	assert.Equal(t, n.CachedBytes, bytes[memorymap.CachedRange]+bytes[memorymap.CachedBlock])
	for _, b := range []*buffer{live, small, odd} {
		require.NoError(t, b.slot.Free(b.word))
	}
}
