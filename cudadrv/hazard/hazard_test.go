package hazard_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/leaks"
)

const granule = sim.DefaultGranularityBytes

func TestMain(m *testing.M) { leaks.Main(m) }

func TestConformance(t *testing.T) {
	for name, wrap := range map[string]func() cudadrv.Driver{
		"program":   func() cudadrv.Driver { return hazard.Wrap(sim.New(sim.Config{})) },
		"allocator": func() cudadrv.Driver { return hazard.Wrap(sim.New(sim.Config{})).Allocator() },
		"running":   func() cudadrv.Driver { return hazard.Wrap(sim.New(sim.Config{Clock: sim.Running})) },
		"over faults": func() cudadrv.Driver {
			return hazard.Wrap(fault.Wrap(sim.New(sim.Config{})))
		},
		"under faults": func() cudadrv.Driver {
			return fault.Wrap(hazard.Wrap(sim.New(sim.Config{})).Allocator())
		},
	} {
		t.Run(name, func(t *testing.T) { drivertest.Run(t, func(*testing.T) cudadrv.Driver { return wrap() }) })
	}
}

// yard is a checked device seen by both sides, and a granule of the allocator's memory.
type yard struct {
	*hazard.Device // the program's
	t              *testing.T
	allocator      cudadrv.Device
	checker        *hazard.Checker
	gpu            *sim.Device
	arena          cudadrv.Ptr
	handle         cudadrv.Handle
	one, two       cudadrv.Stream
}

func newYard(t *testing.T) *yard { t.Helper(); return newYardOf(t, sim.Config{}) }

func newYardOf(t *testing.T, config sim.Config) *yard {
	t.Helper()
	return newYardOver(t, config, func(machine cudadrv.Driver) cudadrv.Driver { return machine })
}

// newYardOver checks a device with something between the simulator and the checker.
func newYardOver(t *testing.T, config sim.Config, between func(cudadrv.Driver) cudadrv.Driver) *yard {
	t.Helper()
	machine := sim.New(config)
	driver := hazard.Wrap(between(machine))
	y := &yard{t: t, checker: driver.Checker(0), gpu: machine.Device(0)}
	var err error
	y.allocator, err = driver.Allocator().Open(0)
	require.NoError(t, err)
	y.Device, err = driver.View(0)
	require.NoError(t, err)
	y.arena, err = y.allocator.MemAddressReserve(granule)
	require.NoError(t, err)
	y.handle, err = y.allocator.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, y.allocator.MemMap(y.arena, granule, y.handle))
	require.NoError(t, y.allocator.MemSetAccess(y.arena, granule))
	y.one, err = y.StreamCreate()
	require.NoError(t, err)
	y.two, err = y.StreamCreate()
	require.NoError(t, err)
	return y
}

func (y *yard) alloc(bytes int64, s cudadrv.Stream) {
	y.checker.Allocated(hazard.Buffer{Ptr: y.arena, Bytes: bytes, Stream: s, Allocated: site.Here(0)})
}

func (y *yard) writes(s cudadrv.Stream, bytes int64) {
	y.t.Helper()
	require.NoError(y.t, y.Kernel(s, time.Millisecond, hazard.Access{Ptr: y.arena, Bytes: bytes, Write: true}))
}

func (y *yard) kinds() (all []hazard.Kind) {
	reports, _ := y.checker.Reports()
	for _, r := range reports {
		all = append(all, r.Kind)
	}
	return all
}

func TestWhatIsSeenOnTheWayToTheDevice(t *testing.T) {
	for name, c := range map[string]struct {
		order func(y *yard)
		fine  bool
	}{
		"nothing": {func(*yard) {}, false},
		"time":    {func(y *yard) { y.gpu.Advance(time.Hour) }, false},
		"an event": {func(y *yard) {
			e, err := y.EventCreate()
			require.NoError(y.t, err)
			require.NoError(y.t, y.EventRecord(e, y.one))
			require.NoError(y.t, y.StreamWaitEvent(y.two, e))
			require.NoError(y.t, y.EventDestroy(e))
		}, true},
		"a query that said no": {func(y *yard) {
			over, err := y.StreamQuery(y.one)
			require.NoError(y.t, err)
			require.False(y.t, over)
		}, false},
		"a query that said yes": {func(y *yard) {
			y.gpu.Advance(time.Second)
			over, err := y.StreamQuery(y.one)
			require.NoError(y.t, err)
			require.True(y.t, over)
		}, true},
		"an event that has passed": {func(y *yard) {
			e, err := y.EventCreate()
			require.NoError(y.t, err)
			require.NoError(y.t, y.EventRecord(e, y.one))
			y.gpu.Advance(time.Second)
			passed, err := y.EventQuery(e)
			require.NoError(y.t, err)
			require.True(y.t, passed)
		}, true},
		"an event that the allocator has looked at": {func(y *yard) {
			e, err := y.EventCreate()
			require.NoError(y.t, err)
			require.NoError(y.t, y.EventRecord(e, y.one))
			require.NoError(y.t, y.allocator.EventSynchronize(e))
		}, false},
		"an event that the allocator has queried": {func(y *yard) {
			e, err := y.EventCreate()
			require.NoError(y.t, err)
			require.NoError(y.t, y.EventRecord(e, y.one))
			y.gpu.Advance(time.Second)
			passed, err := y.allocator.EventQuery(e)
			require.NoError(y.t, err)
			require.True(y.t, passed)
		}, false},
		"a stream that the allocator has queried": {func(y *yard) {
			y.gpu.Advance(time.Second)
			over, err := y.allocator.StreamQuery(y.one)
			require.NoError(y.t, err)
			require.True(y.t, over)
		}, false},
		"an event that was synchronised": {func(y *yard) {
			e, err := y.EventCreate()
			require.NoError(y.t, err)
			require.NoError(y.t, y.EventRecord(e, y.one))
			require.NoError(y.t, y.EventSynchronize(e))
		}, true},
		"a synchronised stream":                 {func(y *yard) { require.NoError(y.t, y.StreamSynchronize(y.one)) }, true},
		"a stream that the allocator has ended": {func(y *yard) { require.NoError(y.t, y.allocator.StreamSynchronize(y.one)) }, true},
		"a synchronised device":                 {func(y *yard) { require.NoError(y.t, y.CtxSynchronize()) }, true},
		"a free of plain memory, which waits": {func(y *yard) {
			p, err := y.MemAlloc(1)
			require.NoError(y.t, err)
			require.NoError(y.t, y.MemFree(p))
		}, true},
		"a call that failed": {func(y *yard) { require.Error(y.t, y.StreamWaitEvent(y.two, 12345)) }, false},
	} {
		for view, of := range map[string]func(y *yard) cudadrv.Device{
			"the driver's view":                  func(y *yard) cudadrv.Device { return y.Device },
			"the program's view of it":           func(y *yard) cudadrv.Device { return cudadrv.ProgramView(y.Device) },
			"the program's view of an allocator": func(y *yard) cudadrv.Device { return cudadrv.ProgramView(y.allocator) },
		} {
			t.Run(name+", "+view, func(t *testing.T) {
				y := newYard(t)
				y.Device = of(y).(*hazard.Device)
				y.alloc(4096, y.one)
				y.writes(y.one, 4096)
				c.order(y)
				y.writes(y.two, 4096)
				if c.fine {
					require.NoError(t, y.checker.Err())
					return
				}
				assert.Equal(t, []hazard.Kind{hazard.Race}, y.kinds())
				assert.ErrorContains(t, y.checker.Err(), "hazard: 1 hazards")
				assert.ErrorContains(t, y.checker.Err(), "(hazard_test.go:")
			})
		}
	}
}

func TestMemsetsAndCopiesAreAccesses(t *testing.T) {
	y := newYard(t)
	p, err := y.MemAlloc(8192)
	require.NoError(t, err)
	require.NoError(t, y.MemsetD8Async(p, 0, 4096, y.one))
	require.NoError(t, y.MemcpyDtoDAsync(p+4096, p, 4096, y.one))
	require.NoError(t, y.checker.Err())
	require.NoError(t, y.MemcpyDtoDAsync(p+4096, p, 1, y.two))
	reports, _ := y.checker.Reports()
	require.Len(t, reports, 2)
	assert.Equal(t, "copy reads", reports[0].Now.What)
	assert.Equal(t, "memset writes", reports[0].Before.What)
	assert.Equal(t, "copy writes", reports[1].Now.What)
	assert.Equal(t, "copy writes", reports[1].Before.What)
	require.Error(t, y.MemsetD8Async(0x10, 0, 1, y.one), "the simulator refuses it, and nothing was done")
	assert.Len(t, y.kinds(), 2)
}

func TestKernelsBesideBuffers(t *testing.T) {
	y := newYard(t)
	y.writes(y.one, 1)
	y.alloc(512, y.one)
	y.checker.Freed(y.arena, site.Here(0))
	y.writes(y.one, 1)
	require.NoError(t, y.Kernel(y.one, 0, hazard.Access{Ptr: 0x10, Bytes: 1}))
	assert.Equal(t, []hazard.Kind{hazard.NeverAllocated, hazard.UseAfterFree, hazard.Unmapped}, y.kinds())
}

func TestEarlyUnmapAndEarlyReuse(t *testing.T) {
	y := newYard(t)
	y.alloc(512, y.one)
	y.writes(y.one, 512)
	y.checker.Freed(y.arena, site.Here(0))
	y.alloc(512, y.two)
	assert.Equal(t, []hazard.Kind{hazard.EarlyReuse}, y.kinds())
	y.writes(y.two, 512)
	y.checker.Freed(y.arena, site.Here(0))
	require.NoError(t, y.allocator.MemUnmap(y.arena, granule))
	assert.Equal(t, []hazard.Kind{hazard.EarlyReuse, hazard.EarlyUnmap}, y.kinds())
	reports, _ := y.checker.Reports()
	assert.Contains(t, reports[1].Now.Place.String(), "(hazard_test.go:")
}

// A call that waits orders after the work before it, and not after work that is submitted while it waits.
func TestWorkSubmittedDuringAWaitIsNotOver(t *testing.T) {
	for function, wait := range map[string]func(y *yard, e cudadrv.Event, own cudadrv.Ptr) error{
		"cuStreamSynchronize": func(y *yard, _ cudadrv.Event, _ cudadrv.Ptr) error { return y.StreamSynchronize(y.one) },
		"cuCtxSynchronize":    func(y *yard, _ cudadrv.Event, _ cudadrv.Ptr) error { return y.CtxSynchronize() },
		"cuEventSynchronize":  func(y *yard, e cudadrv.Event, _ cudadrv.Ptr) error { return y.EventSynchronize(e) },
		"cuMemFree":           func(y *yard, _ cudadrv.Event, own cudadrv.Ptr) error { return y.MemFree(own) },
	} {
		for _, during := range []bool{false, true} { // whether there is such work, or all is submitted before
			var faults *fault.Driver
			y := newYardOver(t, sim.Config{}, func(inner cudadrv.Driver) cudadrv.Driver { faults = fault.Wrap(inner); return faults })
			y.alloc(4096, y.one)
			own, err := y.MemAlloc(4096)
			require.NoError(t, err)
			e, err := y.EventCreate()
			require.NoError(t, err)
			work := func() {
				require.NoError(t, y.MemsetD8Async(y.arena, 0, 4096, y.one))
				require.NoError(t, y.EventRecord(e, y.one))
			}
			work()
			waits := 0
			faults.SetBefore(func(called string) {
				if called != function {
					return
				}
				if waits++; during {
					work()
				}
			})
			require.NoError(t, wait(y, e, own))
			faults.SetBefore(nil)
			require.Equal(t, 1, waits, function)
			require.NoError(t, y.MemsetD8Async(y.arena, 0, 4096, y.two))
			if during {
				assert.Equal(t, []hazard.Kind{hazard.Race}, y.kinds(), function)
			} else {
				assert.Empty(t, y.kinds(), function)
			}
		}
	}
}

func TestWhatIsToldAtOnce(t *testing.T) {
	y := newYard(t)
	var told []hazard.Kind
	y.checker.OnReport(func(r hazard.Report) {
		_, count := y.checker.Reports() // under no lock
		told = append(told, r.Kind)
		assert.EqualValues(t, len(told), count)
	})
	y.writes(y.one, 1)
	assert.Equal(t, []hazard.Kind{hazard.NeverAllocated}, told)
	y.checker.OnReport(nil)
	y.writes(y.two, 1)
	assert.Len(t, told, 1)
}

// The last Close forgets the device's memory, in the checker too; reports stay.
func TestTheLastClose(t *testing.T) {
	y := newYard(t)
	y.alloc(512, y.one)
	y.writes(y.one, 1024)
	assert.Equal(t, 1, y.checker.LiveCount())
	y.checker.Closed(site.Here(0))
	assert.Zero(t, y.checker.LiveCount())
	y.alloc(512, y.one)
	require.NoError(t, y.allocator.Close())
	assert.Equal(t, 1, y.checker.LiveCount(), "it is not the last one")
	require.NoError(t, y.Close())
	assert.Zero(t, y.checker.LiveCount())
	assert.Len(t, y.kinds(), 1)
	require.Error(t, y.Close())
}

// lasting opens views that may be closed twice.
type lasting struct{ cudadrv.Driver }

type lastingDevice struct{ cudadrv.Device }

func (l lasting) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := l.Driver.Open(ordinal)
	return lastingDevice{dev}, err
}

func (lastingDevice) Close() error { return nil }

// A view that is closed several times is one: the memory of the others stays known until the last of them closes.
func TestAViewThatIsClosedTwice(t *testing.T) {
	driver := hazard.Wrap(lasting{sim.New(sim.Config{})})
	c := driver.Checker(0)
	for range 2 { // the second round begins with no view
		first, err := driver.View(0)
		require.NoError(t, err)
		second, err := driver.Allocator().Open(0)
		require.NoError(t, err)
		third, err := driver.Open(0)
		require.NoError(t, err)
		_, err = third.MemAlloc(granule)
		require.NoError(t, err)
		for _, view := range []cudadrv.Device{first, second} {
			for range 4 {
				require.NoError(t, view.Close())
				assert.Equal(t, 1, c.MemoryCount())
			}
		}
		require.NoError(t, third.Close())
		assert.Zero(t, c.MemoryCount(), "the last view has gone")
	}
}

// deaf hides the simulated kernels.
type deaf struct{ cudadrv.Driver }

func (d deaf) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := d.Driver.Open(ordinal)
	return struct{ cudadrv.Device }{dev}, err
}

func TestADeviceWithoutKernels(t *testing.T) {
	dev, err := hazard.Wrap(deaf{sim.New(sim.Config{})}).View(0)
	require.NoError(t, err)
	require.ErrorIs(t, dev.Launch(0, time.Second), cudadrv.NotSupported)
	assert.Zero(t, dev.Now())
	plain, err := hazard.Wrap(deaf{sim.New(sim.Config{})}).Open(0)
	require.NoError(t, err)
	_, isModelled := plain.(cudadrv.Modelled)
	assert.False(t, isModelled)
	require.NoError(t, dev.Close())
	_, err = hazard.Wrap(sim.New(sim.Config{})).View(7)
	require.ErrorIs(t, err, cudadrv.ErrNoDevice)
}

// Plain memory goes back and forth between goroutines that free and allocate the same addresses.
func TestPlainMemoryOfManyGoroutines(t *testing.T) {
	y := newYard(t)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				p, err := y.MemAlloc(4096)
				assert.NoError(t, err)
				assert.NoError(t, y.MemsetD8Async(p, 0, 4096, y.one))
				assert.NoError(t, y.MemFree(p))
			}
		})
	}
	all.Wait()
	require.NoError(t, y.checker.Err())
}

// A checker is read while others work, and while views of its device are opened and closed.
func TestReadersAmongGoroutines(t *testing.T) {
	driver := hazard.Wrap(sim.New(sim.Config{}))
	checker := driver.Checker(0)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 50 {
				view, err := driver.View(0)
				if !assert.NoError(t, err) {
					return
				}
				p, err := view.MemAlloc(4096)
				assert.NoError(t, err)
				s, err := view.StreamCreate()
				assert.NoError(t, err)
				assert.NoError(t, view.MemsetD8Async(p, 0, 4096, s))
				assert.NoError(t, errors.Join(view.StreamDestroy(s), view.MemFree(p), view.Close()))
			}
		})
		all.Go(func() {
			for range 200 {
				assert.NoError(t, checker.Err())
				assert.Zero(t, checker.LiveCount())
			}
		})
	}
	all.Wait()
}

// able is a device that says it can do everything.
type able struct{ cudadrv.Driver }

func (a able) Open(ordinal int) (cudadrv.Device, error) {
	dev, err := a.Driver.Open(ordinal)
	return ableDevice{dev}, err
}

type ableDevice struct{ cudadrv.Device }

func (ableDevice) Info() cudadrv.Info { return cudadrv.Info{Capabilities: ^cudadrv.Capability(0)} }

// A checked device lacks the capabilities whose order it cannot see; it has all others.
func TestCapabilities(t *testing.T) {
	dev, err := hazard.Wrap(able{sim.New(sim.Config{})}).Allocator().Open(0)
	require.NoError(t, err)
	has := dev.Info().Capabilities
	assert.False(t, has.Has(cudadrv.HostCalls))
	assert.True(t, has.Has(cudadrv.VirtualMemory|cudadrv.PinnedHost|cudadrv.CaptureInformation))
	require.NoError(t, dev.Close())
}
