package sim_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

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

// Each power of two from the least granularity to the largest one is a granularity, and no other number.
func TestGranularitiesArePowersOfTwo(t *testing.T) {
	var taken []int64
	for bit := range 63 {
		for _, g := range []int64{1<<bit - 1, 1 << bit, 1<<bit + 1} {
			if _, err := sim.New(sim.Config{GranularityBytes: g}).DeviceCount(); err == nil && g != 0 && !slices.Contains(taken, g) {
				taken = append(taken, g)
			}
		}
	}
	require.NotEmpty(t, taken)
	for i, g := range taken[1:] {
		assert.Equal(t, 2*taken[i], g)
	}
	_, err := sim.New(sim.Config{GranularityBytes: 3}).DeviceCount()
	require.ErrorContains(t, err, fmt.Sprintf("want a power of two from %d to %d", taken[0], taken[len(taken)-1]))
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
	require.ErrorContains(t, err, fmt.Sprintf("%d bytes wanted, %d of %d in use", 5*granule, 4*granule, 8*granule))

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
	_, totalBytes, err = dev.MemGetInfo()
	require.NoError(t, err)
	assert.Equal(t, 16*granule, totalBytes, "before it is in use")
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

// A device that was closed and opened again is as a new one, whatever was left on it: it has no work to wait for, no failure, no
// capture, no name of a stream, and nothing changes its new memory.
func TestADeviceThatIsOpenedAgainIsNew(t *testing.T) {
	fails := &recorder{fault: errors.New("the kernel fails")}
	for name, leave := range map[string]func(dev *sim.Device, s cudadrv.Stream, p cudadrv.Ptr) error{
		"nothing": func(*sim.Device, cudadrv.Stream, cudadrv.Ptr) error { return nil },
		"work that takes time": func(dev *sim.Device, s cudadrv.Stream, _ cudadrv.Ptr) error {
			return errors.Join(dev.Launch(s, time.Hour), dev.Launch(0, time.Hour))
		},
		"work that changes bytes": func(dev *sim.Device, s cudadrv.Stream, p cudadrv.Ptr) error {
			return errors.Join(dev.Launch(s, time.Hour), dev.MemsetD8Async(p, 7, granule, s))
		},
		"the same, of freed memory": func(dev *sim.Device, s cudadrv.Stream, p cudadrv.Ptr) error {
			at, err := dev.MemAddressReserve(granule)
			h, err2 := dev.MemCreate(granule)
			return errors.Join(err, err2, dev.MemMap(at, granule, h), dev.MemSetAccess(at, granule), dev.Launch(s, time.Hour),
				dev.MemcpyDtoDAsync(p, at, granule, s), dev.MemUnmap(at, granule), dev.MemAddressFree(at, granule))
		},
		"a kernel that fails": func(dev *sim.Device, s cudadrv.Stream, _ cudadrv.Ptr) error {
			_, err := dev.LaunchLibrary(cudadrv.LibraryWork{Library: "stands"}, s)
			return err
		},
		"a failure": func(dev *sim.Device, s cudadrv.Stream, _ cudadrv.Ptr) error {
			_, err := dev.LaunchLibrary(cudadrv.LibraryWork{Library: "stands"}, s)
			if !errors.Is(dev.StreamSynchronize(s), fails.fault) {
				return errors.New("the failure is missing")
			}
			return err
		},
		"a captured stream": func(dev *sim.Device, s cudadrv.Stream, p cudadrv.Ptr) error {
			return errors.Join(dev.StreamBeginCapture(s, cudadrv.CaptureRelaxed), dev.MemsetD8Async(p, 7, granule, s))
		},
		"a destroyed stream": func(dev *sim.Device, s cudadrv.Stream, _ cudadrv.Ptr) error { return dev.StreamDestroy(s) },
		"page-locked memory": func(dev *sim.Device, s cudadrv.Stream, p cudadrv.Ptr) error {
			b, err := dev.MemHostAlloc(granule)
			return errors.Join(err, dev.Launch(s, time.Hour), dev.MemcpyDtoHAsync(b, p, s))
		},
	} {
		t.Run(name, func(t *testing.T) {
			drv, old := start(t, sim.Config{Bytes: true, Executor: fails, ReuseStreamIDs: true})
			s, err := old.StreamCreateBlocking()
			require.NoError(t, err)
			used, err := old.MemAlloc(granule)
			require.NoError(t, err)
			require.NoError(t, leave(old, s, used))
			require.NoError(t, old.Close())
			before := old.Now()

			opened, err := drv.Open(0)
			require.NoError(t, err)
			dev := opened.(*sim.Device)
			require.NoError(t, dev.CtxSynchronize())
			require.NoError(t, dev.StreamSynchronize(0))
			assert.Equal(t, before, dev.Now(), "there is nothing to wait for")
			assert.True(t, idle(t, dev, 0))
			assert.NotEqual(t, s, newStream(t, dev))
			p, err := dev.MemAlloc(granule)
			require.NoError(t, err)
			assert.Equal(t, used, p)
			dev.Advance(2 * time.Hour)
			host := []byte{1}
			require.NoError(t, dev.MemcpyDtoHAsync(host, p, 0))
			assert.Zero(t, host[0])
			free, total, err := dev.MemGetInfo()
			require.NoError(t, err)
			assert.EqualValues(t, granule, total-free)

			at, err := dev.MemAddressReserve(granule) // another failure has nothing of the first
			require.NoError(t, err)
			h, err := dev.MemCreate(granule)
			require.NoError(t, err)
			require.NoError(t, errors.Join(dev.MemMap(at, granule, h), dev.MemSetAccess(at, granule)))
			require.NoError(t, dev.MemsetD8Async(at, 1, granule, 0))
			require.NoError(t, dev.MemUnmap(at, granule))
			err = dev.CtxSynchronize()
			require.ErrorIs(t, err, cudadrv.IllegalAddress)
			require.NotErrorIs(t, err, fails.fault)
			require.NoError(t, dev.Close())
		})
	}
}

// What a pair of calls takes, it gives back: memory, and also addresses, of which there are enough for some dozens of such objects of
// 1 TiB.
func TestEachObjectGivesItsMemoryBack(t *testing.T) {
	for name, pair := range map[string]func(dev *sim.Device, granule int64) error{
		"a plain allocation": func(dev *sim.Device, granule int64) error {
			p, err := dev.MemAlloc(granule)
			return errors.Join(err, dev.MemFree(p))
		},
		"a handle": func(dev *sim.Device, granule int64) error {
			h, err := dev.MemCreate(granule)
			return errors.Join(err, dev.MemRelease(h))
		},
		"a mapped handle": func(dev *sim.Device, granule int64) error {
			p, err := dev.MemAddressReserve(granule)
			h, err2 := dev.MemCreate(granule)
			return errors.Join(err, err2, dev.MemMap(p, granule, h), dev.MemRelease(h), dev.MemUnmap(p, granule), dev.MemAddressFree(p, granule))
		},
		"a module": func(dev *sim.Device, _ int64) error {
			m, err := dev.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n.global .u32 a[1000000];\n.const .u8 b;"))
			return errors.Join(err, dev.ModuleUnload(m))
		},
		"page-locked memory": func(dev *sim.Device, granule int64) error {
			b, err := dev.MemHostAlloc(granule)
			return errors.Join(err, dev.MemFreeHost(b))
		},
		"a graph": func(dev *sim.Device, _ int64) error {
			s, err := dev.StreamCreate()
			err = errors.Join(err, dev.StreamBeginCapture(s, cudadrv.CaptureRelaxed))
			g, err2 := dev.StreamEndCapture(s)
			x, err3 := dev.GraphInstantiate(g)
			return errors.Join(err, err2, err3, dev.GraphDestroy(g), dev.GraphExecDestroy(x), dev.StreamDestroy(s))
		},
		"events": func(dev *sim.Device, _ int64) error {
			e, err := dev.EventCreate()
			f, err2 := dev.EventCreateTimed()
			return errors.Join(err, err2, dev.EventDestroy(e), dev.EventDestroy(f))
		},
	} {
		for bytes, times := range map[int64]int{granule: 2, 1 << 40: 130} {
			_, dev := start(t, sim.Config{Bytes: true, TimedKernels: true, GranularityBytes: bytes, TotalBytes: 4 * bytes})
			before, _, err := dev.MemGetInfo()
			require.NoError(t, err)
			objects := dev.Objects()
			for range times {
				require.NoError(t, pair(dev, bytes), name)
			}
			after, _, err := dev.MemGetInfo()
			require.NoError(t, err)
			assert.Equal(t, before, after, name)
			assert.Equal(t, objects, dev.Objects(), name)
			require.NoError(t, dev.Audit(), name)
			require.NoError(t, dev.Close())
		}
	}
}

// Calls refuse sizes that are no granules, and sizes for which there are no addresses, each for its reason.
func TestSizesThatCannotBe(t *testing.T) {
	_, dev := start(t, sim.Config{Bytes: true})
	p, err := dev.MemAddressReserve(2 * granule)
	require.NoError(t, err)
	h, err := dev.MemCreate(granule)
	require.NoError(t, err)
	for _, bytes := range []int64{math.MinInt64, -granule, -1, 0, 1, granule - 1, granule + 1, math.MaxInt64} {
		for name, err := range map[string]error{
			"reserve": second(dev.MemAddressReserve(bytes)), "create": second(dev.MemCreate(bytes)), "map": dev.MemMap(p, bytes, h),
			"access": dev.MemSetAccess(p, bytes), "unmap": dev.MemUnmap(p, bytes),
		} {
			require.ErrorIs(t, err, cudadrv.InvalidValue, "%s of %d bytes", name, bytes)
			require.ErrorContains(t, err, fmt.Sprintf("%d bytes are not a positive multiple of %d", bytes, granule), name)
		}
	}
	for _, bytes := range []int64{1<<47 + granule, 1 << 62, math.MaxInt64 - math.MaxInt64%granule} {
		for name, err := range map[string]error{
			"reserve": second(dev.MemAddressReserve(bytes)), "create": second(dev.MemCreate(bytes)), "allocate": second(dev.MemAlloc(bytes)),
			"page-locked": second(dev.MemHostAlloc(bytes)),
		} {
			require.ErrorIs(t, err, cudadrv.OutOfMemory, "%s of %d bytes", name, bytes)
		}
	}
	require.NoError(t, dev.Audit())
	require.NoError(t, dev.Close())
}

// second returns the error of a call.
func second[T any](_ T, err error) error { return err }

// A device is read, and its clock moved on, while others work on it: what is read adds up at each moment.
func TestReadersAmongGoroutines(t *testing.T) {
	machine := sim.New(sim.Config{Bytes: true})
	d := machine.Device(0)
	dev, err := machine.Open(0)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 100 {
				p, err := dev.MemAlloc(4096)
				assert.NoError(t, err)
				s, err := dev.StreamCreate()
				assert.NoError(t, err)
				e, err := dev.EventCreate()
				assert.NoError(t, err)
				assert.NoError(t, d.BeginCapture(s))
				assert.NoError(t, dev.MemsetD8Async(p, 1, 4096, s))
				graph, err := d.EndCapture(s)
				assert.NoError(t, errors.Join(err, d.LaunchGraph(graph, s), dev.EventRecord(e, s)))
				_, ok := d.Passes(e)
				assert.True(t, ok)
				d.Claim(p, 4096)
				d.AdvanceTo(d.Drained())
				assert.NoError(t, errors.Join(dev.EventDestroy(e), dev.StreamDestroy(s), dev.MemFree(p)))
			}
		})
		all.Go(func() {
			for range 200 {
				assert.NoError(t, d.Audit())
				before := d.Now()
				d.Advance(time.Microsecond)
				assert.Greater(t, d.Now(), before)
				assert.Equal(t, 1, d.Objects()["context"])
				free, total, err := dev.MemGetInfo()
				assert.NoError(t, err)
				assert.LessOrEqual(t, free, total)
			}
		})
	}
	all.Wait()
	assert.Equal(t, map[string]int{"context": 1}, d.Objects())
}
