package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/internal/transcript"
)

// testdata/measured.txt is the record of the measurement: a cost changes with it alone.
func TestCostsAreThoseOfTheRecord(t *testing.T) {
	t.Parallel()
	transcript.Run(t, func(t *testing.T) transcript.Machine {
		t.Helper()
		recorded := map[string]bool{}
		t.Cleanup(func() {
			for c, costs := range callCosts {
				assert.Equal(t, len(costs) > 0, recorded[call.Call(c).String()], "%v", call.Call(c))
			}
		})
		return transcript.Machine{Obey: func(words []string) string {
			recorded[words[1]] = true
			costs := map[string]curve{"access": accessHandleCost, "unmap": unmapHandleCost}[words[1]]
			if c, ok := call.Named(words[1]); ok {
				costs = callCosts[c]
			}
			points := make([]string, len(costs))
			for i, p := range costs {
				points[i] = fmt.Sprintf("%d: %v", p.bytes, p.cost)
			}
			return words[1] + " " + strings.Join(points, ", ")
		}}
	})
}

// Between two points a cost is on the line between them; above the last it stays on the last line, and below the first it is the
// first one's.
func TestCostsBetweenPoints(t *testing.T) {
	t.Parallel()
	c := curve{{10, 100}, {20, 300}, {40, 200}}
	for bytes, want := range map[int64]int{0: 100, 9: 100, 10: 100, 15: 200, 19: 280, 20: 300, 22: 290, 30: 250, 40: 200, 50: 150} {
		assert.EqualValues(t, want, c.at(bytes), "%d bytes", bytes)
	}
	assert.Zero(t, curve{}.at(10))
	assert.EqualValues(t, 7, curve{{10, 7}}.at(1000))
}

// must returns a value that a call made.
func must[T any](t *testing.T) func(made T, err error) T {
	t.Helper()
	return func(made T, err error) T {
		t.Helper()
		require.NoError(t, err)
		return made
	}
}

// Each call that has a cost takes it, by its bytes, and nothing else: no call that succeeds is free by mistake.
func TestEachCallTakesItsCost(t *testing.T) {
	t.Parallel()
	d := New(Config{Bytes: true, TimedKernels: true, Devices: 2})
	const (
		bytes = 4 * mib
		text  = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry f() { ret; }"
	)
	var (
		dev     *Device
		handle  cudadrv.Handle
		at      cudadrv.Ptr
		plain   cudadrv.Ptr
		stream  cudadrv.Stream
		event   cudadrv.Event
		timed   [2]cudadrv.Event
		locked  []byte
		module  cudadrv.Module
		graph   cudadrv.Graph
		exec    cudadrv.GraphExec
		fill    cudadrv.Function
		charged = map[call.Call]bool{}
	)
	ptr, err := must[cudadrv.Ptr](t), func(err error) { t.Helper(); require.NoError(t, err) }
	copied := func(c call.Call, do func(s cudadrv.Stream) error) step {
		return step{c, bytes, 0, func() { err(do(stream)) }}
	}
	for _, s := range []step{
		{call.PrimaryCtxRetain, 0, 0, func() { dev = must[*Device](t)(d.gpus[0].open()) }},
		{call.MemGetInfo, 0, 0, func() { _, _, e := dev.MemGetInfo(); err(e) }},
		{call.MemAlloc, bytes, 0, func() { plain = ptr(dev.MemAlloc(bytes)) }},
		{call.MemAddressReserve, bytes, 0, func() { at = ptr(dev.MemAddressReserve(bytes)) }},
		{call.MemCreate, bytes, 0, func() { handle = must[cudadrv.Handle](t)(dev.MemCreate(bytes)) }},
		{call.MemMap, bytes, 0, func() { err(dev.MemMap(at, bytes, handle)) }},
		{call.MemSetAccess, bytes, accessHandleCost.at(bytes), func() { err(dev.MemSetAccess(at, bytes)) }},
		{call.MemHostAlloc, bytes, 0, func() { locked = must[[]byte](t)(dev.MemHostAlloc(bytes)) }},
		{call.StreamCreate, 0, 0, func() { stream = must[cudadrv.Stream](t)(dev.StreamCreate()) }},
		copied(call.MemsetD8Async, func(s cudadrv.Stream) error { return dev.MemsetD8Async(at, 1, bytes, s) }),
		copied(call.MemsetD16Async, func(s cudadrv.Stream) error { return dev.MemsetD16Async(at, 1, bytes/2, s) }),
		copied(call.MemsetD32Async, func(s cudadrv.Stream) error { return dev.MemsetD32Async(at, 1, bytes/4, s) }),
		copied(call.MemcpyDtoDAsync, func(s cudadrv.Stream) error { return dev.MemcpyDtoDAsync(plain, at, bytes, s) }),
		copied(call.MemcpyHtoDAsync, func(s cudadrv.Stream) error { return dev.MemcpyHtoDAsync(at, locked, s) }),
		copied(call.MemcpyDtoHAsync, func(s cudadrv.Stream) error { return dev.MemcpyDtoHAsync(locked, at, s) }),
		copied(call.Memcpy2DAsync, func(s cudadrv.Stream) error {
			return dev.Memcpy2DAsync(cudadrv.Copy2D{Dst: plain, Src: at, DstPitch: mib, SrcPitch: mib, WidthBytes: mib, Rows: bytes / mib}, s)
		}),
		copied(call.MemcpyPeerAsync, func(s cudadrv.Stream) error {
			return dev.MemcpyPeerAsync(plain, dev.Context(), at, dev.Context(), bytes, s)
		}),
		{call.EventCreate, 0, 0, func() { event = must[cudadrv.Event](t)(dev.EventCreate()) }},
		{call.EventRecord, 0, 0, func() { err(dev.EventRecord(event, stream)) }},
		{call.StreamWaitEvent, 0, 0, func() { err(dev.StreamWaitEvent(stream, event)) }},
		{call.EventQuery, 0, 0, func() { must[bool](t)(dev.EventQuery(event)) }},
		{call.EventSynchronize, 0, 0, func() { err(dev.EventSynchronize(event)) }},
		{call.EventDestroy, 0, 0, func() { err(dev.EventDestroy(event)) }},
		{call.StreamQuery, 0, 0, func() { must[bool](t)(dev.StreamQuery(stream)) }},
		{call.StreamIsCapturing, 0, 0, func() { must[cudadrv.CaptureStatus](t)(dev.StreamIsCapturing(stream)) }},
		{call.StreamGetCaptureInfo, 0, 0, func() { _, _, e := dev.StreamGetCaptureInfo(stream); err(e) }},
		{call.StreamSynchronize, 0, 0, func() { err(dev.StreamSynchronize(stream)) }},
		{call.CtxSynchronize, 0, 0, func() { err(dev.CtxSynchronize()) }},
		{call.EventCreate, 0, 0, func() { timed[0] = must[cudadrv.Event](t)(dev.EventCreateTimed()) }},
		{call.EventRecord, 0, 0, func() { err(dev.EventRecord(timed[0], stream)) }},
		{call.EventElapsedTime, 0, 0, func() { must[time.Duration](t)(dev.EventElapsedTime(timed[0], timed[0])) }},
		{call.LinkComplete, 0, 0, func() { must[[]byte](t)(dev.LinkImages([]byte(text))) }},
		{call.ModuleLoadData, 0, 0, func() {
			module = must[cudadrv.Module](t)(dev.ModuleLoadData([]byte(text)))
			fill = must[cudadrv.Function](t)(dev.ModuleGetFunction(module, "f")) // free
		}},
		{call.LaunchKernel, 0, 0, func() {
			err(dev.LaunchKernel(fill, cudadrv.Geometry{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 1, Y: 1, Z: 1}}, nil, stream))
		}},
		{call.GraphInstantiate, 1, 0, func() {
			err(dev.StreamBeginCapture(stream, cudadrv.CaptureRelaxed))
			err(dev.MemsetD8Async(at, 1, bytes, stream)) // free: it is a node
			graph = must[cudadrv.Graph](t)(dev.StreamEndCapture(stream))
			exec = must[cudadrv.GraphExec](t)(dev.GraphInstantiate(graph))
		}},
		{call.GraphExecUpdate, 1, 0, func() { err(dev.GraphExecUpdate(exec, graph)) }},
		{call.GraphLaunch, 0, 0, func() { err(dev.GraphLaunch(exec, stream)) }},
		{call.CtxSynchronize, 0, 0, func() { err(dev.CtxSynchronize()) }},
		{call.StreamDestroy, 0, 0, func() { err(dev.StreamDestroy(stream)) }},
		{call.MemUnmap, bytes, unmapHandleCost.at(bytes), func() { err(dev.MemUnmap(at, bytes)) }},
		{call.MemRelease, bytes, 0, func() { err(dev.MemRelease(handle)) }},
		{call.MemAddressFree, bytes, 0, func() { err(dev.MemAddressFree(at, bytes)) }},
		{call.MemFree, bytes, 0, func() { err(dev.MemFree(plain)) }},
		{call.MemFreeHost, bytes, 0, func() { err(dev.MemFreeHost(locked)) }},
	} {
		before := time.Duration(0)
		if dev != nil {
			before = dev.ModelledTime()
		}
		s.do()
		assert.Equal(t, callCosts[s.call].at(s.size)+s.more, dev.ModelledTime()-before, "%v", s.call)
		charged[s.call] = true
	}
	for c, costs := range callCosts {
		assert.Equal(t, len(costs) > 0, charged[call.Call(c)], "%v", call.Call(c))
	}
}

// step is a call with the size that its cost depends on, and the cost of its handles.
type step struct {
	call call.Call
	size int64
	more time.Duration
	do   func()
}
