package fault_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// The views of a device share its capacity, and what one of them frees another one may take.
func TestViewsShareTheCapacity(t *testing.T) {
	drv, first := open(t)
	second, err := drv.Open(0)
	require.NoError(t, err)
	drv.SetCapacity(3 * granule)
	p, err := first.MemAlloc(2 * granule)
	require.NoError(t, err)
	_, err = second.MemAlloc(2 * granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.NoError(t, second.MemFree(p))
	q, err := second.MemAlloc(3 * granule)
	require.NoError(t, err)
	drv.SetCapacity(granule)
	for _, none := range []int64{0, -1} { // the wrapped driver refuses them, also beyond the capacity
		_, err = first.MemAlloc(none)
		require.ErrorIs(t, err, cudadrv.InvalidValue)
		_, err = first.MemCreate(none)
		require.ErrorIs(t, err, cudadrv.InvalidValue)
	}
	require.NoError(t, first.MemFree(q))
	require.NoError(t, second.Close())

	_, err = first.MemAlloc(granule)
	require.NoError(t, err)
	third, err := drv.Open(0) // after the end of a view, not of the last one
	require.NoError(t, err)
	_, err = third.MemAlloc(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.NoError(t, third.Close())
}

// Calls at the same time never exceed a capacity together, and none of their bytes is lost.
func TestManyGoroutinesShareTheCapacity(t *testing.T) {
	drv, dev := open(t)
	const goroutines = 4
	drv.SetCapacity(goroutines * granule)
	var all sync.WaitGroup
	begin := make(chan struct{})
	for range goroutines {
		all.Go(func() {
			<-begin
			for range 200 {
				p, err := dev.MemAlloc(granule)
				assert.NoError(t, err)
				assert.NoError(t, dev.MemFree(p))
			}
		})
	}
	close(begin)
	all.Wait()
	p, err := dev.MemAlloc(goroutines * granule)
	require.NoError(t, err, "all of it is free")
	_, err = dev.MemAlloc(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.NoError(t, dev.MemFree(p))
}

// Views that open, and rules that are added, at the same time are all there: the views of a device are of one account, and each rule
// fails its call.
func TestManyGoroutinesOpenViews(t *testing.T) {
	const goroutines, rounds = 4, 50
	for range rounds {
		drv := fault.Wrap(sim.New(sim.Config{}))
		drv.SetCapacity(goroutines * granule)
		var views [goroutines]cudadrv.Device
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range views {
			all.Go(func() {
				<-begin
				var err error
				views[i], err = drv.Open(0)
				assert.NoError(t, err)
				for k := range 3 {
					assert.NoError(t, drv.Add(fault.Rule{Func: "cuMemGetInfo", First: uint64(3*i + k + 1), Result: cudadrv.Unknown})) //nolint:gosec // small
				}
			})
		}
		close(begin)
		all.Wait()
		for _, dev := range views {
			_, err := dev.MemAlloc(granule)
			require.NoError(t, err)
		}
		for _, dev := range views {
			_, err := dev.MemAlloc(granule)
			require.ErrorIs(t, err, cudadrv.OutOfMemory)
		}
		for range 3 * goroutines {
			_, _, err := views[0].MemGetInfo()
			require.ErrorIs(t, err, cudadrv.Unknown)
		}
		_, _, err := views[0].MemGetInfo()
		require.NoError(t, err)
	}
}

// lasting opens views that may be closed twice.
type lasting struct{ cudadrv.Driver }

type lastingDevice struct{ cudadrv.Device }

func (l lasting) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := l.Driver.Open(ordinal)
	return lastingDevice{dev}, err
}

func (lastingDevice) Close() error { return nil }

// A view that is closed twice is one: the memory of the others counts.
func TestAViewThatIsClosedTwice(t *testing.T) {
	drv := fault.Wrap(lasting{sim.New(sim.Config{})})
	drv.SetCapacity(granule)
	first, err := drv.Open(0)
	require.NoError(t, err)
	second, err := drv.Open(0)
	require.NoError(t, err)
	_, err = first.MemAlloc(granule)
	require.NoError(t, err)
	for range 3 {
		require.NoError(t, first.Close())
	}
	third, err := drv.Open(0)
	require.NoError(t, err)
	_, err = third.MemAlloc(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.NoError(t, second.Close())
	require.NoError(t, third.Close())
	assert.Zero(t, drv.Booked(), "the last view has gone")
}

// failing opens devices whose calls that take or give back memory panic while it says so.
type failing struct {
	cudadrv.Driver
	panics *bool
}

type failingDevice struct {
	cudadrv.Device
	cudadrv.ShareableMemory // nil: its other methods are not called
	panics                  *bool
}

func (f failing) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := f.Driver.Open(ordinal)
	return failingDevice{dev, nil, f.panics}, err
}

func (d failingDevice) fail() {
	if *d.panics {
		panic("as told")
	}
}

func (d failingDevice) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	d.fail()
	return d.Device.MemAlloc(bytes)
}

func (d failingDevice) MemFree(p cudadrv.Ptr) error { d.fail(); return d.Device.MemFree(p) }

func (d failingDevice) MemCreate(bytes int64) (cudadrv.Handle, error) {
	d.fail()
	return d.Device.MemCreate(bytes)
}

func (d failingDevice) MemCreateShareable(bytes int64) (cudadrv.Handle, error) {
	d.fail()
	return d.Device.MemCreate(bytes)
}

func (d failingDevice) MemRelease(h cudadrv.Handle) error { d.fail(); return d.Device.MemRelease(h) }

// A call that panics counts as one that failed: memory that it would take stays free, and memory that it would give back stays in use.
func TestCallsThatPanicCountAsFailed(t *testing.T) {
	panics := false
	drv := fault.Wrap(failing{sim.New(sim.Config{}), &panics})
	dev, err := drv.Open(0)
	require.NoError(t, err)
	drv.SetCapacity(2 * granule)
	shareable := dev.(cudadrv.ShareableMemory)
	for name, c := range map[string]struct{ take, free func() error }{
		"MemAlloc": twice(dev.MemAlloc, dev.MemFree), "MemCreate": twice(dev.MemCreate, dev.MemRelease),
		"MemCreateShareable": twice(shareable.MemCreateShareable, dev.MemRelease),
	} {
		panics = true
		assert.PanicsWithValue(t, "as told", func() { _ = c.take() }, name)
		panics = false
		assert.Zero(t, drv.Booked(), name)
		require.NoError(t, c.take(), name) // all of the capacity
		panics = true
		assert.PanicsWithValue(t, "as told", func() { _ = c.free() }, name)
		panics = false
		assert.Equal(t, 1, drv.Booked(), name)
		_, err := dev.MemAlloc(1)
		require.ErrorIs(t, err, cudadrv.OutOfMemory, name)
		require.NoError(t, c.free(), name)
		assert.Zero(t, drv.Booked(), name)
	}
}

// twice returns calls that take two granules, and give them back.
func twice[K cudadrv.Ptr | cudadrv.Handle](take func(int64) (K, error), free func(K) error) struct{ take, free func() error } {
	var key K
	return struct{ take, free func() error }{
		func() (err error) { key, err = take(2 * granule); return err },
		func() error { return free(key) },
	}
}

// Nothing is kept of memory that was given back.
func TestFreedMemoryIsForgotten(t *testing.T) {
	drv, dev := open(t)
	for range 3 {
		p, err := dev.MemAlloc(granule)
		require.NoError(t, err)
		h, err := dev.MemCreate(granule)
		require.NoError(t, err)
		assert.Equal(t, 2, drv.Booked())
		require.NoError(t, dev.MemFree(p))
		require.NoError(t, dev.MemRelease(h))
		assert.Zero(t, drv.Booked())
	}
}

// A probability of 1 is each call. A call fails where its number is below the probability, and not where it is that.
func TestBoundsOfProbabilities(t *testing.T) {
	const seed = 7
	number := fault.Chance(seed, 1)
	for _, c := range []struct {
		probability float64
		fails       bool
	}{{1, true}, {number, false}, {number + 1e-9, true}, {number - 1e-9, false}} {
		drv, dev := open(t)
		require.NoError(t, drv.Add(fault.Rule{Func: "cuEventCreate", Probability: c.probability, Seed: seed, Result: cudadrv.Unknown}))
		_, err := dev.EventCreate()
		assert.Equal(t, c.fails, err != nil, "%v", c.probability)
	}
}

// A rule that names no first call begins with the next one, also where it has a count.
func TestARuleWithoutAFirstCall(t *testing.T) {
	drv, dev := open(t)
	require.NoError(t, drv.Add(fault.Rule{Func: "cuEventCreate", Count: 2, Result: cudadrv.Unknown}))
	for call := range 3 {
		_, err := dev.EventCreate()
		assert.Equal(t, call < 2, err != nil, "call %d", call)
	}
}
