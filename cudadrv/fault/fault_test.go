package fault_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/leaks"
)

const granule = sim.DefaultGranularityBytes

func TestMain(m *testing.M) { leaks.Main(m) }

// open wraps a simulated driver and opens its device.
func open(t *testing.T, rules ...fault.Rule) (*fault.Driver, cudadrv.Device) {
	t.Helper()
	drv := fault.Wrap(sim.New(sim.Config{}))
	require.NoError(t, drv.Add(rules...))
	dev, err := drv.Open(0)
	require.NoError(t, err)
	return drv, dev
}

func TestConformance(t *testing.T) {
	for name, set := range map[string]func(t *testing.T, drv *fault.Driver){
		"without rules": func(*testing.T, *fault.Driver) {},
		"with rules that hit nothing": func(t *testing.T, drv *fault.Driver) {
			t.Helper()
			require.NoError(t, drv.Add(
				fault.Rule{Func: "cuMemCreate", First: 1000, Result: cudadrv.Unknown}, fault.Rule{Probability: 1e-300, Result: cudadrv.Unknown},
			))
		},
		"with much capacity": func(_ *testing.T, drv *fault.Driver) {
			drv.SetCapacity(sim.DefaultTotalBytes)
			drv.SetBefore(func(string) {})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, config := range []sim.Config{{}, {Bytes: runtime.GOOS == "linux", TimedKernels: true}} {
				drivertest.Run(t, func(t *testing.T) cudadrv.Driver {
					t.Helper()
					drv := fault.Wrap(sim.New(config))
					set(t, drv)
					return drv
				})
			}
		})
	}
}

func TestTheNthCallsFail(t *testing.T) {
	drv, dev := open(t, fault.Rule{Func: "cuMemCreate", First: 5, Count: 2, Result: cudadrv.OutOfMemory})
	for n := 1; n <= 10; n++ {
		h, err := dev.MemCreate(granule)
		if n != 5 && n != 6 {
			require.NoError(t, err, "call %d", n)
			continue
		}
		assert.ErrorIs(t, err, cudadrv.OutOfMemory, "call %d", n)
		assert.Zero(t, h)
		var callError *cudadrv.CallError
		require.ErrorAs(t, err, &callError)
		assert.Equal(t, "cuMemCreate", callError.Func)
		_, err = dev.EventCreate() // other functions are not counted
		require.NoError(t, err)
	}
	assert.EqualValues(t, 2, drv.Injected())
	assert.EqualValues(t, 10, drv.Calls("cuMemCreate"))
	assert.Zero(t, drv.Calls("cuNothing"))
}

// The wrapped driver never hears of an injected failure.
func TestAFailedCallChangesNothing(t *testing.T) {
	inner := sim.New(sim.Config{})
	drv := fault.Wrap(inner)
	dev, err := drv.Open(0)
	require.NoError(t, err)
	p, err := dev.MemAlloc(granule)
	require.NoError(t, err)

	require.NoError(t, drv.Add(fault.Rule{Func: "cuMemFree", Result: cudadrv.LaunchFailed}))
	before := inner.Device(0).Counts()
	require.ErrorIs(t, dev.MemFree(p), cudadrv.LaunchFailed)
	assert.Equal(t, before, inner.Device(0).Counts())

	drv.Clear()
	require.NoError(t, dev.MemFree(p))
}

func TestRulesCountFromWhenTheyWereAdded(t *testing.T) {
	drv, dev := open(t)
	for range 3 {
		_, err := dev.EventCreate()
		require.NoError(t, err)
	}
	require.NoError(t, drv.Add(fault.Rule{Func: "cuEventCreate", First: 2, Result: cudadrv.Unknown}))
	_, err := dev.EventCreate()
	require.NoError(t, err)
	_, err = dev.EventCreate()
	require.ErrorIs(t, err, cudadrv.Unknown)
	_, err = dev.EventCreate()
	require.NoError(t, err, "First without Count is one call")
}

// Each rule counts every call, Open included, also those that a rule before it makes fail; of two that match a call the first one names the error.
func TestRulesCountCallsThatOthersMakeFail(t *testing.T) {
	rule := func(function string, first uint64, r cudadrv.Result) fault.Rule {
		return fault.Rule{Func: function, First: first, Result: r}
	}
	drv, dev := open(t, rule("cuStreamCreate", 1, cudadrv.Unknown), rule("cuStreamCreate", 2, cudadrv.OutOfMemory),
		rule("*", 5, cudadrv.LaunchFailed), rule("cuStreamCreate", 4, cudadrv.Unknown), rule("cuStreamCreate", 5, cudadrv.Unknown))
	for n, want := range []error{cudadrv.Unknown, cudadrv.OutOfMemory, nil, cudadrv.LaunchFailed, cudadrv.Unknown, nil} {
		_, err := dev.StreamCreate()
		assert.ErrorIs(t, err, want, "call %d", n+1)
	}
	assert.EqualValues(t, 4, drv.Injected())
}

func TestRuleForAllFunctionsAlsoFailsTheDriversOwn(t *testing.T) {
	drv := fault.Wrap(sim.New(sim.Config{}))
	require.NoError(t, drv.Add(fault.Rule{Result: cudadrv.NotInitialized}))
	_, err := drv.DeviceCount()
	require.ErrorIs(t, err, cudadrv.NotInitialized)
	_, err = drv.Open(0)
	require.ErrorIs(t, err, cudadrv.NotInitialized)
	assert.Equal(t, "sim", drv.Name())
}

func TestChanceDependsOnTheSeedAndTheCallAlone(t *testing.T) {
	failures := func(seed uint64) (failed []int) {
		_, dev := open(t, fault.Rule{Func: "cuEventCreate", Probability: 0.1, Seed: seed, Result: cudadrv.Unknown})
		for n := range 2000 {
			if _, err := dev.EventCreate(); err != nil {
				failed = append(failed, n)
			}
		}
		return failed
	}
	one := failures(1)
	assert.InDelta(t, 200, len(one), 60)
	assert.Equal(t, one, failures(1))
	assert.NotEqual(t, one, failures(2))
}

func TestHookRunsBeforeEachCallAndMayPanic(t *testing.T) {
	var seen []string
	drv := fault.Wrap(sim.New(sim.Config{}))
	drv.SetBefore(func(function string) { seen = append(seen, function) })
	dev, err := drv.Open(0)
	require.NoError(t, err)
	require.NoError(t, drv.Add(fault.Rule{Func: "cuMemCreate", First: 1, Result: cudadrv.OutOfMemory}))
	_, err = dev.MemCreate(granule)
	require.Error(t, err)
	_, _, err = dev.MemGetInfo()
	require.NoError(t, err)
	assert.Equal(t, []string{"cuDevicePrimaryCtxRetain", "cuMemCreate", "cuMemGetInfo"}, seen)

	drv.SetBefore(func(string) { panic("as told") })
	assert.PanicsWithValue(t, "as told", func() { _, _ = dev.MemAlloc(1) })
	drv.SetBefore(nil)
	_, err = dev.MemAlloc(1)
	require.NoError(t, err)
}

func TestHookMayBlockWhileOthersCall(t *testing.T) {
	drv, dev := open(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	drv.SetBefore(func(function string) {
		if function == "cuMemUnmap" {
			close(entered)
			<-leave
		}
	})
	var blocked sync.WaitGroup
	blocked.Go(func() { _ = dev.MemUnmap(0, granule) })
	<-entered
	_, err := dev.MemCreate(granule)
	require.NoError(t, err)
	close(leave)
	blocked.Wait()
}

func TestCapacityLimitsHandlesAndPlainAllocationsTogether(t *testing.T) {
	drv, dev := open(t)
	drv.SetCapacity(4 * granule)
	p, err := dev.MemAlloc(2 * granule)
	require.NoError(t, err)
	h, err := dev.MemCreate(2 * granule)
	require.NoError(t, err)
	_, err = dev.MemCreate(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	_, err = dev.MemAlloc(1)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	freeBytes, totalBytes, err := dev.MemGetInfo()
	require.NoError(t, err)
	assert.Zero(t, freeBytes)
	assert.Equal(t, sim.DefaultTotalBytes, totalBytes)

	// A failed free gives nothing back; a successful one does.
	require.ErrorIs(t, dev.MemFree(p+1), cudadrv.InvalidValue)
	require.NoError(t, drv.Add(fault.Rule{Func: "cuMemRelease", First: 1, Result: cudadrv.Unknown}))
	require.ErrorIs(t, dev.MemRelease(h), cudadrv.Unknown)
	_, err = dev.MemCreate(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.NoError(t, dev.MemRelease(h))
	h, err = dev.MemCreate(2 * granule)
	require.NoError(t, err)

	// A capacity below the bytes in use fails further calls only; a larger one permits them.
	drv.SetCapacity(granule)
	_, err = dev.MemCreate(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	freeBytes, _, err = dev.MemGetInfo()
	require.NoError(t, err)
	assert.Zero(t, freeBytes, "no less")
	drv.SetCapacity(5 * granule)
	_, err = dev.MemCreate(granule)
	require.NoError(t, err)
	drv.SetCapacity(fault.Unlimited)
	_, err = dev.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, dev.MemRelease(h))

	// With the last view the memory is gone.
	require.NoError(t, dev.Close())
	drv.SetCapacity(4 * granule)
	dev, err = drv.Open(0)
	require.NoError(t, err)
	_, err = dev.MemCreate(4 * granule)
	require.NoError(t, err)
}

// Calls that the wrapped driver refuses do not change the count.
func TestCapacityCountsWhatTheWrappedDriverDid(t *testing.T) {
	inner := fault.Wrap(sim.New(sim.Config{}))
	outer := fault.Wrap(inner)
	outer.SetCapacity(granule)
	dev, err := outer.Open(0)
	require.NoError(t, err)
	require.NoError(t, inner.Add(fault.Rule{First: 1, Result: cudadrv.Unknown}))
	_, err = dev.MemCreate(granule)
	require.ErrorIs(t, err, cudadrv.Unknown)
	h, err := dev.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, inner.Add(fault.Rule{First: 1, Result: cudadrv.Unknown}))
	require.ErrorIs(t, dev.MemRelease(h), cudadrv.Unknown)
	_, err = dev.MemCreate(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.NoError(t, dev.MemRelease(h))
	h, err = dev.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, dev.MemRelease(h))
	require.NoError(t, dev.Close())
	require.Error(t, dev.Close())
}

func TestCapacityHoldsAmongGoroutines(t *testing.T) {
	const capacity = 16
	drv, dev := open(t)
	drv.SetCapacity(capacity * granule)
	var all sync.WaitGroup
	var mu sync.Mutex
	got := 0
	for range 8 {
		all.Go(func() {
			for range capacity {
				if _, err := dev.MemCreate(granule); err == nil {
					mu.Lock()
					got++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, capacity, got)
}

// Views that are opened and closed among others count in one book, which is empty in the end; each refusal is counted.
func TestViewsAmongGoroutines(t *testing.T) {
	const capacity = 1 // so at least one of two requests is refused
	drv, dev := open(t)
	drv.SetCapacity(capacity * granule)
	before := drv.Injected()
	var all sync.WaitGroup
	var refused atomic.Uint64
	for range 4 {
		all.Go(func() {
			for range 50 {
				view, err := drv.Open(0)
				if !assert.NoError(t, err) {
					return
				}
				first, err := view.MemCreate(granule)
				second, full := view.MemCreate(granule)
				for _, one := range []struct {
					h   cudadrv.Handle
					err error
				}{{first, err}, {second, full}} {
					if one.err == nil {
						assert.NoError(t, view.MemRelease(one.h))
						continue
					}
					assert.ErrorIs(t, one.err, cudadrv.OutOfMemory)
					refused.Add(1)
				}
				assert.NoError(t, view.Close())
			}
		})
	}
	all.Wait()
	assert.Equal(t, refused.Load(), drv.Injected()-before)
	for range capacity {
		_, err := dev.MemCreate(granule)
		require.NoError(t, err)
	}
	_, err := dev.MemCreate(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
}

func TestRulesMayChangeWhileCallsAreMade(t *testing.T) {
	drv, dev := open(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				_, _ = dev.MemCreate(granule)
			}
		})
	}
	for range 100 {
		assert.NoError(t, drv.Add(fault.Rule{Func: "cuMemCreate", Result: cudadrv.OutOfMemory}))
		drv.SetCapacity(granule)
		drv.Clear()
	}
	all.Wait()
	assert.EqualValues(t, 800, drv.Calls("cuMemCreate"))
}

func TestModelledTimePassesThrough(t *testing.T) {
	inner := sim.New(sim.Config{})
	dev, err := fault.Wrap(inner).Open(0)
	require.NoError(t, err)
	_, err = dev.MemCreate(granule)
	require.NoError(t, err)
	modelled, ok := dev.(cudadrv.Modelled)
	require.True(t, ok)
	assert.Equal(t, inner.Device(0).ModelledTime(), modelled.ModelledTime())

	dev, err = fault.Wrap(unmodelled{inner}).Open(0)
	require.NoError(t, err)
	_, ok = dev.(cudadrv.Modelled)
	assert.False(t, ok, "what is not modelled does not become so")
}

// unmodelled hides that a driver's devices are modelled.
type unmodelled struct{ cudadrv.Driver }

func (u unmodelled) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := u.Driver.Open(ordinal)
	return struct{ cudadrv.Device }{dev}, err
}

// A capacity of 0 is one: no memory is free, and each refusal counts as injected.
func TestNoCapacity(t *testing.T) {
	drv, dev := open(t)
	drv.SetCapacity(0)
	free, total, err := dev.MemGetInfo()
	require.NoError(t, err)
	assert.Equal(t, [2]int64{0, sim.DefaultTotalBytes}, [2]int64{free, total})
	_, err = dev.MemAlloc(1)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	_, err = dev.MemCreate(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	assert.EqualValues(t, 2, drv.Injected())
	drv.SetCapacity(fault.Unlimited)
	p, err := dev.MemAlloc(1)
	require.NoError(t, err)
	require.NoError(t, dev.MemFree(p))
	require.NoError(t, dev.Close())
}

// Shareable memory counts in the capacity; a device that has none refuses each call by its name, and nothing is counted.
func TestShareableMemory(t *testing.T) {
	_, dev := open(t)
	without := dev.(cudadrv.ShareableMemory)
	h, err := without.MemCreateShareable(granule)
	assert.Zero(t, h)
	require.ErrorIs(t, err, cudadrv.NotSupported)
	require.ErrorContains(t, err, "cuMemCreate:")
	_, err = without.MemExportToShareableHandle(1)
	require.ErrorIs(t, err, cudadrv.NotSupported)
	require.ErrorContains(t, err, "cuMemExportToShareableHandle:")
	_, err = without.MemImportFromShareableHandle(1)
	require.ErrorIs(t, err, cudadrv.NotSupported)
	require.ErrorContains(t, err, "cuMemImportFromShareableHandle:")
	require.NoError(t, dev.Close())

	drv := fault.Wrap(shareable{sim.New(sim.Config{})})
	drv.SetCapacity(granule)
	dev, err = drv.Open(0)
	require.NoError(t, err)
	with := dev.(cudadrv.ShareableMemory)
	h, err = with.MemCreateShareable(granule)
	require.NoError(t, err)
	_, err = with.MemCreateShareable(granule)
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	fd, err := with.MemExportToShareableHandle(h)
	require.NoError(t, err)
	assert.Equal(t, 7, fd)
	again, err := with.MemImportFromShareableHandle(7)
	require.NoError(t, err)
	assert.EqualValues(t, 9, again)
	require.NoError(t, dev.MemRelease(h))
	h, err = with.MemCreateShareable(granule)
	require.NoError(t, err)
	require.NoError(t, dev.MemRelease(h))
	require.NoError(t, dev.Close())
}

// shareable is a driver whose devices have handles for other processes.
type shareable struct{ cudadrv.Driver }

func (s shareable) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := s.Driver.Open(ordinal)
	return shareableDevice{dev}, err
}

type shareableDevice struct{ cudadrv.Device }

func (d shareableDevice) MemCreateShareable(bytes int64) (cudadrv.Handle, error) {
	return d.MemCreate(bytes)
}
func (shareableDevice) MemExportToShareableHandle(cudadrv.Handle) (int, error)   { return 7, nil }
func (shareableDevice) MemImportFromShareableHandle(int) (cudadrv.Handle, error) { return 9, nil }

// reusing is a driver that gives the handle of a released allocation out again, before MemRelease returns.
type reusing struct {
	cudadrv.Driver
	released *func()
}

func (r reusing) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := r.Driver.Open(ordinal)
	return &reusingDevice{Device: dev, released: r.released}, err
}

type reusingDevice struct {
	cudadrv.Device
	handles  []cudadrv.Handle // under the one that they are given out by
	released *func()
}

func (d *reusingDevice) MemCreate(bytes int64) (cudadrv.Handle, error) {
	h, err := d.Device.MemCreate(bytes)
	d.handles = append(d.handles, h)
	return 1, err
}

func (d *reusingDevice) MemRelease(cudadrv.Handle) error {
	h := d.handles[0]
	d.handles = d.handles[1:]
	err := d.Device.MemRelease(h)
	if then := *d.released; then != nil {
		*d.released = nil
		then()
	}
	return err
}

// The capacity counts an allocation whose handle was given out again while the one before was being released.
func TestAHandleThatIsGivenOutAgainAtOnce(t *testing.T) {
	var released func()
	drv := fault.Wrap(reusing{sim.New(sim.Config{}), &released})
	drv.SetCapacity(4 * granule)
	dev, err := drv.Open(0)
	require.NoError(t, err)
	left := func() int64 {
		t.Helper()
		free, _, err := dev.MemGetInfo()
		require.NoError(t, err)
		return free / granule
	}
	h, err := dev.MemCreate(granule)
	require.NoError(t, err)
	released = func() {
		again, err := dev.MemCreate(2 * granule)
		require.NoError(t, err)
		assert.Equal(t, h, again)
	}
	require.NoError(t, dev.MemRelease(h))
	assert.EqualValues(t, 2, left())
	require.NoError(t, dev.MemRelease(h))
	assert.EqualValues(t, 4, left())
	require.NoError(t, dev.Close())
}
