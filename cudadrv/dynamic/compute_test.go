//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
)

// compute has the objects for calls of kernels, graphs and events with timing.
type compute struct {
	module  cudadrv.Module
	kernel  cudadrv.Function
	params  []byte
	graph   cudadrv.Graph
	node    cudadrv.GraphNode
	exec    cudadrv.GraphExec
	timed   cudadrv.Event
	shared  cudadrv.Event
	context cudadrv.Context
}

var one = cudadrv.Geometry{Grid: cudadrv.Dim3{X: 1, Y: 1, Z: 1}, Block: cudadrv.Dim3{X: 64, Y: 1, Z: 1}}

// fillParams returns the parameters of vram_fill32.
func fillParams(p cudadrv.Ptr, value, count uint32) []byte {
	params := binary.NativeEndian.AppendUint64(nil, uint64(p))
	return binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(params, value), count)
}

func newCompute(tb testing.TB, w *work) compute {
	tb.Helper()
	c := compute{context: w.Context(), params: fillParams(w.p, 7, 64)}
	var errs [9]error
	c.module, errs[0] = w.ModuleLoadData([]byte(drivertest.PTX))
	c.kernel, errs[1] = w.ModuleGetFunction(c.module, "vram_fill32")
	errs[2] = w.StreamBeginCapture(w.stream, cudadrv.CaptureRelaxed)
	errs[3] = w.LaunchKernel(c.kernel, one, c.params, w.stream)
	c.graph, errs[4] = w.StreamEndCapture(w.stream)
	c.exec, errs[5] = w.GraphInstantiate(c.graph)
	c.timed, errs[6] = w.EventCreateTimed()
	c.shared, errs[7] = w.EventCreateShared()
	errs[8] = w.EventRecord(c.timed, w.stream)
	for _, err := range errs {
		require.NoError(tb, err)
	}
	nodes, err := w.GraphGetNodes(c.graph)
	require.NoError(tb, err)
	require.Len(tb, nodes, 1)
	c.node = nodes[0]
	require.NoError(tb, w.StreamSynchronize(w.stream))
	return c
}

func (c *compute) close(tb testing.TB, w *work) {
	tb.Helper()
	for _, err := range []error{
		w.CtxSynchronize(), w.GraphExecDestroy(c.exec), w.GraphDestroy(c.graph), w.EventDestroy(c.timed), w.EventDestroy(c.shared),
		w.ModuleUnload(c.module),
	} {
		require.NoError(tb, err)
	}
}

// computeCalls returns the calls of work.calls that need a kernel, a graph or an event of another kind.
func (w *work) computeCalls() map[string]func() error {
	rows := cudadrv.Copy2D{Dst: w.q, Src: w.p, DstPitch: 64, SrcPitch: 128, WidthBytes: 32, Rows: 8}
	return map[string]func() error{
		"cuLaunchKernel":     func() error { return w.LaunchKernel(w.kernel, one, w.params, w.stream) },
		"cuFuncGetAttribute": func() error { _, err := w.FuncGetAttribute(w.kernel, cudadrv.Registers); return err },
		"cuFuncSetAttribute": func() error { return w.FuncSetAttribute(w.kernel, cudadrv.MaxDynamicSharedBytes, 1024) },
		"cuFuncGetParamInfo": func() error { _, _, err := w.FuncGetParamInfo(w.kernel, 1); return err },
		"cuOccupancyMaxActiveBlocksPerMultiprocessor": func() error {
			_, err := w.OccupancyMaxActiveBlocksPerMultiprocessor(w.kernel, 64, 0)
			return err
		},
		"cuOccupancyMaxPotentialBlockSize": func() error {
			_, _, err := w.OccupancyMaxPotentialBlockSize(w.kernel, 0, 0)
			return err
		},
		"cuStreamGetCaptureInfo": func() error { _, _, err := w.StreamGetCaptureInfo(w.stream); return err },
		"cuGraphNodeGetType":     func() error { _, err := w.GraphNodeGetType(w.node); return err },
		"cuGraphExecUpdate":      func() error { return w.GraphExecUpdate(w.exec, w.graph) },
		"cuGraphExecKernelNodeSetParams": func() error {
			return w.GraphExecKernelNodeSetParams(w.exec, w.node, w.kernel, one, w.params)
		},
		"cuGraphUpload":         func() error { return w.GraphUpload(w.exec, w.stream) },
		"cuGraphLaunch":         func() error { return w.GraphLaunch(w.exec, w.stream) },
		"cuEventElapsedTime":    func() error { _, err := w.EventElapsedTime(w.timed, w.timed); return err },
		"cuMemsetD16Async":      func() error { return w.MemsetD16Async(w.p, 1, 64, w.stream) },
		"cuMemsetD32Async":      func() error { return w.MemsetD32Async(w.p, 1, 64, w.stream) },
		"cuMemcpy2DAsync":       func() error { return w.Memcpy2DAsync(rows, w.stream) },
		"cuDeviceCanAccessPeer": func() error { _, err := w.DeviceCanAccessPeer(0); return err },
		"cuMemcpyPeerAsync":     func() error { return w.MemcpyPeerAsync(w.p, w.context, w.q, w.context, 64, w.stream) },
		"cuIpcGetEventHandle":   func() error { _, err := w.IpcGetEventHandle(w.shared); return err },
	}
}

// A launch on a stream of the device's own makes no context current: the stream carries it. One on a standard stream does.
func TestALaunchMakesNoContextCurrent(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	for _, launch := range []func(cudadrv.Stream) error{
		func(s cudadrv.Stream) error { return w.LaunchKernel(w.kernel, one, w.params, s) },
		func(s cudadrv.Stream) error { return w.GraphLaunch(w.exec, s) },
	} {
		before := f.calls("cuCtxPushCurrent")
		require.NoError(t, launch(w.stream))
		assert.Equal(t, before, f.calls("cuCtxPushCurrent"))
		require.NoError(t, launch(0))
		assert.Equal(t, before+1, f.calls("cuCtxPushCurrent"))
	}
	w.close(t)
	require.NoError(t, dev.Close())
}

// The driver says in milliseconds how much time passed between two events.
func TestElapsedTimeIsTheDrivers(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w, ask := newWork(t, dev), newAsking(t, f.path)
	later, err := w.EventCreateTimed()
	require.NoError(t, err)
	require.NoError(t, w.EventRecord(later, w.stream))
	require.NoError(t, w.EventSynchronize(later))
	var milliseconds float32
	require.Zero(t, ask.elapsed(&milliseconds, uintptr(w.timed), uintptr(later)))
	require.Positive(t, milliseconds)
	elapsed, err := w.EventElapsedTime(w.timed, later)
	require.NoError(t, err)
	assert.InDelta(t, float64(milliseconds)*1e6, elapsed.Nanoseconds(), 1)
	require.NoError(t, w.EventDestroy(later))
	w.close(t)
	require.NoError(t, dev.Close())
}

// A compiler's log is in the error, with the line; the next call has none of it.
func TestTheCompilersLogIsInTheError(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	_, err = w.ModuleLoadData([]byte(".version 7.0\n.target sm_70\n.visible .entry k() {\nnonsense.u32 %r1;\n}"))
	require.ErrorIs(t, err, cudadrv.InvalidPTX)
	require.ErrorContains(t, err, "cuModuleLoadData: CUDA_ERROR_INVALID_PTX: ptxas application ptx input, line 4; error   : Not a name of any")
	_, err = w.ModuleLoadData([]byte(".version 99.0\n.target sm_70\n"))
	require.ErrorIs(t, err, cudadrv.UnsupportedPTXVersion)
	_, err = w.ModuleLoadData([]byte("\x7fELF of another kind")) // the fake asks no further
	require.ErrorIs(t, err, cudadrv.InvalidImage)
	require.NotContains(t, err.Error(), "ptxas")
	f.failCall("cuModuleLoadDataEx", 1, int32(cudadrv.OutOfMemory))
	_, err = w.ModuleLoadData([]byte(drivertest.PTX))
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	w.close(t)
	require.NoError(t, dev.Close())
}

// Whichever part of a link fails is named, without an image, and the link is destroyed: the fake has none left at the end.
func TestALinkThatFailsIsDestroyed(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	for _, name := range []string{"cuLinkCreate", "cuLinkAddData", "cuLinkComplete"} {
		f.failCall(name, 1, int32(cudadrv.OutOfMemory))
		_, err := w.LinkImages([]byte(drivertest.PTX))
		require.ErrorIs(t, err, cudadrv.OutOfMemory)
		require.ErrorContains(t, err, name+": ")
	}
	cubin, err := w.LinkImages([]byte(drivertest.PTX))
	require.NoError(t, err)
	for _, image := range [][]byte{cubin, {0x50, 0xed, 0x55, 0xba, 0}} { // their magic numbers tell them from texts
		_, err = w.LinkImages(image)
		require.ErrorIs(t, err, cudadrv.NoBinaryForGPU)
		require.ErrorContains(t, err, "cuLinkAddData: ")
	}
	f.failCall("cuLinkDestroy", 1, int32(cudadrv.OutOfMemory))
	cubin, err = w.LinkImages([]byte(drivertest.PTX))
	require.ErrorIs(t, err, cudadrv.OutOfMemory)
	require.ErrorContains(t, err, "cuLinkDestroy: ")
	assert.Nil(t, cubin)
	w.close(t)
	require.NoError(t, dev.Close())
	require.EqualValues(t, 1, f.live(all), "the link that could not be destroyed")
	f.live = func(int32) int64 { return 0 }
}

// A link of many images stays on its thread while the garbage collector repeatedly stops all goroutines, which may resume on
// other threads: otherwise the fake ends the process, as a driver mostly does.
func TestALinkStaysOnItsThread(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	images := make([][]byte, 60_000)
	for i := range images {
		images[i] = fmt.Appendf(nil, ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry nothing_%d() { ret; }\n", i)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	var linked atomic.Bool
	var collector sync.WaitGroup
	collector.Go(func() {
		for !linked.Load() {
			runtime.GC()
		}
	})
	_, err = w.LinkImages(images...)
	require.NoError(t, err)
	linked.Store(true)
	collector.Wait()
	w.close(t)
	require.NoError(t, dev.Close())
}

// A descriptor goes to the driver by value, all of it: another copy of the fake, which is another process to it, takes it as it
// was, and not with its last byte changed. The process that made the event is refused.
func TestADescriptorIsPassedByValue(t *testing.T) {
	f, other := newFake(t), newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	theirs, err := other.driver().Open(0)
	require.NoError(t, err)
	w, x := newWork(t, dev), newWork(t, theirs)
	d, err := w.IpcGetEventHandle(w.shared)
	require.NoError(t, err)
	e, err := x.IpcOpenEventHandle(d)
	require.NoError(t, err)
	require.NoError(t, x.StreamWaitEvent(x.stream, e))
	require.NoError(t, x.EventDestroy(e))
	_, err = w.IpcOpenEventHandle(d)
	require.ErrorIs(t, err, cudadrv.InvalidContext)
	for _, i := range []int{0, 31, 63} {
		wrong := d
		wrong[i]++
		_, err = x.IpcOpenEventHandle(wrong)
		require.ErrorIs(t, err, cudadrv.InvalidValue, "byte %d", i)
	}
	w.close(t)
	x.close(t)
	require.NoError(t, dev.Close())
	require.NoError(t, theirs.Close())
}

// Two devices reach each other: bytes go over by a copy, and by a kernel where access was given.
func TestPeersOfTwoDevices(t *testing.T) {
	f := newFake(t)
	f.setDevices(2)
	driver := f.driver()
	var works [2]*work
	for i := range works {
		dev, err := driver.Open(i)
		require.NoError(t, err)
		works[i] = newWork(t, dev)
	}
	a, b := works[0], works[1]
	can, err := a.DeviceCanAccessPeer(1)
	require.NoError(t, err)
	assert.True(t, can)
	can, err = a.DeviceCanAccessPeer(0)
	require.NoError(t, err)
	assert.False(t, can)
	_, err = a.DeviceCanAccessPeer(2)
	require.ErrorIs(t, err, cudadrv.InvalidDevice)

	require.NoError(t, a.MemMap(a.reserved, a.granule, a.handle))
	require.NoError(t, a.MemSetAccess(a.reserved, a.granule))
	fill := func(value uint32) error {
		return first(b.LaunchKernel(b.kernel, one, fillParams(a.reserved, value, 64), b.stream), b.StreamSynchronize(b.stream))
	}
	asked := f.calls("cuMemSetAccess")
	_ = a.MemSetPeerAccess(a.reserved, 1, 1)
	assert.Equal(t, asked+1, f.calls("cuMemSetAccess"), "the driver knows which sizes it takes")
	require.NoError(t, a.MemSetPeerAccess(a.reserved, a.granule, 1))
	require.NoError(t, fill(5))
	require.NoError(t, a.MemcpyPeerAsync(b.p, b.Context(), a.reserved, a.Context(), 256, a.stream))
	require.NoError(t, a.StreamSynchronize(a.stream))
	require.NoError(t, b.MemcpyDtoHAsync(b.pinned[:256], b.p, b.stream))
	require.NoError(t, b.StreamSynchronize(b.stream))
	for i := range 64 {
		require.EqualValues(t, 5, binary.NativeEndian.Uint32(b.pinned[4*i:]))
	}
	require.NoError(t, a.MemUnmap(a.reserved, a.granule))
	for _, w := range works {
		w.close(t)
		require.NoError(t, w.Close())
	}
}
