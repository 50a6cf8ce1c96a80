package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// cost returns the modelled time that f adds.
func cost(dev *sim.Device, f func()) time.Duration {
	before := dev.ModelledTime()
	f()
	return dev.ModelledTime() - before
}

// near asserts that a cost is the measured one to a tenth.
func near(t *testing.T, want, got time.Duration, what string) {
	t.Helper()
	assert.InEpsilon(t, float64(want), float64(got), 0.1, "%s: want %v, got %v", what, want, got)
}

// side maps count new handles of bytes side by side at p.
func side(t *testing.T, dev *sim.Device, p cudadrv.Ptr, count int, bytes int64) []cudadrv.Handle {
	t.Helper()
	handles := make([]cudadrv.Handle, count)
	for i := range handles {
		var err error
		handles[i], err = dev.MemCreate(bytes)
		require.NoError(t, err)
		require.NoError(t, dev.MemMap(p+cudadrv.Ptr(int64(i)*bytes), bytes, handles[i]))
	}
	return handles
}

// Whole calls as they were measured on an H200.
func TestCostsAreThoseMeasured(t *testing.T) {
	us := func(x float64) time.Duration { return time.Duration(x * 1e3) }
	_, dev := start(t, sim.Config{})
	p, err := dev.MemAddressReserve(64 * gib)
	require.NoError(t, err)
	for _, m := range []struct {
		handles                                 int
		bytes                                   int64
		create, mapping, access, unmap, release float64
	}{
		{1, 2 * mib, 5.614, 0.549, 28.3, 18.4, 6.967},
		{1, 32 * mib, 6.015, 0.526, 28.1, 18.3, 12.6},
		{1, 256 * mib, 9.619, 0.546, 29.9, 18.4, 53.5},
		{1, gib, 17.4, 0.678, 51.2, 27.1, 196.9},
		{32, 2 * mib, 32 * 5.614, 15.7, 522.1, 359.2, 32 * 6.967},
		{32, 32 * mib, 32 * 6.015, 16.2, 556.7, 375.3, 32 * 12.6},
	} {
		var handles []cudadrv.Handle
		all := int64(m.handles) * m.bytes
		near(t, us(m.create+m.mapping), cost(dev, func() { handles = side(t, dev, p, m.handles, m.bytes) }), "create and map")
		near(t, us(m.access), cost(dev, func() { require.NoError(t, dev.MemSetAccess(p, all)) }), "access")
		near(t, us(m.unmap), cost(dev, func() { require.NoError(t, dev.MemUnmap(p, all)) }), "unmap")
		near(t, us(m.release), cost(dev, func() {
			for _, h := range handles {
				require.NoError(t, dev.MemRelease(h))
			}
		}), "release")
	}
	for bytes, want := range map[int64][2]float64{
		256: {25.9, 23.1}, 2 * mib: {24.8, 22.3}, 256 * mib: {43.8, 80.3}, gib: {71.5, 242}, 8 * gib: {406.8, 1798.6},
		140 * mib: {36, 51}, // between 20 and 256 MiB
	} {
		var p cudadrv.Ptr
		near(t, us(want[0]), cost(dev, func() { p, _ = dev.MemAlloc(bytes) }), "alloc")
		near(t, us(want[1]), cost(dev, func() { require.NoError(t, dev.MemFree(p)) }), "free")
	}
	assert.Positive(t, cost(dev, func() { p, _ = dev.MemAlloc(100 * gib) }), "beyond the table it goes on")
	near(t, us(100.0/7*(1798.6-242)), cost(dev, func() { require.NoError(t, dev.MemFree(p)) }), "free of 100 GiB")

	var e cudadrv.Event
	assert.EqualValues(t, 184, cost(dev, func() { e, _ = dev.EventCreate() }))
	assert.EqualValues(t, 192, cost(dev, func() { _ = dev.EventRecord(e, 0) }))
	assert.EqualValues(t, 200, cost(dev, func() { _, _ = dev.EventQuery(e) }))
	assert.EqualValues(t, 3366, cost(dev, func() { _, _, _ = dev.MemGetInfo() }))
}

// The first view that is opened makes the context; others count references, which costs nothing.
func TestOnlyTheFirstOpenCosts(t *testing.T) {
	drv, dev := start(t, sim.Config{})
	first := dev.ModelledTime()
	assert.Positive(t, first)
	again, err := drv.Open(0)
	require.NoError(t, err)
	assert.Equal(t, first, dev.ModelledTime())
	require.NoError(t, again.Close())
}

func TestWaitingAndFailingCostNothing(t *testing.T) {
	_, dev := start(t, sim.Config{})
	require.NoError(t, dev.Launch(0, time.Hour))
	assert.Less(t, cost(dev, func() { require.NoError(t, dev.CtxSynchronize()) }), time.Microsecond)
	assert.Zero(t, cost(dev, func() {
		_, err := dev.MemCreate(1)
		require.Error(t, err)
		require.Error(t, dev.MemSetAccess(0, granule))
		require.Error(t, dev.MemFree(1))
	}))
	assert.Equal(t, time.Hour, dev.Now(), "costs are no device time")
}

func TestNoCosts(t *testing.T) {
	_, dev := start(t, sim.Config{NoCosts: true})
	p, err := dev.MemAlloc(gib)
	require.NoError(t, err)
	require.NoError(t, dev.MemsetD8Async(p, 0, gib, 0))
	require.NoError(t, dev.MemFree(p))
	assert.Zero(t, dev.ModelledTime())
	assert.Positive(t, dev.Now(), "work keeps its duration")
}

func TestCountsAreByNameAndIncludeFailures(t *testing.T) {
	drv, dev := start(t, sim.Config{})
	_, _ = dev.MemCreate(granule)
	_, _ = dev.MemCreate(1)
	_, _ = drv.Device(0).EventCreate()
	want := map[string]uint64{"cuDevicePrimaryCtxRetain": 1, "cuMemCreate": 2, "cuEventCreate": 1}
	assert.Equal(t, want, dev.Counts())
	assert.Equal(t, want, drv.Device(0).Counts())
}
