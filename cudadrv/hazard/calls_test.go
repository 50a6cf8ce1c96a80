package hazard_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
)

// argument is a value for a parameter of a call.
func argument(of reflect.Type) reflect.Value {
	switch of {
	case reflect.TypeFor[func() error]():
		return reflect.ValueOf(func() error { return nil })
	case reflect.TypeFor[[]byte]():
		return reflect.ValueOf(make([]byte, 8))
	case reflect.TypeFor[func()]():
		return reflect.ValueOf(func() {})
	}
	return reflect.Zero(of)
}

// Each call of a checked device makes the driver's call, once, and returns its error. A call that failed changes nothing.
func TestEachCallIsTheDrivers(t *testing.T) {
	others := []string{ // make no call, or none of a driver that may fail
		"Kernel", "Launch", "Now", "Checker", "Context", "Info", "Inner", "ProgramView", "WorkTouching",
		"HoldBegins", "HoldEnds", "GraphKeeps", "SleepBegins", "SleepEnds", "Unwrap", "WithContext", "FuncAttributes",
	}
	of := reflect.TypeFor[*hazard.Device]()
	tried := 0
	for method := range of.Methods() {
		if slices.Contains(others, method.Name) {
			continue
		}
		t.Run(method.Name, func(t *testing.T) {
			faults := fault.Wrap(sim.New(sim.Config{Bytes: true, TimedKernels: true, Devices: 2}))
			driver := hazard.Wrap(faults)
			dev, err := driver.View(0)
			require.NoError(t, err)
			in := []reflect.Value{reflect.ValueOf(dev)}
			for p := 1; p < method.Type.NumIn(); p++ {
				if method.Type.IsVariadic() && p == method.Type.NumIn()-1 {
					break
				}
				in = append(in, argument(method.Type.In(p)))
			}
			require.NoError(t, faults.Add(fault.Rule{Count: fault.Forever, Result: cudadrv.Unknown}))
			before := faults.Injected()
			out := method.Func.Call(in)
			assert.Equal(t, before+1, faults.Injected(), "it makes no call")
			last, ok := reflect.TypeAssert[error](out[len(out)-1])
			require.True(t, ok, "it has no error")
			require.ErrorIs(t, last, cudadrv.Unknown)
			require.NoError(t, driver.Checker(0).Err())
			faults.Clear()
			require.NoError(t, dev.Close())
		})
		tried++
	}
	assert.Greater(t, tried, 50)
}

// Each call that touches memory is an access to its bytes, and to no others, as a read or a write.
func TestEachCallTouchesItsBytes(t *testing.T) {
	const size = 1 << 12
	host := make([]byte, 16)
	for name, c := range map[string]struct {
		call     func(y *yard, p cudadrv.Ptr) error
		from, to cudadrv.Ptr // that it touches
		writes   bool
	}{
		"MemsetD8Async":    {func(y *yard, p cudadrv.Ptr) error { return y.MemsetD8Async(p+64, 1, 16, y.one) }, 64, 80, true},
		"MemsetD16Async":   {func(y *yard, p cudadrv.Ptr) error { return y.MemsetD16Async(p+64, 1, 8, y.one) }, 64, 80, true},
		"MemsetD32Async":   {func(y *yard, p cudadrv.Ptr) error { return y.MemsetD32Async(p+64, 1, 4, y.one) }, 64, 80, true},
		"MemcpyHtoDAsync":  {func(y *yard, p cudadrv.Ptr) error { return y.MemcpyHtoDAsync(p+64, host, y.one) }, 64, 80, true},
		"MemcpyDtoHAsync":  {func(y *yard, p cudadrv.Ptr) error { return y.MemcpyDtoHAsync(host, p+64, y.one) }, 64, 80, false},
		"MemcpyDtoDAsync":  {func(y *yard, p cudadrv.Ptr) error { return y.MemcpyDtoDAsync(p+64, p+size, 16, y.one) }, 64, 80, true},
		"its source":       {func(y *yard, p cudadrv.Ptr) error { return y.MemcpyDtoDAsync(p+size, p+64, 16, y.one) }, 64, 80, false},
		"rows":             {func(y *yard, p cudadrv.Ptr) error { return y.rows(p+64, p+size, 16, 1) }, 64, 80, true},
		"their source":     {func(y *yard, p cudadrv.Ptr) error { return y.rows(p+size, p+64, 16, 1) }, 64, 80, false},
		"no rows":          {func(y *yard, p cudadrv.Ptr) error { return y.rows(p+64, p+size, 16, 0) }, 64, 64, true},
		"a memset of none": {func(y *yard, p cudadrv.Ptr) error { return y.MemsetD16Async(p+64, 1, 0, y.one) }, 64, 64, true},
		"Kernel": {func(y *yard, p cudadrv.Ptr) error {
			return y.Kernel(y.one, time.Second, hazard.Access{Ptr: p + 64, Bytes: 16, Write: true})
		}, 64, 80, true},
		"WorkTouching": {func(y *yard, p cudadrv.Ptr) error {
			w := cudadrv.LibraryWork{Library: "none", Arguments: []cudadrv.LibraryArgument{{Ptr: p + 64, Bytes: 16, Write: true}}}
			return y.WorkTouching(w, y.one, func() error { return nil })
		}, 64, 80, true},
		"work that is not submitted": {func(y *yard, p cudadrv.Ptr) error {
			w := cudadrv.LibraryWork{Library: "none", Arguments: []cudadrv.LibraryArgument{{Ptr: p + 64, Bytes: 16, Write: true}}}
			require.ErrorIs(y.t, y.WorkTouching(w, y.one, func() error { return cudadrv.Unknown }), cudadrv.Unknown)
			return nil
		}, 64, 64, true},
		"work of a graph that reads": {func(y *yard, p cudadrv.Ptr) error {
			return y.GraphLaunch(y.graph(func() {
				require.NoError(y.t, y.LaunchKernelTouching(y.kernel(), block, make([]byte, 8), y.one, []cudadrv.Access{{Ptr: p + 64, Bytes: 16}}))
			}), y.one)
		}, 64, 80, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, offset := range []cudadrv.Ptr{c.from - 1, c.from, c.to - 1, c.to} {
				for _, write := range []bool{false, true} {
					y := newYardOf(t, sim.Config{Bytes: true, TimedKernels: true})
					p, err := y.MemAlloc(2 * size)
					require.NoError(t, err)
					require.NoError(t, c.call(y, p))
					require.NoError(t, y.checker.Err())
					require.NoError(t, y.Kernel(y.two, time.Second, hazard.Access{Ptr: p + offset, Bytes: 1, Write: write}))
					touched := offset >= c.from && offset < c.to
					assert.Equal(t, touched && (write || c.writes), len(y.kinds()) == 1, "byte %d, written %v", offset, write)
				}
			}
		})
	}
}

// rows copies so many rows without a gap.
func (y *yard) rows(dst, src cudadrv.Ptr, width, rows int64) error {
	return y.Memcpy2DAsync(cudadrv.Copy2D{Dst: dst, DstPitch: width, Src: src, SrcPitch: width, WidthBytes: width, Rows: rows}, y.one)
}

// Memory that was freed is not mapped any more.
func TestFreedPlainMemoryIsNotMapped(t *testing.T) {
	y := newYard(t)
	p, err := y.MemAlloc(4096)
	require.NoError(t, err)
	require.NoError(t, y.MemFree(p))
	require.NoError(t, y.checker.Err())
	require.NoError(t, y.Kernel(y.one, 0, hazard.Access{Ptr: p + 4095, Bytes: 1}))
	reports, _ := y.checker.Reports()
	require.Len(t, reports, 1)
	assert.Equal(t, hazard.Unmapped, reports[0].Kind)
	assert.Contains(t, reports[0].Before.Place.String(), "(calls_test.go:")
	y.gpu.Advance(time.Hour)
	assert.Equal(t, y.gpu.Now(), y.Now())
}

// A copy goes from its source to its destination.
func TestWhereACopyGoes(t *testing.T) {
	y := newYardOf(t, sim.Config{Bytes: true, TimedKernels: true})
	p, err := y.MemAlloc(2048)
	require.NoError(t, err)
	require.NoError(t, y.MemsetD8Async(p, 1, 1024, y.one))
	require.NoError(t, y.MemsetD8Async(p+1024, 2, 1024, y.one))
	require.NoError(t, y.MemcpyDtoDAsync(p+1024, p, 1024, y.one))
	got := make([]byte, 1)
	require.NoError(t, y.MemcpyDtoHAsync(got, p+1024, y.one))
	require.NoError(t, y.StreamSynchronize(y.one))
	assert.Equal(t, []byte{1}, got)
}

// A name of an event that is opened after a record has its point.
func TestANameThatIsOpenedLater(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	e, err := y.EventCreateShared()
	require.NoError(t, err)
	name, err := y.IpcGetEventHandle(e)
	require.NoError(t, err)
	y.writes(y.one, 4096)
	require.NoError(t, y.EventRecord(e, y.one))
	other, err := y.IpcOpenEventHandle(name)
	require.NoError(t, err)
	require.NoError(t, y.StreamWaitEvent(y.two, other))
	y.writes(y.two, 4096)
	require.NoError(t, y.checker.Err())
}

// Memory of live buffers may be unmapped while it sleeps, and not before or after.
func TestMemoryThatSleeps(t *testing.T) {
	for name, c := range map[string]struct{ begins, ends, fine bool }{
		"awake": {}, "asleep": {begins: true, fine: true}, "awake again": {begins: true, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.alloc(4096, y.one)
			if c.begins {
				y.SleepBegins(y.one)
			}
			if c.ends {
				y.SleepEnds(y.one)
			}
			require.NoError(t, y.allocator.MemUnmap(y.arena, granule))
			if c.fine {
				require.NoError(t, y.checker.Err())
			} else {
				assert.Equal(t, []hazard.Kind{hazard.EarlyUnmap}, y.kinds())
			}
		})
	}
}

// The allocator's words about buffers and streams are in the reports. A nil checker, or a zero one, checks nothing.
func TestWhatTheAllocatorSays(t *testing.T) {
	y := newYard(t)
	y.checker.NumberStream(y.one, 7)
	b := hazard.Buffer{Ptr: y.arena, Bytes: 512, Stream: y.one, Allocated: site.Here(0)}
	y.checker.Stale(b, hazard.Use{What: "free", Stream: y.one})
	reports, count := y.checker.Reports()
	require.EqualValues(t, 1, count)
	assert.Equal(t, hazard.UseAfterFree, reports[0].Kind)
	assert.EqualValues(t, 7, reports[0].Now.StreamID)
	for _, none := range []*hazard.Checker{nil, {}} {
		none.Allocated(b)
		none.NumberStream(1, 1)
		none.Freed(1, nil)
		none.Stale(b, hazard.Use{})
		none.Closed(nil)
		assert.Zero(t, none.LiveCount())
		require.NoError(t, none.Err())
	}
}

// Reports leave out the functions that the driver's owner names.
func TestHelpersAreLeftOutOfPlaces(t *testing.T) {
	for _, named := range []bool{false, true} {
		driver := hazard.Wrap(sim.New(sim.Config{}))
		if named {
			driver.SetHelpers(site.NewHelpers([]string{"github.com/go-vram/vram/cudadrv/hazard_test.helps"}))
		}
		dev, err := driver.View(0)
		require.NoError(t, err)
		helps(t, dev)
		reports, _ := driver.Checker(0).Reports()
		require.Len(t, reports, 1)
		want := "helps"
		if named {
			want = "TestHelpersAreLeftOutOfPlaces"
		}
		assert.Contains(t, reports[0].Now.Place.String(), want)
		require.NoError(t, dev.Close())
	}
}

func helps(t *testing.T, dev *hazard.Device) {
	t.Helper()
	require.NoError(t, dev.Kernel(0, 0, hazard.Access{Ptr: 1, Bytes: 1}))
}

// Of memory that was freed, and of modules that were unloaded, nothing is kept; and nothing at all after the last Close.
func TestMemoryIsForgotten(t *testing.T) {
	driver, first, second := neighbours(t)
	c := driver.Checker(0)
	for range 3 {
		p, err := first.MemAlloc(4096)
		require.NoError(t, err)
		m, err := first.ModuleLoadData([]byte(".version 7.0\n.global .u32 counter;"))
		require.NoError(t, err)
		_, _, err = first.ModuleGetGlobal(m, "counter")
		require.NoError(t, err)
		assert.Equal(t, 2, c.MemoryCount())
		require.NoError(t, first.ModuleUnload(m))
		require.NoError(t, first.MemFree(p))
		assert.Zero(t, c.MemoryCount())
	}
	_, err := first.MemAlloc(4096)
	require.NoError(t, err)
	e, err := first.EventCreateShared()
	require.NoError(t, err)
	_, err = first.IpcGetEventHandle(e)
	require.NoError(t, err)
	p, err := first.MemAddressReserve(granule)
	require.NoError(t, err)
	h, err := first.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, first.MemMap(p, granule, h))
	require.NoError(t, first.MemSetPeerAccess(p, granule, 1))
	assert.Equal(t, 2, c.MemoryCount())
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
	assert.Zero(t, c.MemoryCount()+c.SharedCount())
}
