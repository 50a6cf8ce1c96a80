package acceptance_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/futures"
)

// These tests are other allocators' own, ported; docs/conformance.md says which.

// RMM: concurrent_allocations_are_different, at once and as futures.
func TestConcurrentAllocationsAreDifferent(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	var o overlaps
	var all sync.WaitGroup
	buffers := make(chan vram.Buffer, 400)
	for g := range 4 {
		all.Go(func() {
			var pending []futures.Future[vram.Buffer]
			for i := range 100 {
				bytes := int64(i%5) * 30 * kib
				if g%2 == 0 {
					b, err := s.Alloc(bytes)
					if assert.NoError(t, err) {
						buffers <- b
					}
					continue
				}
				pending = append(pending, s.AllocAsync(context.Background(), vram.Request{Bytes: bytes}))
			}
			for _, f := range pending {
				b, err := f.Await(context.Background())
				if assert.NoError(t, err) {
					buffers <- b
				}
			}
		})
	}
	all.Wait()
	close(buffers)
	for b := range buffers {
		require.NoError(t, o.enter(b))
	}
	require.Len(t, o.live, 400)
	var inUse *vram.InUseError
	require.ErrorAs(t, h.Close(), &inUse)
	assert.Equal(t, uint64(400), inUse.BufferCount)
}

// RMM: RandomAllocations and MixedRandomAllocationFree, four threads, a hundred allocations of up
// to 5 MiB each, on one stream and on one each.
func TestRandomAllocations(t *testing.T) {
	for _, shared := range []bool{true, false} {
		for _, mixed := range []bool{true, false} {
			h := openHouse(t, vram.Config{}, sim.Config{})
			var o overlaps
			one := h.stream()
			var all sync.WaitGroup
			for g := range uint64(4) {
				s := one
				if !shared {
					s = h.stream()
				}
				all.Go(func() {
					random := rand.New(rand.NewPCG(g, 3))
					var live []vram.Buffer
					for range 100 {
						b, err := s.Alloc(random.Int64N(5*mib + 1))
						if !assert.NoError(t, err) || !assert.NoError(t, o.enter(b)) {
							return
						}
						live = append(live, b)
						if mixed && random.IntN(100) < 47 {
							i := random.IntN(len(live))
							assert.NoError(t, o.free(live[i]))
							live = append(live[:i], live[i+1:]...)
						}
					}
					for _, b := range live {
						assert.NoError(t, o.free(b))
					}
				})
			}
			all.Wait()
			n := h.addsUp()
			assert.Equal(t, uint64(400), n.FreeCount)
			assert.Zero(t, n.LiveBytes)
		}
	}
}

// RMM: PoolTest.ForceGrowth. Of 6000, 1000 and 4000 and 500 are served, 2000 more are not; the live
// buffers stay usable.
func TestForceGrowth(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 6000 * mib}, sim.Config{})
	s := h.stream()
	a, b, c := must(t, s, 1000*mib), must(t, s, 4000*mib), must(t, s, 500*mib)
	_, err := s.Alloc(2000 * mib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	h.addsUp()
	d := must(t, s, 400*mib)
	require.NoError(t, b.Free())
	e := must(t, s, 2000*mib)
	freeAll(t, a, c, d, e)
	assert.LessOrEqual(t, h.addsUp().PeakReservedBytes, 6000*mib)
}

// RMM: PoolTest.TwoLargeBuffers and AllocateNinetyPercent.
func TestLargeParts(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{TotalBytes: 8 * gib})
	s := h.stream()
	a, b := must(t, s, 4*gib), must(t, s, 4*gib)
	freeAll(t, a, b)
	a, b = must(t, s, 2*gib), must(t, s, 5*gib)
	freeAll(t, b, a)
	freeAll(t, must(t, s, 8*gib/10*9))
}

// RMM: PoolTest.InitialAndMaxPoolSizeEqual, NonAlignedPoolSize and ThrowMaxLessThanInitial.
func TestInitialSizeAgainstTheLimit(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 100 * mib}, sim.Config{})
	require.NoError(t, h.Warm(t.Context(), vram.Demand{Bytes: 100 * mib, Count: 1}))
	freeAll(t, must(t, h.stream(), 100*mib))
	require.ErrorContains(t, h.Warm(t.Context(), vram.Demand{Bytes: 101 * mib, Count: 1}), "leaves no room")

	odd := openHouse(t, vram.Config{LimitBytes: 100*mib + 1031}, sim.Config{})
	s := odd.stream()
	freeAll(t, must(t, s, 100*mib))
	_, err := s.Alloc(100*mib + 1031) // a part of a page cannot be held
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	assert.LessOrEqual(t, odd.addsUp().PeakReservedBytes, 100*mib+1031)
}

// RMM: PoolTest.UpstreamDoesntSupportMemInfo.
func TestADriverWithoutMemInfo(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	h.fail("cuMemGetInfo", cudadrv.NotSupported)
	freeAll(t, must(t, h.stream(), 64*mib))
	require.NoError(t, h.Close())
}

// RMM: PoolTest.MultidevicePool. Devices share nothing.
func TestSeveralDevices(t *testing.T) {
	driver := sim.New(sim.Config{Devices: 3, TotalBytes: 64 * mib})
	var devices []*vram.Device
	var buffers []vram.Buffer
	for ordinal := range 3 {
		d, err := vram.Open(vram.Config{Driver: driver, Ordinal: ordinal})
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		devices, buffers = append(devices, d), append(buffers, must(t, s, 64*mib))
	}
	var inUse *vram.InUseError
	require.ErrorAs(t, devices[1].Close(), &inUse)
	require.ErrorIs(t, buffers[1].Free(), vram.ErrClosed)
	for _, i := range []int{0, 2} {
		require.NoError(t, buffers[i].Free())
		require.NoError(t, devices[i].Close())
	}
}

// CuPy: test_alloc_split and test_free_merge, head first and tail first.
func TestSplitAndMerge(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	whole := must(t, s, 4*mib)
	freeAll(t, whole)
	h.addsUp()
	calls := h.driverCalls()
	for _, headFirst := range []bool{true, false} {
		head := must(t, s, 2*mib)
		tail := must(t, s, 2*mib)
		assert.Equal(t, whole.Ptr(), head.Ptr())
		assert.Equal(t, whole.Ptr()+vram.Ptr(2*mib), tail.Ptr())
		if headFirst {
			freeAll(t, head, tail)
		} else {
			freeAll(t, tail, head)
		}
		again := must(t, s, 4*mib)
		assert.Equal(t, whole.Ptr(), again.Ptr())
		freeAll(t, again)
	}
	assert.Equal(t, calls, h.driverCalls())
}

// CuPy: test_free_stream. Memory freed by one stream does not serve another while its work is not
// finished.
func TestFreedMemoryOfAnotherStream(t *testing.T) {
	h := openHouse(t, vram.Config{Waits: vram.WaitsNever}, sim.Config{})
	a, b := h.stream(), h.stream()
	x := must(t, a, 8*mib)
	require.NoError(t, h.gpu.Launch(a.Handle(), time.Second))
	freeAll(t, x)
	y := must(t, b, 8*mib)
	assert.NotEqual(t, x.Ptr(), y.Ptr())
	assert.Less(t, h.gpu.Now(), time.Second)
	z := must(t, a, 8*mib)
	assert.Equal(t, x.Ptr(), z.Ptr())
	freeAll(t, y, z)
}

// CuPy: test_alloc_limit_fragmented. Of a limit of 6, 5 were used and freed, and 6 are asked for:
// by the same stream and by another.
func TestALimitInPieces(t *testing.T) {
	for _, unit := range []int64{2 * mib, 4 * mib, 10 * mib, 64 * mib} {
		for _, other := range []bool{false, true} {
			h := openHouse(t, vram.Config{LimitBytes: 6 * unit}, sim.Config{})
			s := h.stream()
			freeAll(t, must(t, s, 5*unit))
			if other {
				s = h.stream()
			}
			b, err := s.Alloc(6 * unit)
			require.NoError(t, err, "units of %d, another stream: %t", unit, other)
			freeAll(t, b)
			h.addsUp()
		}
	}
}

// CuPy: test_free_all_blocks_split, _stream and _all_streams.
func TestGivingBackAllFreeBlocks(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	a, b := h.stream(), h.stream()
	head, tail := must(t, a, 8*mib), must(t, a, 8*mib)
	other := must(t, b, 8*mib)
	freeAll(t, tail)
	assert.Positive(t, h.trim(), "the free half goes")
	assert.True(t, head.Live())
	n := h.addsUp()
	assert.Equal(t, 16*mib, n.LiveBytes)
	freeAll(t, head, other)
	h.trim()
	assert.Zero(t, h.addsUp().ReservedBytes, "of all streams")
	freeAll(t, must(t, a, 8*mib), must(t, b, 8*mib))
}

// CuPy: test_double_free and test_zero_size_alloc.
func TestDoubleFreeAndNoBytes(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	b := must(t, h.stream(), 0)
	require.NoError(t, b.Free())
	require.ErrorIs(t, b.Free(), vram.ErrDoubleFree)
}

// CuPy: test_reuse_between_thread_same_stream, _different_stream and _ptds. Reuse depends on the
// stream, not on the goroutine.
func TestReuseBetweenGoroutines(t *testing.T) {
	h := openHouse(t, vram.Config{Waits: vram.WaitsNever}, sim.Config{})
	a, b := h.stream(), h.stream()
	for _, bytes := range []int64{5 * kib, 8 * mib} {
		elsewhere := func(s *vram.Stream) (p vram.Ptr) {
			var done sync.WaitGroup
			done.Go(func() {
				x, err := s.Alloc(bytes)
				if assert.NoError(t, err) {
					p = x.Ptr()
					assert.NoError(t, x.Free())
				}
			})
			done.Wait()
			return p
		}
		x := must(t, a, bytes)
		require.NoError(t, h.gpu.Launch(a.Handle(), time.Second)) // still at work on x
		freeAll(t, x)
		assert.Equal(t, x.Ptr(), elsewhere(a), "the same stream reuses it on any goroutine")
		assert.NotEqual(t, x.Ptr(), elsewhere(b), "another stream does not")
	}
}
