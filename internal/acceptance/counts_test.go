package acceptance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams"
)

// sizeOf are the counts of blocks of up to so many bytes.
func sizeOf(all []streams.SizeStats, blockBytes int64) streams.SizeStats {
	for _, z := range all {
		if z.BlockBytes == blockBytes {
			return z
		}
	}
	return streams.SizeStats{}
}

// Slots that serve blocks of any length and magazines of one length count each buffer at its size, also when a slot serves
// another size later, and after the stream has ended.
func TestCountsBySize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 512 * mib}, sim.Config{})
		s := h.stream()
		for _, n := range []int64{3 * mib, 40 * mib, 5 * mib, 3 * mib, 40 * mib, 100 * mib} { // one slot after the other serves them
			freeAll(t, must(t, s, n))
		}
		for range 20 {
			freeAll(t, must(t, s, 700), must(t, s, 8*mib)) // both stay in magazines
		}
		live := must(t, s, 8*mib)
		n := h.addsUp()
		assert.Equal(t, streams.SizeStats{BlockBytes: 4 * mib, AllocCount: 2, FreeCount: 2}, sizeOf(n.Sizes, 4*mib))
		assert.Equal(t, streams.SizeStats{BlockBytes: 64 * mib, AllocCount: 2, FreeCount: 2}, sizeOf(n.Sizes, 64*mib))
		assert.Equal(t, streams.SizeStats{BlockBytes: 128 * mib, AllocCount: 1, FreeCount: 1}, sizeOf(n.Sizes, 128*mib))
		eight := sizeOf(n.Sizes, 8*mib)
		eight.CachedBytes = 0
		assert.Equal(t, streams.SizeStats{BlockBytes: 8 * mib, AllocCount: 22, FreeCount: 21, LiveCount: 1, LiveBytes: 8 * mib}, eight, "5 MiB, too")
		small := sizeOf(n.Sizes, kib)
		assert.Equal(t, uint64(20), small.AllocCount)
		assert.Equal(t, int64(64), small.CachedBytes/kib+2, "a span of 62 blocks")

		freeAll(t, live)
		require.NoError(t, s.Close())
		<-time.After(time.Second) // virtual: the stream is forgotten
		synctest.Wait()
		after := h.addsUp()
		require.Empty(t, after.Streams)
		assert.Equal(t, uint64(22), sizeOf(after.Sizes, 8*mib).FreeCount)
		assert.Zero(t, sizeOf(after.Sizes, 8*mib).LiveBytes)
	})
}

// Each way in which a request or a free comes to nothing is counted once, for the device and for the
// stream.
func TestCountsOfWhatCameToNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hold vram.Buffer
		retries := 0
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib, OnOutOfMemory: func(*vram.OutOfMemoryError) bool {
			retries++
			return retries == 1 && hold.Free() == nil
		}}, sim.Config{})
		s, other := h.stream(), h.stream()
		hold = must(t, s, 40*mib)
		x := must(t, s, 30*mib) // the handler frees for it
		_, err := other.Alloc(40 * mib)
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		_, err = s.Alloc(-1)
		require.ErrorIs(t, err, vram.ErrNegative)
		_, err = s.Alloc(65 * mib)
		require.ErrorIs(t, err, vram.ErrTooLarge)
		_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 1, Align: 3})
		require.Error(t, err)
		require.Error(t, s.AllocBatch(make([]vram.Buffer, 1), nil))
		require.ErrorIs(t, s.AllocBatch(make([]vram.Buffer, 2), []int64{1, -1}), vram.ErrNegative)
		_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 1, Tenant: new(vram.Tenant)})
		require.ErrorIs(t, err, vram.ErrNotOpen)
		guest := h.tenant("guest", vram.Quota{LimitBytes: mib})
		_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 2 * mib, Tenant: guest})
		require.ErrorIs(t, err, vram.ErrQuota)
		freeAll(t, x)
		require.ErrorIs(t, x.Free(), vram.ErrDoubleFree)
		require.ErrorIs(t, hold.Free(), vram.ErrBadFree)
		_, err = h.Reserve(t.Context(), 65*mib)
		require.Error(t, err)
		reserved := errors.Is(err, vram.ErrOutOfMemory)

		held := must(t, s, 60*mib)
		ctx, end := context.WithTimeout(t.Context(), time.Second) // virtual
		_, err = other.AllocFor(ctx, vram.Request{Bytes: 30 * mib, Wait: true})
		end()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		freeAll(t, held)
		synctest.Wait() // the stream counts the end of a wait in a later turn

		n := h.addsUp()
		own := pool.RequestCounts{RefusedCount: 7, RetryCount: 1, BadFreeCount: 2}
		assert.Equal(t, own, n.Streams[0].RequestCounts)
		assert.Equal(t, pool.RequestCounts{OutOfMemoryCount: 1, EndedWaitCount: 1}, n.Streams[1].RequestCounts)
		want := pool.RequestCounts{OutOfMemoryCount: 1, RefusedCount: 7, RetryCount: 1, BadFreeCount: 2, EndedWaitCount: 1}
		if reserved {
			want.OutOfMemoryCount++
		}
		assert.Equal(t, want, n.RequestCounts)
		assert.Equal(t, uint64(1), guest.Stats().QuotaRefusedCount)
		assert.Contains(t, n.String(), "refused 7, tried again 1, bad frees 2")

		require.NoError(t, s.Close())
		_, err = s.Alloc(1)
		require.ErrorIs(t, err, vram.ErrClosed)
		<-time.After(time.Second) // virtual: the stream is forgotten
		synctest.Wait()
		require.ErrorIs(t, x.Free(), vram.ErrBadFree)
		n = h.Stats()
		want.RefusedCount++
		want.BadFreeCount++
		assert.Equal(t, want, n.RequestCounts, "of streams that have ended, too")
		require.NoError(t, h.Close())
		assert.Equal(t, want, h.Stats().RequestCounts, "after Close")
	})
}

// The driver's calls are counted by function, with failures, and sum up.
func TestDriverCallsByName(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	h.fail("cuMemMap", cudadrv.Unknown)
	_, err := s.Alloc(2 * mib)
	require.Error(t, err)
	h.faults.Clear()
	freeAll(t, must(t, s, 2*mib))
	n := h.Stats()
	var calls, failures uint64
	var spent time.Duration
	for _, c := range n.Driver {
		calls += c.Calls
		failures += c.Failures
		spent += c.Time
		if c.Func == "cuMemMap" {
			assert.Equal(t, uint64(1), c.Failures)
		}
	}
	assert.Equal(t, uint64(1), failures)
	assert.Equal(t, n.DriverCalls, calls)
	assert.Equal(t, n.DriverTime, spent)
}

// The GPU's memory is the driver's, and an error leaves it 0.
func TestGPUMemory(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 8 * gib})
	m, err := h.GPUMemory()
	require.NoError(t, err)
	assert.Equal(t, vram.GPUMemory{TotalBytes: 8 * gib, FreeBytes: m.FreeBytes}, m)
	must(t, h.stream(), gib)
	after, err := h.GPUMemory()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, m.FreeBytes-after.FreeBytes, gib)
	h.fail("cuMemGetInfo", cudadrv.Unknown)
	m, err = h.GPUMemory()
	require.ErrorIs(t, err, cudadrv.Unknown)
	assert.Zero(t, m)
	_ = h.Close()
	m, err = h.GPUMemory()
	require.ErrorIs(t, err, vram.ErrClosed)
	assert.Zero(t, m)
}

// Waits are counted by how long they took, for the device and for the tenant.
func TestWaitsByDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		s, other := h.stream(), h.stream()
		guest := h.tenant("guest", vram.Quota{})
		var all time.Duration
		for _, wait := range []time.Duration{3 * time.Millisecond, 1500 * time.Millisecond, 20 * time.Second} {
			x := must(t, s, 60*mib)
			answer := waitFor(other, vram.Request{Bytes: 50 * mib, Tenant: guest})
			waits(t, answer)
			time.Sleep(wait) //nolint:forbidigo // virtual
			all += wait
			freeAll(t, x)
			freeAll(t, got(t, answer))
		}
		n := h.Stats()
		for name, d := range map[string]pool.DurationHistogram{"device": n.Waits.Durations, "tenant": n.Tenants[0].Durations} {
			assert.Equal(t, uint64(3), d.Count(), name)
			assert.Equal(t, all, d.Sum, name)
			assert.Equal(t, uint64(1), d.Counts[12], "%s: 3 ms are below 4.096 ms", name)
			assert.Equal(t, 4096*time.Microsecond, d.Bound(12))
			assert.Equal(t, uint64(1), d.Counts[25], "%s: 20 s are below 33.6 s", name)
			assert.Equal(t, 4096*time.Microsecond, d.Quantile(0.3), name)
			assert.Equal(t, 2097152*time.Microsecond, d.Quantile(0.5), name)
			assert.Equal(t, d.Bound(25), d.Quantile(1), name)
		}
		assert.Equal(t, 20*time.Second, n.Tenants[0].Longest)
		assert.Equal(t, uint64(3), n.Tenants[0].AllocCount)
		assert.Equal(t, uint64(3), n.Tenants[0].FreeCount)
		assert.Equal(t, 50*mib, n.Tenants[0].PeakHeldBytes)
		h.ResetPeaks()
		assert.Zero(t, guest.Stats().PeakHeldBytes)
		x := must(t, s, 60*mib)
		_, err := other.AllocFor(context.Background(), vram.Request{Bytes: 50 * mib, Tenant: guest})
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		assert.Equal(t, uint64(1), guest.Stats().OutOfMemoryCount)
		freeAll(t, x)
	})
}

// A reading of the statistics raises the peak of pending bytes to the sum of several streams.
func TestPendingBytesOfSeveralStreamsHaveAPeak(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
	other := h.stream()
	require.NoError(t, h.gpu.Launch(other.Handle(), time.Hour))
	for range 2 {
		b := must(t, h.stream(), 32*mib)
		require.NoError(t, b.RecordStream(other))
		freeAll(t, b)
	}
	require.Equal(t, 64*mib, h.Stats().PendingBytes)
	h.gpu.Advance(2 * time.Hour)
	h.trim()
	n := h.Stats()
	require.Zero(t, n.PendingBytes)
	assert.Equal(t, 64*mib, n.PeakPendingBytes)
}

// Free memory, pending memory and the memory of a stream have exact peaks, which restart at the present.
func TestMorePeaks(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
	s, other := h.stream(), h.stream()
	b := must(t, s, 32*mib)
	require.NoError(t, h.gpu.Launch(other.Handle(), time.Hour))
	require.NoError(t, b.RecordStream(other))
	freeAll(t, b)
	n := h.Stats()
	require.Equal(t, 32*mib, n.PendingBytes)
	assert.Equal(t, 32*mib, n.PeakPendingBytes)
	assert.GreaterOrEqual(t, n.Streams[0].PeakHeldBytes, 32*mib)
	h.gpu.Advance(2 * time.Hour)
	h.trim()
	n = h.Stats()
	require.Zero(t, n.PendingBytes)
	assert.Equal(t, 32*mib, n.PeakPendingBytes)
	assert.Equal(t, 32*mib, n.Streams[0].PeakPendingBytes)
	assert.GreaterOrEqual(t, n.PeakFreeBytes, n.FreeBytes)
	h.ResetPeaks()
	n = h.Stats()
	assert.Zero(t, n.PeakPendingBytes)
	assert.Zero(t, n.Streams[0].PeakPendingBytes)
	assert.Equal(t, n.Streams[0].HeldBytes, n.Streams[0].PeakHeldBytes)
	assert.Equal(t, n.FreeBytes, n.PeakFreeBytes)
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 16 * mib, Count: 1}))
	x := must(t, s, 16*mib)
	assert.GreaterOrEqual(t, h.Stats().PeakFreeBytes, 16*mib)
	freeAll(t, x)
}

// A stream that has ended is part of the peak: a program that opens one for each step sees it.
func TestThePeakOfAStreamThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
		for _, bytes := range []int64{100 * mib, 10 * mib} {
			s := h.stream()
			freeAll(t, must(t, s, bytes))
			require.NoError(t, s.Close())
			<-time.After(time.Second) // virtual: the stream is forgotten
			synctest.Wait()
		}
		s := h.stream()
		freeAll(t, must(t, s, mib))
		assert.GreaterOrEqual(t, h.addsUp().PeakLiveBytes, 100*mib)
		h.ResetPeaks()
		assert.Less(t, h.addsUp().PeakLiveBytes, 10*mib)

		other := h.stream()
		freeAll(t, must(t, other, 40*mib))
		m := h.Measure(func() {
			freeAll(t, must(t, other, 40*mib)) // its cache serves: the pool does not hear of it
			require.NoError(t, other.Close())
			<-time.After(time.Second) // virtual: likewise
			synctest.Wait()
		})
		assert.GreaterOrEqual(t, m.Stats.PeakLiveBytes, 40*mib)
		assert.Less(t, h.Measure(func() {}).Stats.PeakLiveBytes, 10*mib, "it ended before")
	})
}

// A stream that has ended is part of the peaks of live and of pending bytes, also where nobody read statistics before its end: since the
// last reset, and of a measurement inside which it ended, wherever it was opened.
func TestPeaksOfStreamsThatHaveEnded(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	type peaks struct{ live, pending int64 }
	for _, others := range []int{1, 2} { // open streams
		synctest.Test(t, func(t *testing.T) {
			h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
			require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 100 * mib, Count: 1}))
			var other *vram.Stream
			for range others {
				other = h.stream()
			}
			use := func(s *vram.Stream, liveBytes, pendingBytes int64) {
				freeAll(t, must(t, s, liveBytes))
				b := must(t, s, pendingBytes)
				require.NoError(t, h.gpu.Launch(other.Handle(), time.Hour))
				require.NoError(t, b.RecordStream(other))
				freeAll(t, b)
				h.gpu.Advance(2 * time.Hour)
				for range 2 { // the first finds the end of the use
					require.NoError(t, s.Trim(t.Context()))
					<-time.After(time.Second) // virtual
					synctest.Wait()
				}
			}
			end := func(s *vram.Stream) {
				require.NoError(t, s.Close())
				<-time.After(time.Second) // virtual: the stream is forgotten
				synctest.Wait()
			}
			of := func(n vram.Stats) peaks {
				require.Len(t, n.Streams, others)
				require.Zero(t, n.LiveBytes+n.PendingBytes)
				return peaks{n.PeakLiveBytes, n.PeakPendingBytes}
			}
			whole := func(liveBytes, pendingBytes int64) func() {
				return func() {
					s := h.stream()
					use(s, liveBytes, pendingBytes)
					end(s)
				}
			}
			whole(40*mib, 32*mib)()
			whole(4*mib, 2*mib)()
			assert.Equal(t, peaks{40 * mib, 32 * mib}, of(h.Stats()))
			assert.Equal(t, peaks{6 * mib, 4 * mib}, of(h.Measure(whole(6*mib, 4*mib)).Stats), "opened and ended inside")
			assert.Equal(t, peaks{6 * mib, 4 * mib}, of(h.Measure(func() { whole(6*mib, 4*mib)(); h.ResetPeaks() }).Stats), "a reset changes no measurement")
			whole(40*mib, 32*mib)()
			s := h.stream()
			use(s, 20*mib, 10*mib)
			assert.Equal(t, peaks{8 * mib, 6 * mib}, of(h.Measure(func() { use(s, 8*mib, 6*mib); end(s) }).Stats), "ended inside")
			s = h.stream()
			use(s, 20*mib, 10*mib)
			require.NoError(t, s.Close())
			assert.Zero(t, of(h.Measure(func() { end(s) }).Stats), "it had ended before, and was forgotten inside")
			s = h.stream()
			use(s, 20*mib, 10*mib)
			require.NoError(t, s.Close())
			outer := h.Measure(func() {
				assert.Zero(t, of(h.Measure(func() { end(s) }).Stats))
				assert.Equal(t, peaks{12 * mib, 2 * mib}, of(h.Measure(whole(12*mib, 2*mib)).Stats))
				assert.Equal(t, peaks{8 * mib, 4 * mib}, of(h.Measure(whole(8*mib, 4*mib)).Stats))
			})
			assert.Equal(t, peaks{12 * mib, 4 * mib}, of(outer.Stats))
			assert.Zero(t, of(h.Measure(nil).Stats))
			assert.Equal(t, peaks{40 * mib, 32 * mib}, of(h.Stats()))
			h.ResetPeaks()
			assert.Zero(t, of(h.Stats()))
			s = h.stream()
			assert.Equal(t, 8*mib, h.Measure(func() { use(other, 8*mib, mib) }).Stats.PeakLiveBytes, "of an open stream, which its cache serves")
			end(s)
			require.NoError(t, h.Close())
		})
	}
}
