package hazard_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
)

const stepText = ".version 7.0\n.target sm_70\n.entry step(.param .u64 p) { ret; }"

var block = cudadrv.Geometry{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 1, Y: 1, Z: 1}}

// kernel loads a kernel with one parameter.
func (y *yard) kernel() cudadrv.Function {
	y.t.Helper()
	m, err := y.ModuleLoadData([]byte(stepText))
	require.NoError(y.t, err)
	f, err := y.ModuleGetFunction(m, "step")
	require.NoError(y.t, err)
	return f
}

// whole returns an access of so many bytes of the arena.
func (y *yard) whole(bytes int64, write bool) []cudadrv.Access {
	return []cudadrv.Access{{Ptr: y.arena, Bytes: bytes, Write: write}}
}

func (y *yard) launch(f cudadrv.Function, s cudadrv.Stream, accesses []cudadrv.Access) {
	y.t.Helper()
	require.NoError(y.t, y.LaunchKernelTouching(f, block, make([]byte, 8), s, accesses))
}

// joins orders the second stream after the first.
func (y *yard) joins(second, first cudadrv.Stream) {
	y.t.Helper()
	e, err := y.EventCreate()
	require.NoError(y.t, err)
	require.NoError(y.t, y.EventRecord(e, first))
	require.NoError(y.t, y.StreamWaitEvent(second, e))
	require.NoError(y.t, y.EventDestroy(e))
}

func TestKernelsThatSayWhatTheyTouch(t *testing.T) {
	var _ cudadrv.CheckedKernels = (*hazard.Device)(nil)
	y := newYard(t)
	f := y.kernel()
	y.alloc(4096, y.one)
	y.launch(f, y.one, y.whole(4096, true))
	require.NoError(t, y.LaunchKernel(f, block, make([]byte, 8), y.two))
	require.NoError(t, y.checker.Err(), "its accesses are unknown")
	require.Error(t, y.LaunchKernelTouching(f, block, nil, y.two, y.whole(4096, true)), "refused, and nothing was done")
	require.NoError(t, y.checker.Err())
	y.launch(f, y.two, y.whole(1, false))
	reports, _ := y.checker.Reports()
	require.Len(t, reports, 1)
	assert.Equal(t, hazard.Race, reports[0].Kind)
	assert.Equal(t, "kernel reads", reports[0].Now.What)
	assert.Contains(t, reports[0].Now.Place.String(), "compute_test.go")
}

// A launch counts for the order, even if its kernel's accesses are unknown.
func TestKernelsWithoutAccessesAreInTheOrder(t *testing.T) {
	y := newYard(t)
	f := y.kernel()
	y.alloc(4096, y.one)
	y.launch(f, y.one, y.whole(4096, true))
	require.NoError(t, y.LaunchKernel(f, block, make([]byte, 8), y.one))
	y.joins(y.two, y.one)
	y.launch(f, y.two, y.whole(4096, true))
	require.NoError(t, y.checker.Err())
}

func TestVariablesOfModulesAreMemory(t *testing.T) {
	y := newYard(t)
	m, err := y.ModuleLoadData([]byte(".version 7.0\n.global .u32 counter;"))
	require.NoError(t, err)
	for range 2 {
		p, bytes, err := y.ModuleGetGlobal(m, "counter")
		require.NoError(t, err)
		require.NoError(t, y.MemsetD8Async(p, 0, bytes, y.one))
	}
	require.NoError(t, y.checker.Err())
	require.NoError(t, y.ModuleUnload(m))
	assert.Equal(t, []hazard.Kind{hazard.EarlyUnmap}, y.kinds(), "the memset may still run")
	reports, _ := y.checker.Reports()
	assert.Contains(t, reports[0].Now.Place.String(), "(compute_test.go:")
}

func TestWideFillsAndRowsAreAccesses(t *testing.T) {
	y := newYard(t)
	p, err := y.MemAlloc(8192)
	require.NoError(t, err)
	// Two tiles side by side, each of a stream of its own.
	tile := func(at cudadrv.Ptr, s cudadrv.Stream) error {
		return y.Memcpy2DAsync(cudadrv.Copy2D{Dst: p + at, DstPitch: 64, Src: p + 4096 + at, SrcPitch: 64, WidthBytes: 32, Rows: 8}, s)
	}
	require.NoError(t, tile(0, y.one))
	require.NoError(t, tile(32, y.two))
	require.NoError(t, y.checker.Err())
	require.NoError(t, tile(16, y.two), "this one reaches into the first")
	require.NoError(t, y.MemsetD32Async(p+4096, 0, 8, y.two))
	require.NoError(t, y.MemsetD16Async(p+4096+64, 0, 1, y.two))
	require.NoError(t, y.MemsetD16Async(p+4096+64, 0, 0, y.two))
	reports, _ := y.checker.Reports()
	var texts []string
	for _, r := range reports {
		assert.Equal(t, hazard.Race, r.Kind)
		texts = append(texts, r.Now.What+" / "+r.Before.What)
	}
	assert.Equal(t, []string{
		"copy of rows writes / copy of rows writes", "memset writes / copy of rows reads", "memset writes / copy of rows reads",
	}, texts)
	require.NoError(t, y.Memcpy2DAsync(cudadrv.Copy2D{Dst: p, Src: p + 4096, DstPitch: 8, SrcPitch: 8, WidthBytes: 8, Rows: 0}, y.one))
	require.Error(t, y.Memcpy2DAsync(cudadrv.Copy2D{Dst: p, Src: p + 4096, DstPitch: 1, SrcPitch: 8, WidthBytes: 8, Rows: 2}, y.one))
}

// A pitch of 0 will do for one row, and the driver takes it for several.
func TestRowsWithoutAPitchAreAccesses(t *testing.T) {
	for rows, want := range map[int64][]hazard.Kind{0: nil, 1: {hazard.Race, hazard.Race}, 4: {hazard.Race, hazard.Race}} {
		y := newYard(t)
		p, err := y.MemAlloc(8192)
		require.NoError(t, err)
		require.NoError(t, y.Memcpy2DAsync(cudadrv.Copy2D{Dst: p, Src: p + 4096, WidthBytes: 32, Rows: rows}, y.one))
		require.NoError(t, y.MemsetD8Async(p+31, 1, 1, y.two))
		require.NoError(t, y.MemsetD8Async(p+4096+31, 1, 1, y.two))
		assert.Equal(t, want, y.kinds(), "%d rows", rows)
	}
}

// A copy of rows touches each of its bytes and no other, however close the rows are.
func TestACopyOfRowsTouchesItsRows(t *testing.T) {
	const at = 4096
	for name, c := range map[string]struct {
		rows  cudadrv.Copy2D // from 0 on to at
		bytes map[cudadrv.Ptr]bool
	}{
		"without a gap": {cudadrv.Copy2D{DstPitch: 8, SrcPitch: 8, WidthBytes: 8, Rows: 4}, map[cudadrv.Ptr]bool{0: true, 8: true, 31: true, 32: false}},
		"with one":      {cudadrv.Copy2D{DstPitch: 9, SrcPitch: 9, WidthBytes: 8, Rows: 2}, map[cudadrv.Ptr]bool{7: true, 8: false, 9: true, 16: true, 17: false}},
		"one row":       {cudadrv.Copy2D{DstPitch: 64, SrcPitch: 64, WidthBytes: 8, Rows: 1}, map[cudadrv.Ptr]bool{0: true, 7: true, 8: false, 64: false}},
		"one byte":      {cudadrv.Copy2D{DstPitch: 1, SrcPitch: 1, WidthBytes: 1, Rows: 1}, map[cudadrv.Ptr]bool{0: true, 1: false}},
	} {
		for offset, touched := range c.bytes {
			for _, side := range []cudadrv.Ptr{0, at} {
				y := newYard(t)
				p, err := y.MemAlloc(2 * at)
				require.NoError(t, err)
				c.rows.Src, c.rows.Dst = p, p+at
				require.NoError(t, y.Memcpy2DAsync(c.rows, y.one))
				require.NoError(t, y.MemsetD8Async(p+side+offset, 1, 1, y.two))
				assert.Equal(t, touched, len(y.kinds()) == 1, "%s: byte %d of side %d", name, offset, side)
			}
		}
	}
}

func TestTheTimeBetweenEventsOrders(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	begin, err := y.EventCreateTimed()
	require.NoError(t, err)
	end, err := y.EventCreateTimed()
	require.NoError(t, err)
	require.NoError(t, y.EventRecord(begin, y.one))
	y.writes(y.one, 4096)
	require.NoError(t, y.EventRecord(end, y.one))
	_, err = y.EventElapsedTime(begin, end)
	require.ErrorIs(t, err, cudadrv.NotReady)
	y.gpu.Advance(time.Hour)
	_, err = y.EventElapsedTime(begin, end)
	require.NoError(t, err)
	y.writes(y.two, 4096)
	require.NoError(t, y.checker.Err())
}

// The time between two events orders after both: also where neither is after the other.
func TestTheTimeBetweenEventsOfTwoStreamsOrders(t *testing.T) {
	for _, first := range []bool{true, false} {
		y := newYard(t)
		y.alloc(4096, y.one)
		y.writes(y.one, 4096)
		begin, err := y.EventCreateTimed()
		require.NoError(t, err)
		end, err := y.EventCreateTimed()
		require.NoError(t, err)
		of := []cudadrv.Stream{y.one, y.two}
		if !first {
			of[0], of[1] = of[1], of[0]
		}
		require.NoError(t, y.EventRecord(begin, of[0]))
		require.NoError(t, y.EventRecord(end, of[1]))
		y.gpu.Advance(time.Hour)
		_, err = y.EventElapsedTime(begin, end)
		require.NoError(t, err)
		y.writes(y.two, 4096)
		require.NoError(t, y.checker.Err(), "the stream that wrote has the first event: %v", first)
	}
}

func TestAnEventWithTwoNamesOrders(t *testing.T) {
	y := newYard(t)
	y.alloc(4096, y.one)
	e, err := y.EventCreateShared()
	require.NoError(t, err)
	name, err := y.IpcGetEventHandle(e)
	require.NoError(t, err)
	other, err := y.IpcOpenEventHandle(name)
	require.NoError(t, err)
	y.writes(y.one, 4096)
	require.NoError(t, y.EventRecord(e, y.one))
	require.NoError(t, y.EventDestroy(e))
	require.NoError(t, y.StreamWaitEvent(y.two, other))
	y.writes(y.two, 4096)
	require.NoError(t, y.checker.Err())
}

func TestBlockingStreamsAreInTheOrderOfTheDefaultStream(t *testing.T) {
	y := newYard(t)
	s, err := y.StreamCreateBlocking()
	require.NoError(t, err)
	y.alloc(4096, s)
	y.writes(s, 4096)
	y.writes(0, 4096)
	y.writes(s, 4096)
	require.NoError(t, y.checker.Err())
	y.writes(y.one, 4096)
	assert.Equal(t, []hazard.Kind{hazard.Race}, y.kinds())
}

// neighbours returns two checked devices of one driver.
func neighbours(t *testing.T) (driver *hazard.Driver, first, second *hazard.Device) {
	t.Helper()
	driver = hazard.Wrap(sim.New(sim.Config{Devices: 2}))
	first, err := driver.View(0)
	require.NoError(t, err)
	second, err = driver.View(1)
	require.NoError(t, err)
	return driver, first, second
}

func TestCopiesBetweenDevicesAreAccesses(t *testing.T) {
	driver, first, second := neighbours(t)
	p, err := first.MemAlloc(4096)
	require.NoError(t, err)
	q, err := second.MemAlloc(4096)
	require.NoError(t, err)
	s, err := first.StreamCreate()
	require.NoError(t, err)
	require.NoError(t, first.MemsetD8Async(p, 0, 4096, 0))
	require.NoError(t, second.MemcpyPeerAsync(q, second.Context(), p, first.Context(), 4096, s), "a stream of the other one: not seen")
	require.NoError(t, driver.Checker(1).Err())
	require.NoError(t, first.MemcpyPeerAsync(q, second.Context(), p, first.Context(), 4096, s))
	require.NoError(t, driver.Checker(1).Err())
	require.ErrorContains(t, driver.Checker(0).Err(), "copy between devices reads")
	u, err := second.StreamCreate()
	require.NoError(t, err)
	require.NoError(t, second.MemsetD8Async(q, 0, 4096, 0))
	require.NoError(t, second.MemcpyPeerAsync(q, second.Context(), p, first.Context(), 4096, u))
	require.ErrorContains(t, driver.Checker(1).Err(), "copy between devices writes")
}

func TestMemoryOfAnotherDevice(t *testing.T) {
	driver, first, second := neighbours(t)
	p, err := first.MemAddressReserve(granule)
	require.NoError(t, err)
	h, err := first.MemCreate(granule)
	require.NoError(t, err)
	require.NoError(t, first.MemMap(p, granule, h))
	touch := func(d *hazard.Device) { require.NoError(t, d.Kernel(0, time.Second, hazard.Access{Ptr: p, Bytes: 8})) }
	kinds := func(ordinal int) (all []hazard.Kind) {
		reports, _ := driver.Checker(ordinal).Reports()
		for _, r := range reports {
			all = append(all, r.Kind)
		}
		return all
	}
	require.NoError(t, first.MemSetPeerAccess(p, granule, 1))
	touch(second)
	assert.Empty(t, kinds(1))
	touch(first)
	assert.Equal(t, []hazard.Kind{hazard.Unmapped}, kinds(0), "the other one has access, this one has not")
	require.NoError(t, first.MemSetPeerAccess(p, granule, 0))
	require.Error(t, first.MemSetPeerAccess(p, granule, 2))
	touch(first)
	assert.Len(t, kinds(0), 1)
	require.NoError(t, first.CtxSynchronize())
	require.NoError(t, first.MemUnmap(p, granule))
	assert.Len(t, kinds(0), 1)
	assert.Equal(t, []hazard.Kind{hazard.EarlyUnmap}, kinds(1), "the kernel of the other device may still run")
	touch(second)
	assert.Equal(t, []hazard.Kind{hazard.EarlyUnmap, hazard.Unmapped}, kinds(1))
	require.NoError(t, first.Close())
	require.NoError(t, second.Close())
}

// A report's place in the program is the call, for every call.
func TestPlacesOfLaunches(t *testing.T) {
	y := newYard(t)
	y.alloc(512, y.one)
	y.checker.Freed(y.arena, site.Here(0))
	x := y.graph(func() { require.NoError(t, y.MemsetD8Async(y.arena, 0, 8, y.one)) })
	require.NoError(t, y.GraphLaunch(x, y.one))
	reports, _ := y.checker.Reports()
	require.Len(t, reports, 1)
	assert.Contains(t, reports[0].Now.Place.String(), "TestPlacesOfLaunches")
	assert.Regexp(t, `^memset, captured at .*TestPlacesOfLaunches.*\(compute_test.go:\d+\), writes$`, reports[0].Now.What)
}

// The name of a shared event is forgotten with the event.
func TestNamesOfDestroyedEventsAreForgotten(t *testing.T) {
	y := newYard(t)
	for range 1000 {
		e, err := y.EventCreateShared()
		require.NoError(t, err)
		_, err = y.IpcGetEventHandle(e)
		require.NoError(t, err)
		assert.Equal(t, 1, y.checker.SharedCount())
		require.NoError(t, y.EventDestroy(e))
	}
	assert.Zero(t, y.checker.SharedCount())
}
