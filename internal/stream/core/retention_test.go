package core

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// always lends every requested page.
func (w *world) always(need uint32) bool { return w.lend(0, need) }

// exact returns the magazine of a length.
func (w *world) exact(bytes int64) *magazine.Exact {
	return w.core.owner.Exacts.Of(uint32(sizeclass.Units(bytes)))
}

// TestLengthThatComesBackIsKept counts how often a length must recur before its magazine opens.
func TestLengthThatComesBackIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	const bytes = 256 * kib
	w.repeat(heatKept+1, bytes, 0, w.always)
	assert.False(t, w.exact(bytes).Open)
	w.repeat(1, bytes, 0, w.always)
	assert.True(t, w.exact(bytes).Open)
	own, byPool := w.own, w.byPool
	w.repeat(100, bytes, 0, w.always)
	assert.Equal(t, own, w.own, "a kept block is served by the magazine alone")
	assert.Equal(t, byPool, w.byPool)
	w.check()
	w.checkKept()
	w.finish(true)
}

// Of the magazines of large blocks all are closed that were not used, wherever they are in the list.
func TestUnusedMagazinesAreClosed(t *testing.T) {
	t.Parallel()
	lengths := []int64{256 * kib, mib, 3 * mib} // of three buckets
	for used := range len(lengths) + 1 {
		w := newWorld(t, 512, Budget{})
		require.True(t, w.lend(0, 40)) // a search for room closes some, too
		for _, bytes := range lengths {
			w.repeat(heatKept+4, bytes, 0, w.always)
		}
		w.core.retention.evictUnused()
		if used < len(lengths) {
			w.repeat(1, lengths[used], 0, w.always)
		}
		w.core.retention.evictUnused()
		for i, bytes := range lengths {
			assert.Equal(t, i == used, w.exact(bytes).Open, "length %d, where %d is used", i, used)
		}
		w.check()
		w.finish(true)
	}
}

// A length comes back, too, by blocks that have a flag, as in a magazine that was closed.
func TestALengthOfDetachedBlocksIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	const bytes = 256 * kib
	for range heatKept + 2 {
		b := w.alloc(bytes, 0, w.always)
		require.NoError(t, b.slot.Announce(b.word, magazine.Detached))
		w.free(b)
	}
	assert.True(t, w.exact(bytes).Open)
	w.finish(true)
}

// TestLengthThatDoesNotComeBackIsNotKept frees each buffer only after the next one was allocated.
func TestLengthThatDoesNotComeBackIsNotKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	for i := range int64(50) {
		w.alloc(256*kib+i%3*sizeclass.UnitBytes, 0, w.always)
	}
	w.check()
	assert.Zero(t, w.core.retention.units)
	w.finish(false)
}

// TestEarlierSlotsDoNotStayInAReopenedMagazine closes a magazine while slots are in use and opens it again.
// The budget does not count their blocks, so those must not stay in it.
func TestEarlierSlotsDoNotStayInAReopenedMagazine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	const bytes = 256 * kib
	w.hoard(10, bytes, 0, w.always)
	earlier := append([]*buffer(nil), w.live...)
	w.free(w.live[9])
	m := w.exact(bytes)
	require.Equal(t, 10, m.Attached())
	w.back(w.core.Release(^uint32(0), false))
	require.False(t, m.Open)
	require.Zero(t, w.core.retention.units)

	w.hoard(1, bytes, 0, w.always)
	require.True(t, m.Open)
	require.Equal(t, 1, m.Attached())
	require.Equal(t, 10, m.LiveSlots())
	for _, b := range earlier[:9] {
		w.free(b)
	}
	w.check()
	assert.Zero(t, m.FreeSlots(), "a block beyond the budget lies in the magazine")
	w.checkKept()
	assert.Equal(t, 1, m.FreeSlots())
	w.finish(false)
}

// TestMagazineWithAllSlotsInUseStaysClosed fills a magazine, lets another length take over the bucket, and
// asks for the first length again. Opened without a free slot the magazine would be in no list, and would
// stay open forever.
func TestMagazineWithAllSlotsInUseStaysClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	bytes, other := collidingBytes()
	w.hoard(magazine.SlotCount, bytes, 0, w.always)
	m := w.exact(bytes)
	require.Equal(t, magazine.SlotCount, m.Attached())
	for !w.exact(other).Open {
		w.repeat(1, other, 0, w.always)
	}
	require.False(t, m.Open)
	for range 4 * heatKept { // the other length cools, then this one heats up
		w.repeat(1, bytes, 0, w.always)
		require.NoError(t, w.core.Check())
	}
	assert.False(t, m.Open)
	w.check()
	w.finish(true)
}

// TestMagazinesHoldNoMoreThanTheirShare repeats two lengths: the blocks that could be cached if all their
// buffers were freed stay within the minimum.
func TestMagazinesHoldNoMoreThanTheirShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	w.hoard(6, mib, 0, w.always)
	require.EqualValues(t, 6*mib>>sizeclass.UnitShift, w.core.retention.units)
	w.hoard(2, 5*mib, 0, w.always)
	assert.EqualValues(t, 16*mib>>sizeclass.UnitShift, w.core.retention.units, "both lengths fit")
	require.True(t, w.exact(mib).Open)
	w.hoard(1, 5*mib, 0, w.always)
	assert.EqualValues(t, 15*mib>>sizeclass.UnitShift, w.core.retention.units, "the oldest made room")
	require.False(t, w.exact(mib).Open)
	w.hoard(1, 5*mib, 0, w.always)
	assert.EqualValues(t, 15*mib>>sizeclass.UnitShift, w.core.retention.units, "a length does not push itself out")
	w.check()
	w.checkKept()
	w.finish(false)
}

// TestOneBlockMayBeLongerThanTheShare keeps a single block of a length beyond the limit, unless the
// stream has a budget of its own.
func TestOneBlockMayBeLongerThanTheShare(t *testing.T) {
	t.Parallel()
	const bytes = 20 * mib
	w := newWorld(t, 512, Budget{})
	w.repeat(2*heatKept, bytes, 0, w.always)
	assert.EqualValues(t, bytes>>sizeclass.UnitShift, w.core.retention.units)
	w.finish(false)

	w = newWorld(t, 512, Budget{CacheBytes: 30 * mib})
	w.repeat(2*heatKept, bytes, 0, w.always)
	assert.Zero(t, w.core.retention.units)
	w.repeat(2*heatKept, 15*mib, 0, w.always)
	assert.EqualValues(t, 15*mib>>sizeclass.UnitShift, w.core.retention.units, "half of the budget")
	w.finish(false)
}

// TestLengthStaysColdAfterAWorthlessMagazine closes a magazine before it has served enough requests.
func TestLengthStaysColdAfterAWorthlessMagazine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	const bytes = 256 * kib
	w.repeat(heatKept+2, bytes, 0, w.always)
	require.True(t, w.exact(bytes).Open)
	w.back(w.core.Release(^uint32(0), false))
	w.repeat(heatKept-heatCold, bytes, 0, w.always)
	assert.False(t, w.exact(bytes).Open)
	w.repeat(2, bytes, 0, w.always)
	assert.True(t, w.exact(bytes).Open, "it may try again")
	w.finish(false)
}

// TestWorthIsCountedSinceTheMagazineOpened opens a magazine that proves its worth, and then again without:
// earlier hits do not count.
func TestWorthIsCountedSinceTheMagazineOpened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	const bytes = 256 * kib
	w.repeat(heatKept+1+worthHits, bytes, 0, w.always)
	for range 2 {
		require.True(t, w.exact(bytes).Open)
		w.back(w.core.Release(^uint32(0), false))
		w.repeat(heatKept+1, bytes, 0, w.always)
	}
	assert.False(t, w.exact(bytes).Open)
	w.finish(false)
}

// A batch takes the free blocks of the magazine of its length first, which stays, and none of another length in the same bucket.
func TestABatchTakesFromTheMagazineOfItsLength(t *testing.T) {
	t.Parallel()
	const bytes = 2 * mib
	units := blockUnits(bytes)
	for _, other := range []bool{false, true} {
		w := newWorld(t, 4096, Budget{})
		w.repeat(heatKept+4, bytes, 0, w.always)
		kept := w.exact(bytes)
		require.True(t, kept.Open)
		require.Equal(t, 1, kept.FreeSlots())
		wanted := units
		for other && (wanted == units || magazine.BucketOf(uint64(wanted)) != magazine.BucketOf(uint64(units))) {
			wanted--
		}
		require.Greater(t, wanted, uint32(sizeclass.MaxUnits))
		got := w.core.AllocMany(wanted, 1, 0, func(s *magazine.Slot) {
			assert.Equal(t, wanted, s.Magazine().UnitsOf(s))
			assert.Equal(t, !other, s.Magazine() == &kept.Magazine)
		})
		assert.Equal(t, 1, got)
	}
}

// A batch is as long as there is room for, whichever caller asks, where the magazine of its length has one of the blocks.
func TestABatchIsAsLongAsThereIsRoom(t *testing.T) {
	t.Parallel()
	for most := 1; most <= 4; most++ {
		for hint := range 6 {
			w := newWorld(t, 4096, Budget{})
			w.repeat(heatKept+4, 2*mib, 0, w.always)
			require.Equal(t, 1, w.exact(2*mib).FreeSlots())
			require.True(t, w.lend(8, 4))
			assert.Equal(t, most, w.core.AllocMany(blockUnits(2*mib), most, hint, func(*magazine.Slot) {}), "caller %d", hint)
		}
	}
}

// Another length that misses in the bucket of an open magazine does not change since when its worth is counted.
func TestWorthOutlastsAnotherLength(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 512, Budget{})
	a, b := collidingBytes()
	w.repeat(heatKept+1+worthHits, a, 0, w.always)
	for range 2 {
		require.True(t, w.exact(a).Open)
		w.back(w.core.Release(^uint32(0), false))
		w.repeat(heatKept+1, a, 0, w.always)
	}
	require.False(t, w.exact(a).Open)
	w.repeat(heatKept-heatCold+2, a, 0, w.always)
	require.True(t, w.exact(a).Open)
	hold := w.alloc(a, 0, w.always) // later requests of the length miss
	for w.core.retention.of(w.exact(a).Bucket()).units == blockUnits(a) {
		w.alloc(b, 0, w.always)
	}
	w.alloc(a, 0, w.always)
	for w.core.retention.of(w.exact(a).Bucket()).units != blockUnits(a) {
		w.alloc(a, 0, w.always)
	}
	require.True(t, w.exact(a).Open)
	w.free(hold)
	w.back(w.core.Release(^uint32(0), false))
	assert.EqualValues(t, heatCold, w.core.retention.of(w.exact(a).Bucket()).heat, "it has served little since it opened")
	w.finish(true)
}

// A miss that shows no recurrence cools a track by one, down to nothing; a track that is colder stays as cold for its length. Only a
// track without heat takes another length.
func TestAMissCoolsATrack(t *testing.T) {
	t.Parallel()
	for heat := int8(-3); heat <= 3; heat++ {
		cooler := heat
		if heat > 0 {
			cooler--
		}
		same := track{units: 300, heat: heat}
		same.pass(300)
		assert.Equal(t, track{units: 300, heat: cooler}, same)
		want := track{units: 400}
		if heat > 0 {
			want = track{units: 300, heat: cooler}
		}
		other := track{units: 300, heat: heat}
		other.pass(400)
		assert.Equal(t, want, other)
	}
}

// Memory that magazines of large blocks keep serves an aligned request, as it serves any other, before the pool is asked.
func TestKeptMemoryServesAlignedRequests(t *testing.T) {
	t.Parallel()
	for _, align := range []int64{sizeclass.UnitBytes, 64 * kib, 2 * mib} {
		w := newWorld(t, 4096, Budget{})
		for _, bytes := range []int64{2 * mib, 2*mib - 64*kib} {
			w.repeat(heatKept+4, bytes, 0, w.always)
			require.True(t, w.exact(bytes).Open)
		}
		w.core.Drain()
		held := w.core.HeldBytes()
		s, _ := w.core.AllocAligned(2*mib, align, false)
		require.NotNil(t, s, "aligned to %d bytes", align)
		assert.Zero(t, int64(s.Address())%align)
		assert.Equal(t, held, w.core.HeldBytes())
	}
}
