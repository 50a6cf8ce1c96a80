package acceptance_test

import (
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// Counts are exact, and each allocation is counted at the one level that served it.
func TestStatsCountEveryLevel(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s, other := h.stream(), h.stream()
	n := h.addsUp()
	assert.Zero(t, n.AllocCount)
	assert.InDelta(t, 1, n.HitRate(), 0)
	assert.InDelta(t, 1, n.Efficiency(), 0)
	assert.Zero(t, n.Fragmentation())

	a := must(t, s, kib) // pages from the driver
	n = h.addsUp()
	assert.Equal(t, uint64(1), n.DriverMisses)
	assert.Zero(t, n.PoolHits)
	b := must(t, s, kib) // the magazine that came of it
	n = h.addsUp()
	assert.Equal(t, uint64(1), n.MagazineHits)
	c := must(t, s, 100*kib) // the stream's free range
	n = h.addsUp()
	assert.Equal(t, uint64(1), n.StreamHits)
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 8 * mib, Count: 1}))
	d := must(t, other, 8*mib) // from the pool
	n = h.addsUp()
	assert.Equal(t, uint64(1), n.PoolHits)
	assert.Equal(t, uint64(4), n.AllocCount)
	assert.InDelta(t, 0.5, n.HitRate(), 0)
	assert.Positive(t, n.DriverCalls)
	assert.Positive(t, n.DriverTime)

	require.Len(t, n.Streams, 2)
	assert.Equal(t, s.ID(), n.Streams[0].Stream)
	assert.Equal(t, uint64(3), n.Streams[0].LiveCount)
	assert.Equal(t, uint64(1), n.Streams[1].LiveCount)
	freeAll(t, a, b, c, d)
	n = h.addsUp()
	assert.Equal(t, uint64(4), n.FreeCount)
	assert.Zero(t, n.LiveBytes)
	assert.Equal(t, n.ReservedBytes, n.CachedBytes+n.FreeBytes)
}

// After Close the statistics are those from before it gave all memory back, whether buffers live or
// not.
func TestStatsAfterClose(t *testing.T) {
	for name, leaks := range map[string]bool{"nothing lives": false, "a buffer lives": true} {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
			s := h.stream()
			s.Exclusive()
			a, b := must(t, s, 40*mib), must(t, s, 20*mib)
			_, err := s.AllocFor(t.Context(), vram.Request{Bytes: 30 * mib, Wait: true})
			require.ErrorIs(t, err, vram.ErrWouldDeadlock)
			freeAll(t, a)
			if !leaks {
				freeAll(t, b)
			}
			before := h.Stats()
			require.Positive(t, before.PeakReservedBytes)
			require.Positive(t, before.Waits.Deadlocks)
			require.Equal(t, leaks, h.Close() != nil)
			after := h.Stats()
			assert.Equal(t, before.PeakLiveBytes, after.PeakLiveBytes)
			assert.Equal(t, before.PeakReservedBytes, after.PeakReservedBytes)
			assert.Equal(t, before.LiveBytes, after.LiveBytes)
			assert.Equal(t, []uint64{before.PoolHits, before.DriverMisses, before.AllocCount}, []uint64{after.PoolHits, after.DriverMisses, after.AllocCount})
			assert.Equal(t, before.Waits, after.Waits)
			assert.Equal(t, after.ReservedBytes, after.LiveBytes+after.CachedBytes+after.PendingBytes+after.FreeBytes+after.SetAsideBytes)
		})
	}
}

// Peaks restart at the present values.
func TestResetPeaks(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	kept := must(t, s, 2*mib)
	freeAll(t, must(t, s, 40*mib))
	h.trim()
	n := h.addsUp()
	assert.GreaterOrEqual(t, n.PeakLiveBytes, 42*mib)
	assert.GreaterOrEqual(t, n.PeakReservedBytes, 42*mib)
	h.ResetPeaks()
	n = h.addsUp()
	assert.Equal(t, n.ReservedBytes, n.PeakReservedBytes)
	assert.Equal(t, n.LiveBytes, n.PeakLiveBytes)
	assert.InDelta(t, 1, n.Efficiency(), 0.01)
	freeAll(t, kept)
}

// A peak of live bytes that the cache of a stream served alone is seen, at each level, and on each number of streams.
func TestPeaksInACacheAreSeen(t *testing.T) {
	for _, level := range []vram.StatsLevel{vram.StatsOn, vram.StatsExact} {
		for count := 1; count <= 3; count++ {
			h := openHouse(t, vram.Config{Stats: level}, sim.Config{})
			var all []*vram.Stream
			for range count {
				all = append(all, h.stream())
			}
			for _, s := range all {
				freeAll(t, must(t, s, 64*mib))
				h.ResetPeaks()
				freeAll(t, must(t, s, 64*mib))
				assert.GreaterOrEqual(t, h.Stats().PeakLiveBytes, 64*mib, "%v, %d streams", level, count)
			}
		}
	}
}

// Fragmentation is the share of the free memory outside its longest range.
func TestFragmentation(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	var live, freed []vram.Buffer
	for range 8 {
		live = append(live, must(t, s, 2*mib))
		freed = append(freed, must(t, s, 2*mib))
	}
	freeAll(t, freed...)
	n := h.addsUp()
	assert.Greater(t, n.Fragmentation(), 0.5)
	freeAll(t, live...)
	assert.Less(t, h.addsUp().Fragmentation(), 0.1)
}

// A program may open and close a stream for each step: streams are forgotten, their counts are not,
// and their memory serves the next.
func TestAStreamForEachStep(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		const steps = 50
		step := func() weak.Pointer[vram.Stream] {
			s := h.stream()
			freeAll(t, must(t, s, 5*kib), must(t, s, 5*kib), must(t, s, 30*mib))
			require.NoError(t, s.Close())
			return weak.Make(s)
		}
		first := step()
		reserved := h.Stats().ReservedBytes
		for range steps - 1 {
			step()
		}
		n := h.addsUp()
		assert.Equal(t, reserved, n.ReservedBytes, "each step used the memory of the one before")
		<-time.After(time.Second) // virtual: some ticks
		synctest.Wait()
		n = h.addsUp()
		assert.Empty(t, n.Streams, "they are forgotten")
		assert.Equal(t, uint64(3*steps), n.AllocCount, "what they did is not")
		assert.Equal(t, uint64(3*steps), n.FreeCount)
		for range 10 {
			runtime.GC()
		}
		assert.Nil(t, first.Value(), "nothing holds on to a stream that is gone")
		require.NoError(t, h.Close())
	})
}

// Budgets hold after turns and ticks, in bytes and in blocks, for streams and for the pool.
func TestBudgetsHold(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	configs := map[string]vram.Config{
		"stream bytes":  {StreamCacheBytes: 8 * mib},
		"stream blocks": {Tuning: vram.Tuning{StreamCacheBlocks: 3}},
		"pool bytes":    {PoolCacheBytes: 8 * mib, StreamCacheBytes: 2 * mib, Footprint: vram.Lean},
		"pool blocks":   {Tuning: vram.Tuning{PoolCacheBlocks: 2}, StreamCacheBytes: 2 * mib, Footprint: vram.Lean},
	}
	for name, cfg := range configs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, cfg, sim.Config{})
				s := h.stream()
				var live, freed []vram.Buffer
				for range 12 {
					live = append(live, must(t, s, 4*mib))
					freed = append(freed, must(t, s, 4*mib))
				}
				freeAll(t, freed...)
				<-time.After(time.Second) // virtual: some ticks
				synctest.Wait()
				n := h.addsUp()
				if cfg.StreamCacheBytes > 0 {
					assert.LessOrEqual(t, n.CachedBytes, cfg.StreamCacheBytes)
				}
				if cfg.Tuning.StreamCacheBlocks > 0 {
					assert.LessOrEqual(t, n.Streams[0].FreeRanges, cfg.Tuning.StreamCacheBlocks)
				}
				if cfg.PoolCacheBytes > 0 {
					assert.LessOrEqual(t, n.FreeBytes, cfg.PoolCacheBytes)
				}
				if cfg.Tuning.PoolCacheBlocks > 0 {
					assert.LessOrEqual(t, n.FreeBytes, int64(cfg.Tuning.PoolCacheBlocks)*4*mib)
				}
				for _, b := range live { // turns do it, too
					freeAll(t, b, must(t, s, 4*mib))
					if n := h.Stats(); cfg.StreamCacheBytes > 0 {
						assert.LessOrEqual(t, n.CachedBytes, cfg.StreamCacheBytes+8*mib, "the last two frees had no turn yet")
					}
				}
				<-time.After(time.Second)
				synctest.Wait()
				n = h.addsUp()
				if cfg.StreamCacheBytes > 0 {
					assert.LessOrEqual(t, n.CachedBytes, cfg.StreamCacheBytes)
				}
				require.NoError(t, h.Close())
			})
		})
	}
}

// After ResetPeaks the peak of live bytes is the live bytes of that moment: memory freed before
// does not count, wherever it is kept.
func TestPeaksOfWhatWasJustFreed(t *testing.T) {
	for name, level := range map[string]vram.StatsLevel{"sampled": vram.StatsOn, "exact": vram.StatsExact} {
		for count := 1; count <= 2; count++ {
			t.Run(fmt.Sprintf("%s on %d streams", name, count), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := openHouse(t, vram.Config{Stats: level}, sim.Config{})
					var all []*vram.Stream
					for range count {
						all = append(all, h.stream())
					}
					a, b := all[0], all[count-1]
					small := must(t, a, kib)
					freeAll(t, must(t, b, 64*mib))
					for range 8 { // a length that comes back stays in a magazine
						freeAll(t, must(t, b, 8*mib))
					}
					assert.GreaterOrEqual(t, h.Stats().PeakLiveBytes, 64*mib)
					h.ResetPeaks()
					assert.EqualValues(t, kib, h.addsUp().LiveBytes)
					assert.EqualValues(t, kib, h.Stats().PeakLiveBytes)

					more := must(t, a, 6*mib) // of memory that the pool lends
					<-time.After(time.Second) // virtual: a tick samples
					synctest.Wait()
					assert.GreaterOrEqual(t, h.Stats().PeakLiveBytes, 6*mib+kib)
					assert.Less(t, h.Stats().PeakLiveBytes, 24*mib)
					freeAll(t, small, more)
				})
			})
		}
	}
}

// Refused requests are no part of a peak of live bytes, nor of the holdings in a refusal: a single
// request, and a batch of which parts were served.
func TestWhatIsRefusedNeverLived(t *testing.T) {
	for name, level := range map[string]vram.StatsLevel{"sampled": vram.StatsOn, "exact": vram.StatsExact} {
		for count := 1; count <= 2; count++ {
			t.Run(fmt.Sprintf("%s on %d streams", name, count), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					h := openHouse(t, vram.Config{Stats: level, LimitBytes: 1024 * mib}, sim.Config{})
					var all []*vram.Stream
					for range count {
						all = append(all, h.stream())
					}
					a, b := all[0], all[count-1]
					live := []vram.Buffer{must(t, a, 600*mib), must(t, b, 400*mib)}
					keep := func(s *vram.Stream) { freeAll(t, must(t, s, 22*mib)) } // of which a batch takes a part
					for range 3 {
						keep(b)
						h.ResetPeaks()
						_, err := b.Alloc(500 * mib)
						requireRefusal(t, err, 500*mib, b.ID(), 1000*mib)
						keep(b)
						h.ResetPeaks()
						err = b.AllocBatch(make([]vram.Buffer, 2), []int64{20 * mib, 480 * mib})
						requireRefusal(t, err, 500*mib, b.ID(), 1000*mib)
						keep(a)
						h.ResetPeaks()
						_, err = a.AllocBatchAsync(t.Context(), []int64{300 * mib, 20 * mib, 180 * mib}).Await(t.Context())
						requireRefusal(t, err, 500*mib, a.ID(), 1000*mib)
						<-time.After(time.Second) // virtual: a tick samples
						synctest.Wait()
						assert.EqualValues(t, 1000*mib, h.addsUp().PeakLiveBytes)
					}
					// A batch that gets all is counted, though it got its parts before.
					dst := make([]vram.Buffer, 2)
					freeAll(t, live[1])
					require.NoError(t, b.AllocBatch(dst, []int64{20 * mib, 390 * mib}))
					assert.GreaterOrEqual(t, h.addsUp().PeakLiveBytes, 1010*mib)
					assert.LessOrEqual(t, h.Stats().PeakLiveBytes, h.Stats().PeakReservedBytes)
					freeAll(t, live[0], dst[0], dst[1])
				})
			})
		}
	}
}

func requireRefusal(t *testing.T, err error, requestedBytes int64, stream uint32, liveBytes int64) {
	t.Helper()
	var short *vram.OutOfMemoryError
	require.ErrorAs(t, err, &short)
	assert.Equal(t, requestedBytes, short.RequestedBytes)
	var sumBytes int64
	for _, s := range short.Streams {
		assert.LessOrEqual(t, s.LiveBytes, s.HeldBytes)
		sumBytes += s.LiveBytes
	}
	assert.Equal(t, liveBytes, sumBytes, "stream %d: %v", stream, err)
	for _, r := range short.Remedies() {
		if r.Kind == pool.WaitForFrees {
			assert.Equal(t, liveBytes, r.Bytes)
		}
	}
}
