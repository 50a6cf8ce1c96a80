package sim_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

const granule = sim.DefaultGranularityBytes

func TestZeroConfigIsAnH200(t *testing.T) {
	drv, dev := start(t, sim.Config{})
	count, err := drv.DeviceCount()
	require.NoError(t, err)
	assert.Equal(t, 1, count)
	assert.NotZero(t, dev.Info().UUID)
	assert.Equal(t, cudadrv.Info{
		UUID: dev.Info().UUID, Driver: "sim", Name: "simulated GPU", DriverVersion: 13000, TotalBytes: 150_109_880_320,
		GranularityBytes: 2 << 20,
		Capabilities: cudadrv.VirtualMemory | cudadrv.CaptureInformation | cudadrv.BlockingCreation | cudadrv.KernelLaunches |
			cudadrv.GraphLaunches | cudadrv.EventTiming | cudadrv.WideFills | cudadrv.PeerAccess | cudadrv.EventSharing |
			cudadrv.BulkTensors,
		Compute: cudadrv.ComputeCapability{Major: 9}, Multiprocessors: 132,
	}, dev.Info())
}

func TestConfigsThatCannotBe(t *testing.T) {
	for _, config := range []sim.Config{
		{Devices: -1},
		{Devices: 1 << 20},
		{TotalBytes: -1},
		{GranularityBytes: 3 << 20},
		{GranularityBytes: 256},
		{GranularityBytes: -2},
		{Clock: 9},
	} {
		drv := sim.New(config)
		_, err := drv.DeviceCount()
		require.ErrorIs(t, err, cudadrv.ErrNoDriver, "%+v", config)
		_, err = drv.Open(0)
		require.ErrorIs(t, err, cudadrv.ErrNoDriver, "%+v", config)
		assert.Nil(t, drv.Device(0))
	}
}

func TestViewsBeforeAndAfterOpen(t *testing.T) {
	drv := sim.New(sim.Config{})
	watch := drv.Device(0)
	assert.Same(t, watch, drv.Device(0))
	assert.Nil(t, drv.Device(-1))
	assert.Nil(t, drv.Device(1))
	_, err := watch.MemAlloc(1)
	require.ErrorIs(t, err, cudadrv.InvalidContext)
	watch.Advance(ms)

	first, err := drv.Open(0)
	require.NoError(t, err)
	second, err := drv.Open(0)
	require.NoError(t, err)
	require.ErrorIs(t, watch.Close(), cudadrv.InvalidContext, "it was not opened")
	p, err := first.MemAlloc(granule)
	require.NoError(t, err)
	require.NoError(t, first.Close())
	require.ErrorIs(t, first.Close(), cudadrv.InvalidContext, "a second Close takes nobody else's reference")
	_, err = first.MemAlloc(1)
	require.ErrorIs(t, err, cudadrv.InvalidContext)
	require.NoError(t, second.MemsetD8Async(p, 0, granule, 0), "memory stays until the last Close")
	require.NoError(t, watch.Audit())
	require.NoError(t, second.Close())

	// The last Close frees memory, streams and events; the clock continues.
	third, err := drv.Open(0)
	require.NoError(t, err)
	freeBytes, totalBytes, err := third.MemGetInfo()
	require.NoError(t, err)
	assert.Equal(t, totalBytes, freeBytes)
	require.ErrorIs(t, third.MemFree(p), cudadrv.InvalidValue)
	assert.GreaterOrEqual(t, watch.Now(), ms)
	require.NoError(t, watch.Audit())
}

func TestDriversAreWorldsOfTheirOwn(t *testing.T) {
	_, one := start(t, sim.Config{})
	_, other := start(t, sim.Config{})
	p, err := one.MemAlloc(granule)
	require.NoError(t, err)
	require.ErrorIs(t, other.MemFree(p), cudadrv.InvalidValue)
	one.Advance(ms)
	assert.Zero(t, other.Now())
}

func TestDevicesShareOneAddressSpace(t *testing.T) {
	drv := sim.New(sim.Config{Devices: 3})
	seen := map[cudadrv.Ptr]bool{}
	streams := map[cudadrv.Stream]bool{}
	for ordinal := range 3 {
		dev, err := drv.Open(ordinal)
		require.NoError(t, err)
		assert.Equal(t, ordinal, dev.Info().Ordinal)
		for range 4 {
			p, err := dev.MemAlloc(granule)
			require.NoError(t, err)
			r, err := dev.MemAddressReserve(granule)
			require.NoError(t, err)
			s, err := dev.StreamCreate()
			require.NoError(t, err)
			assert.False(t, seen[p] || seen[r] || streams[s])
			seen[p], seen[r], streams[s] = true, true, true
		}
		freeBytes, totalBytes, err := dev.MemGetInfo()
		require.NoError(t, err)
		assert.Equal(t, totalBytes-4*granule, freeBytes, "memory is each device's own")
	}
}

// Close gives the address space of the device back.
func TestCloseReturnsTheAddressSpace(t *testing.T) {
	drv := sim.New(sim.Config{})
	for range 16 {
		dev, err := drv.Open(0)
		require.NoError(t, err)
		_, err = dev.MemAddressReserve(1 << 45) // a quarter of all
		require.NoError(t, err)
		require.NoError(t, dev.Close())
	}
}

// The capacity is the machine's: Close leaves it.
func TestTheCapacityOutlivesClose(t *testing.T) {
	drv, dev := start(t, sim.Config{TotalBytes: 8 * granule})
	dev.SetCapacity(3 * granule)
	require.NoError(t, dev.Close())
	again, err := drv.Open(0)
	require.NoError(t, err)
	freeBytes, _, err := again.MemGetInfo()
	require.NoError(t, err)
	assert.Equal(t, 3*granule, freeBytes)
	require.NoError(t, again.Close())
}

func TestStreamIDs(t *testing.T) {
	for _, reuse := range []bool{false, true} {
		_, dev := start(t, sim.Config{ReuseStreamIDs: reuse})
		s := newStream(t, dev)
		require.NoError(t, dev.Launch(s, ms))
		require.NoError(t, dev.StreamDestroy(s))
		again := newStream(t, dev)
		assert.Equal(t, reuse, again == s)
		assert.True(t, idle(t, dev, again), "a new stream has nothing of the old one's work")
		other := newStream(t, dev)
		require.NoError(t, errors.Join(dev.StreamDestroy(again), dev.StreamDestroy(other)))
		assert.Equal(t, reuse, newStream(t, dev) == other, "the last one first")
		assert.Equal(t, reuse, newStream(t, dev) == again)
	}
}

func TestDestroyedNamesAreInvalid(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s, live := newStream(t, dev), newStream(t, dev)
	e, kept := recorded(t, dev, s), recorded(t, dev, s)
	p, err := dev.MemAlloc(1)
	require.NoError(t, err)
	require.NoError(t, dev.StreamDestroy(s))
	require.NoError(t, dev.EventDestroy(e))
	_, queryStream := dev.StreamQuery(s)
	_, queryEvent := dev.EventQuery(e)
	for what, err := range map[string]error{
		"destroy stream":     dev.StreamDestroy(s),
		"query stream":       queryStream,
		"synchronize stream": dev.StreamSynchronize(s),
		"record on stream":   dev.EventRecord(kept, s),
		"wait on stream":     dev.StreamWaitEvent(s, kept),
		"memset on stream":   dev.MemsetD8Async(p, 0, 1, s),
		"copy on stream":     dev.MemcpyDtoDAsync(p, p, 1, s),
		"launch on stream":   dev.Launch(s, 1),
		"destroy event":      dev.EventDestroy(e),
		"query event":        queryEvent,
		"synchronize event":  dev.EventSynchronize(e),
		"record event":       dev.EventRecord(e, live),
		"wait for event":     dev.StreamWaitEvent(live, e),
		"stream for event":   dev.EventRecord(cudadrv.Event(live), live),
		"event for stream":   dev.StreamSynchronize(cudadrv.Stream(kept)),
	} {
		assert.ErrorIs(t, err, cudadrv.InvalidHandle, what)
	}
}

func TestCapacityChangesWhileInUse(t *testing.T) {
	_, dev := start(t, sim.Config{TotalBytes: 8 * granule})
	h, err := dev.MemCreate(4 * granule)
	require.NoError(t, err)
	_, err = dev.MemCreate(5 * granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)

	dev.SetCapacity(2 * granule)
	_, err = dev.MemCreate(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	_, err = dev.MemAlloc(1)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	freeBytes, totalBytes, err := dev.MemGetInfo()
	require.NoError(t, err)
	assert.Zero(t, freeBytes)
	assert.Equal(t, 8*granule, totalBytes)
	require.NoError(t, dev.MemRelease(h))
	_, err = dev.MemCreate(2 * granule)
	require.NoError(t, err)

	dev.SetCapacity(16 * granule)
	_, err = dev.MemAlloc(14 * granule)
	require.NoError(t, err)
	_, totalBytes, err = dev.MemGetInfo()
	require.NoError(t, err)
	assert.Equal(t, 16*granule, totalBytes)
	dev.SetCapacity(-1)
	_, err = dev.MemAlloc(1)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.NoError(t, dev.Audit())
}

// Where the simulator says more than hardware does.
func TestStricterThanHardware(t *testing.T) {
	_, dev := start(t, sim.Config{})
	p, err := dev.MemAddressReserve(8 * granule)
	require.NoError(t, err)
	g := cudadrv.Ptr(granule)
	handles := side(t, dev, p, 2, granule)
	require.NoError(t, dev.MemSetAccess(p, 2*granule))

	require.ErrorIs(t, dev.MemUnmap(p, 3*granule), cudadrv.NotMapped)
	require.ErrorIs(t, dev.MemUnmap(p+4*g, granule), cudadrv.NotMapped)
	require.ErrorIs(t, dev.MemMap(p, granule, handles[1]), cudadrv.AlreadyMapped)
	require.ErrorIs(t, dev.MemMap(p+8*g, granule, handles[1]), cudadrv.InvalidValue)
	big, err := dev.MemCreate(2 * granule)
	require.NoError(t, err)
	require.ErrorIs(t, dev.MemMap(p+7*g, 2*granule, big), cudadrv.InvalidValue, "past the end of the reservation")
	require.NoError(t, dev.MemMap(p+4*g, 2*granule, big))
	for _, at := range []cudadrv.Ptr{p + 4*g, p + 5*g} {
		require.ErrorIs(t, dev.MemUnmap(at, granule), cudadrv.InvalidValue, "handles are unmapped whole")
		require.ErrorIs(t, dev.MemSetAccess(at, granule), cudadrv.InvalidValue)
	}
	require.NoError(t, dev.MemUnmap(p+4*g, 2*granule))
	require.ErrorIs(t, dev.MemsetD8Async(p, 0, 2*granule+1, 0), cudadrv.IllegalAddress)
	require.ErrorIs(t, dev.MemcpyDtoDAsync(p, p+1, 2*granule, 0), cudadrv.IllegalAddress)
	require.NoError(t, dev.MemsetD8Async(p+g-1, 0, 2, 0), "side by side is one range")
	require.NoError(t, dev.MemRelease(handles[0]))
	require.ErrorIs(t, dev.MemRelease(handles[0]), cudadrv.InvalidValue)
	require.ErrorIs(t, dev.MemMap(p+4*g, granule, handles[0]), cudadrv.InvalidValue, "a released name maps nothing")

	q, err := dev.MemAlloc(1000)
	require.NoError(t, err)
	require.NoError(t, dev.MemsetD8Async(q+999, 0, 1, 0))
	require.ErrorIs(t, dev.MemsetD8Async(q+999, 0, 2, 0), cudadrv.IllegalAddress)
	require.ErrorIs(t, dev.MemMap(q, granule, handles[1]), cudadrv.InvalidValue, "no reservation")
	require.ErrorIs(t, dev.MemAddressFree(q, 1000), cudadrv.InvalidValue)
	require.ErrorIs(t, dev.MemFree(p), cudadrv.InvalidValue, "no plain allocation")
	require.NoError(t, dev.Audit())
}

// The calls that a warm allocator makes leave no garbage.
func TestFenceCallsDoNotAllocate(t *testing.T) {
	_, dev := start(t, sim.Config{})
	s := newStream(t, dev)
	e := recorded(t, dev, s)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = dev.Launch(s, ms)
		_ = dev.EventRecord(e, s)
		_, _ = dev.EventQuery(e)
		_ = dev.StreamWaitEvent(0, e)
		_, _ = dev.StreamQuery(s)
		_ = dev.Occupy(s, ms)
		_ = dev.StreamSynchronize(s)
	}))
}

// BenchmarkCalls has 50,000 handles of 2 MiB mapped, in shuffled order, and moves one.
func BenchmarkCalls(b *testing.B) {
	const count = 50_000
	drv := sim.New(sim.Config{})
	opened, err := drv.Open(0)
	require.NoError(b, err)
	dev := opened.(*sim.Device)
	p, err := dev.MemAddressReserve(2 * count * granule)
	require.NoError(b, err)
	place := func(i int) cudadrv.Ptr { return p + cudadrv.Ptr(int64(i*2%(2*count))*granule) }
	handles := make([]cudadrv.Handle, count)
	for i := range handles {
		at := i * 7919 % count
		handles[at], err = dev.MemCreate(granule)
		require.NoError(b, err)
		require.NoError(b, dev.MemMap(place(at), granule, handles[at]))
		require.NoError(b, dev.MemSetAccess(place(at), granule))
	}
	e, err := dev.EventCreate()
	require.NoError(b, err)
	i := 0
	next := func() int { i += 7919; return i % count }
	b.Run("call=unmap+map+access", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			k := next()
			_ = dev.MemUnmap(place(k), granule)
			_ = dev.MemMap(place(k), granule, handles[k])
			_ = dev.MemSetAccess(place(k), granule)
		}
	})
	b.Run("call=create+release", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			h, _ := dev.MemCreate(granule)
			_ = dev.MemRelease(h)
		}
	})
	b.Run("call=memset", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = dev.MemsetD8Async(place(next()), 0, 4096, 0)
		}
	})
	b.Run("call=record+query", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = dev.EventRecord(e, 0)
			_, _ = dev.EventQuery(e)
		}
	})
	b.Run("call=alloc+free", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			q, _ := dev.MemAlloc(granule)
			_ = dev.MemFree(q)
		}
	})
}

// Each clock has a text that is read again, and other texts are refused without a change.
func TestTextsOfClocks(t *testing.T) {
	for c := sim.Stepped; c <= sim.Running; c++ {
		text, err := c.MarshalText()
		require.NoError(t, err)
		again := sim.Clock(9)
		require.NoError(t, again.UnmarshalText(text))
		assert.Equal(t, c, again)
		assert.Equal(t, c.String(), string(text))
	}
	for _, text := range []string{"", "running ", "Clock(0)"} {
		c := sim.Running
		require.ErrorContains(t, c.UnmarshalText([]byte(text)), "want stepped, running")
		assert.Equal(t, sim.Running, c)
	}
	assert.Equal(t, "Clock(2)", sim.Clock(2).String())
}

// Objects has the kinds of which there are some.
func TestObjectsThatAreNotThere(t *testing.T) {
	_, dev := start(t, sim.Config{})
	assert.Equal(t, map[string]int{"context": 1}, dev.Objects())
	s := newStream(t, dev)
	require.NoError(t, dev.StreamBeginCapture(s, cudadrv.CaptureRelaxed))
	assert.Equal(t, map[string]int{"context": 1, "stream": 1, "captured stream": 1}, dev.Objects())
	require.NoError(t, dev.Close())
	assert.Empty(t, dev.Objects())
}
