package acceptance_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// fill takes buffers until there is no more.
func fill(t *testing.T, s *vram.Stream, bytes int64) []vram.Buffer {
	t.Helper()
	var all []vram.Buffer
	for {
		b, err := s.Alloc(bytes)
		if err != nil {
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			return all
		}
		all = append(all, b)
	}
}

// The limit is never exceeded, and all of it can be used, in bytes and as a fraction.
func TestTheLimitHolds(t *testing.T) {
	for name, cfg := range map[string]vram.Config{
		"bytes":    {LimitBytes: 96 * mib},
		"fraction": {MemoryFraction: 0.25},
		"lean":     {LimitBytes: 96 * mib, Footprint: vram.Lean},
		"fast":     {LimitBytes: 96 * mib, Footprint: vram.Fast},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, cfg, sim.Config{TotalBytes: 384 * mib})
			s := h.stream()
			buffers := fill(t, s, 4*mib)
			assert.Len(t, buffers, 24)
			n := h.addsUp()
			assert.Equal(t, 96*mib, n.LimitBytes)
			assert.Equal(t, 96*mib, n.ReservedBytes)
			freeAll(t, buffers...)
			small := fill(t, s, 40*kib)
			assert.Greater(t, int64(len(small)), 96*mib/(44*kib))
			h.addsUp()
			freeAll(t, small...)
		})
	}
}

// Without a limit the device is it; a limit beyond the device is the device.
func TestTheDeviceIsTheLimit(t *testing.T) {
	for _, limit := range []int64{0, 64 * mib, 1 << 50} {
		h := openHouse(t, vram.Config{LimitBytes: limit}, sim.Config{TotalBytes: 64 * mib})
		s := h.stream() // before its first use nothing is known of the device
		assert.Equal(t, 64*mib, h.Stats().LimitBytes)
		buffers := fill(t, s, 4*mib)
		assert.Len(t, buffers, 16)
		freeAll(t, buffers...)
	}
}

// A device with more memory than can be counted is used as far as possible, and a longer request,
// with any alignment, is refused and not cut short.
func TestADeviceOfManyTerabytes(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 8 << 40})
	s := h.stream()
	assert.EqualValues(t, 1<<40, h.Stats().LimitBytes)
	freeAll(t, must(t, s, 1<<40))
	for _, bytes := range []int64{1<<40 + 1, 2 << 40, 2<<40 + 512, 3 << 40, 8 << 40} {
		_, err := s.Alloc(bytes)
		require.ErrorIs(t, err, vram.ErrTooLarge)
		_, err = s.AllocFor(t.Context(), vram.Request{Bytes: bytes, Align: mib})
		require.ErrorIs(t, err, vram.ErrTooLarge)
		require.ErrorIs(t, s.AllocBatch(make([]vram.Buffer, 2), []int64{bytes, 1}), vram.ErrTooLarge)
	}
	for align := int64(1 << 36); align > 0; align <<= 1 {
		b, err := s.AllocFor(t.Context(), vram.Request{Bytes: mib, Align: align})
		if err != nil {
			require.Greater(t, align, int64(1<<38), "%v", err)
			continue
		}
		assert.Zero(t, int64(b.Ptr())%align)
		freeAll(t, b)
	}
	h.addsUp()
}

// A request beyond the limit is refused at once as too large; waiting would not help.
func TestARequestBeyondTheLimit(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	for _, bytes := range []int64{64*mib + 1, 1 << 62, 1<<63 - 1} {
		_, err := s.Alloc(bytes)
		var large *vram.SizeError
		require.ErrorAs(t, err, &large)
		require.ErrorIs(t, err, vram.ErrTooLarge)
		assert.Equal(t, vram.SizeError{RequestedBytes: bytes, LimitBytes: 64 * mib}, *large)
		_, err = s.AllocAsync(t.Context(), vram.Request{Bytes: bytes}).Await(t.Context())
		require.ErrorIs(t, err, vram.ErrTooLarge)
	}
	for _, bytes := range []int64{-1, -1 << 63} {
		_, err := s.Alloc(bytes)
		require.ErrorIs(t, err, vram.ErrNegative)
		_, err = s.AllocAsync(t.Context(), vram.Request{Bytes: bytes}).Await(t.Context())
		require.ErrorIs(t, err, vram.ErrNegative)
	}
	assert.Zero(t, h.driverCalls())
	freeAll(t, must(t, s, 64*mib))
}

// A request of no bytes gives a buffer like any other.
func TestABufferOfNoBytes(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	var o overlaps
	a, b := must(t, s, 0), must(t, s, 0)
	require.NoError(t, o.enter(a))
	require.NoError(t, o.enter(b))
	assert.True(t, a.Live())
	freeAll(t, a, b)
	require.ErrorIs(t, a.Free(), vram.ErrDoubleFree)
	assert.Equal(t, uint64(2), h.addsUp().FreeCount)
}

// An OutOfMemoryError has the requested and the free bytes, and the memory of every stream;
// afterwards the device works.
func TestOutOfMemoryTellsTheFacts(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	a, b, c := h.stream(), h.stream(), h.stream()
	x, y := must(t, a, 20*mib), must(t, b, 30*mib)
	_, err := c.Alloc(40 * mib)
	var oom *vram.OutOfMemoryError
	require.ErrorAs(t, err, &oom)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	assert.Equal(t, 40*mib, oom.RequestedBytes)
	assert.Equal(t, 64*mib, oom.LimitBytes)
	assert.Equal(t, h.Stats().ReservedBytes, oom.ReservedBytes)
	assert.LessOrEqual(t, oom.LargestFreeBytes, oom.FreeBytes)
	assert.NoError(t, oom.Cause, "the driver was not the reason")
	held := map[uint32]int64{}
	for _, s := range oom.Streams {
		held[s.Stream] = s.HeldBytes
	}
	assert.Equal(t, map[uint32]int64{a.ID(): 20 * mib, b.ID(): 30 * mib, c.ID(): 0}, held)
	for _, part := range []string{"out of memory", "40 MiB", "64 MiB", "20 MiB", "30 MiB"} {
		assert.Contains(t, err.Error(), part)
	}

	h.addsUp()
	z := must(t, c, 10*mib)
	require.NoError(t, y.Free())
	_, err = b.Alloc(34 * mib)
	require.NoError(t, err)
	freeAll(t, x, z)
}

// When the device has less than the limit, the driver's refusal is the cause, and the device goes
// on.
func TestTheDriverRunsOutOfMemory(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 256 * mib})
	s := h.stream()
	h.faults.SetCapacity(32 * mib) // another process has the rest
	_, err := s.Alloc(64 * mib)
	var oom *vram.OutOfMemoryError
	require.ErrorAs(t, err, &oom)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.ErrorContains(t, oom.Cause, "cuMemCreate")
	h.addsUp()
	b := must(t, s, 24*mib)
	h.faults.SetCapacity(256 * mib)
	freeAll(t, b, must(t, s, 128*mib))
	h.addsUp()
}

// A driver that fails is no shortage: the error is its own, and the next request may work.
func TestADriverThatFails(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 256 * mib})
	s := h.stream()
	for _, function := range []string{"cuMemCreate", "cuMemMap", "cuMemSetAccess"} {
		h.fail(function, cudadrv.LaunchFailed)
		_, err := s.Alloc(16 * mib)
		require.ErrorIs(t, err, cudadrv.LaunchFailed, function)
		require.NotErrorIs(t, err, vram.ErrOutOfMemory)
		var call *cudadrv.CallError
		require.ErrorAs(t, err, &call)
		assert.Equal(t, function, call.Func)
		h.faults.Clear()
		h.addsUp()
	}
	freeAll(t, must(t, s, 16*mib))
}

// Sizes at the ends of the number range behave as the next best size, or are refused by name: none
// wraps around.
func TestSizesAtTheEndsOfNumbers(t *testing.T) {
	for name, kind := range map[string]vram.Segments{"pages": vram.SegmentsVMM, "segments": vram.SegmentsPlain} {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, vram.Config{LimitBytes: 64 * mib, Segments: kind}, sim.Config{})
			s := h.stream()
			b := must(t, s, 8*mib)
			ctx := t.Context()
			var limit *vram.LimitError
			var field *vram.ConfigError
			var large *vram.SizeError
			for _, bytes := range []int64{math.MaxInt64, math.MaxInt64 - 2*mib, 1 << 53} {
				require.ErrorAs(t, h.Warm(ctx, vram.Demand{Bytes: bytes, Count: 1}), &limit)
				assert.EqualValues(t, 64*mib, limit.LimitBytes)
				assert.Greater(t, limit.WantedBytes, 64*mib)

				_, err := h.Reserve(ctx, bytes)
				require.ErrorAs(t, err, &large)
				given, err := h.Trim(ctx, bytes)
				require.NoError(t, err)
				assert.Zero(t, given)
				h.trim()
			}
			for _, bytes := range []int64{math.MinInt64, -1} {
				require.ErrorAs(t, h.Warm(ctx, vram.Demand{Bytes: bytes, Count: 1}), &field)
				_, err := h.Reserve(ctx, bytes)
				require.ErrorAs(t, err, &field)
				_, err = h.Trim(ctx, bytes)
				require.ErrorAs(t, err, &field)
			}
			freeAll(t, b, must(t, s, 48*mib))
			h.addsUp()
		})
	}
	for _, bytes := range []int64{math.MaxInt64, 1 << 53, 1<<53 + 2*mib} {
		for name, kind := range map[string]vram.Segments{"pages": vram.SegmentsVMM, "segments": vram.SegmentsPlain} {
			t.Run(fmt.Sprint(name, " of ", bytes), func(t *testing.T) {
				h := openHouse(t, vram.Config{
					Segments: kind, StreamCacheBytes: bytes, PoolCacheBytes: bytes, LimitBytes: bytes,
					Tuning: vram.Tuning{SegmentBytes: bytes, StreamCacheBlocks: math.MaxInt, PoolCacheBlocks: math.MaxInt},
				}, sim.Config{})
				s := h.stream()
				freeAll(t, must(t, s, 8*mib), must(t, s, 3*mib), must(t, s, 1))
				h.addsUp()
			})
		}
	}
}
