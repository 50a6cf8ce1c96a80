package sim_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// capture captures f's work on the stream, in thread-local mode.
func (l *loaded) capture(f func()) cudadrv.Graph {
	l.t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	require.NoError(l.t, l.StreamBeginCapture(l.stream, cudadrv.CaptureThreadLocal))
	f()
	g, err := l.StreamEndCapture(l.stream)
	require.NoError(l.t, err)
	return g
}

// instantiated returns a graph that can be launched, and its nodes.
func (l *loaded) instantiated(f func()) (cudadrv.GraphExec, cudadrv.Graph, []cudadrv.GraphNode) {
	l.t.Helper()
	g := l.capture(f)
	x, err := l.GraphInstantiate(g)
	require.NoError(l.t, err)
	nodes, err := l.GraphGetNodes(g)
	require.NoError(l.t, err)
	return x, g, nodes
}

func (l *loaded) kinds(nodes []cudadrv.GraphNode) (kinds []cudadrv.NodeKind) {
	l.t.Helper()
	for _, n := range nodes {
		kind, err := l.GraphNodeGetType(n)
		require.NoError(l.t, err)
		kinds = append(kinds, kind)
	}
	return kinds
}

func (l *loaded) launches(f cudadrv.Function, threads uint32) {
	l.t.Helper()
	paramBytes := 0
	if f == l.add {
		paramBytes = 38
	}
	require.NoError(l.t, l.LaunchKernel(f, shape(threads), make([]byte, paramBytes), l.stream))
}

func milliseconds(_ string, g cudadrv.Geometry) time.Duration {
	return time.Duration(g.Block.X) * time.Millisecond
}

func TestAGraphFromCaptureToEnd(t *testing.T) {
	l := load(t, sim.Config{KernelTime: milliseconds})
	p, err := l.MemAlloc(granule)
	require.NoError(t, err)
	x, g, nodes := l.instantiated(func() {
		l.launches(l.add, 2)
		require.NoError(t, l.MemsetD8Async(p, 1, 8, l.stream))
		require.NoError(t, l.MemsetD32Async(p, 1, 2, l.stream))
		require.NoError(t, l.MemcpyDtoDAsync(p, p+8, 8, l.stream))
		require.NoError(t, l.Memcpy2DAsync(cudadrv.Copy2D{Dst: p, Src: p + 64, DstPitch: 4, SrcPitch: 4, WidthBytes: 4, Rows: 2}, l.stream))
		require.NoError(t, l.MemcpyPeerAsync(p, l.Context(), p+64, l.Context(), 8, l.stream))
	})
	assert.Equal(t, []cudadrv.NodeKind{
		cudadrv.KernelNode, cudadrv.MemsetNode, cudadrv.MemsetNode, cudadrv.MemcpyNode, cudadrv.MemcpyNode, cudadrv.MemcpyNode,
	}, l.kinds(nodes))
	require.NoError(t, l.StreamSynchronize(l.stream))
	assert.Zero(t, l.Now(), "nothing has run")
	require.NoError(t, l.GraphUpload(x, l.stream))
	assert.EqualValues(t, 1400, cost(l.Device, func() { require.NoError(t, l.GraphLaunch(x, l.stream)) }))
	require.NoError(t, l.StreamSynchronize(l.stream))
	assert.Greater(t, l.Now(), 2*time.Millisecond)

	require.NoError(t, l.GraphDestroy(g))
	require.ErrorIs(t, l.GraphDestroy(g), cudadrv.InvalidHandle)
	_, err = l.GraphInstantiate(g)
	require.ErrorIs(t, err, cudadrv.InvalidHandle)
	_, err = l.GraphGetNodes(g)
	require.ErrorIs(t, err, cudadrv.InvalidHandle)
	_, err = l.GraphNodeGetType(nodes[0])
	require.ErrorIs(t, err, cudadrv.InvalidHandle)
	require.NoError(t, l.GraphLaunch(x, l.stream), "what was instantiated stays")
	require.ErrorIs(t, l.GraphLaunch(x, 77), cudadrv.InvalidHandle)
	require.ErrorIs(t, l.GraphUpload(x, 77), cudadrv.InvalidHandle)
	require.NoError(t, l.GraphExecDestroy(x))
	for _, err := range []error{
		l.GraphExecDestroy(x), l.GraphLaunch(x, l.stream), l.GraphUpload(x, l.stream), l.GraphExecUpdate(x, g),
		l.GraphExecKernelNodeSetParams(x, nodes[0], l.empty, shape(1), nil),
	} {
		require.ErrorIs(t, err, cudadrv.InvalidHandle)
	}
}

// Launches of one graph run one after the other, launches of two graphs at the same time.
func TestLaunchesOfAGraphOnTwoStreams(t *testing.T) {
	l := load(t, sim.Config{KernelTime: milliseconds})
	work := func() { l.launches(l.empty, 5) }
	x, g, _ := l.instantiated(work)
	y, err := l.GraphInstantiate(g)
	require.NoError(t, err)
	other, third := newStream(t, l.Device), newStream(t, l.Device)
	require.NoError(t, l.GraphLaunch(x, l.stream))
	require.NoError(t, l.GraphLaunch(x, other))
	require.NoError(t, l.GraphLaunch(y, third))
	require.NoError(t, l.StreamSynchronize(third))
	assert.Equal(t, 5*time.Millisecond, l.Now())
	require.NoError(t, l.StreamSynchronize(other))
	assert.Equal(t, 10*time.Millisecond, l.Now())
}

func TestNewParametersOfAGraph(t *testing.T) {
	l := load(t, sim.Config{KernelTime: milliseconds})
	p, err := l.MemAlloc(granule)
	require.NoError(t, err)
	took := func(x cudadrv.GraphExec) time.Duration {
		before := l.Now()
		require.NoError(t, l.GraphLaunch(x, l.stream))
		require.NoError(t, l.StreamSynchronize(l.stream))
		return (l.Now() - before).Round(time.Millisecond)
	}
	x, g, nodes := l.instantiated(func() {
		l.launches(l.empty, 1)
		require.NoError(t, l.MemsetD8Async(p, 1, 8, l.stream))
	})
	assert.Equal(t, time.Millisecond, took(x))
	require.NoError(t, l.GraphLaunch(x, l.stream))
	require.NoError(t, l.GraphExecKernelNodeSetParams(x, nodes[0], l.add, shape(3), make([]byte, 38)))
	require.NoError(t, l.StreamSynchronize(l.stream))
	assert.Equal(t, 2*time.Millisecond, l.Now().Round(time.Millisecond), "what was launched keeps its parameters")
	assert.Equal(t, 3*time.Millisecond, took(x))
	fresh, err := l.GraphInstantiate(g)
	require.NoError(t, err)
	assert.Equal(t, time.Millisecond, took(fresh), "the graph itself stays as it was")

	require.ErrorIs(t, l.GraphExecKernelNodeSetParams(x, nodes[1], l.add, shape(3), make([]byte, 38)), cudadrv.InvalidValue, "a memset")
	require.ErrorIs(t, l.GraphExecKernelNodeSetParams(x, 1, l.add, shape(3), make([]byte, 38)), cudadrv.InvalidValue)
	require.ErrorIs(t, l.GraphExecKernelNodeSetParams(x, nodes[0], l.add, shape(3), nil), cudadrv.InvalidValue)
	require.ErrorIs(t, l.GraphExecKernelNodeSetParams(x, nodes[0], 1, shape(3), nil), cudadrv.InvalidHandle)

	longer := l.capture(func() {
		l.launches(l.add, 7)
		require.NoError(t, l.MemsetD8Async(p, 1, 8, l.stream))
	})
	require.NoError(t, l.GraphExecUpdate(x, longer))
	assert.Equal(t, 7*time.Millisecond, took(x))
	require.NoError(t, l.GraphExecKernelNodeSetParams(x, nodes[0], l.empty, shape(4), nil), "nodes keep the names of the first graph")
	assert.Equal(t, 4*time.Millisecond, took(x))
	fresh, err = l.GraphInstantiate(longer)
	require.NoError(t, err)
	assert.Equal(t, 7*time.Millisecond, took(fresh), "the graph of the update stays as it was, too")

	for name, work := range map[string]func(){
		"fewer":         func() { l.launches(l.add, 7) },
		"another kind":  func() { l.launches(l.add, 7); l.launches(l.add, 7) },
		"another order": func() { require.NoError(t, l.MemsetD8Async(p, 1, 8, l.stream)); l.launches(l.add, 7) },
		"side by side": func() {
			other := newStream(t, l.Device)
			require.NoError(t, l.StreamWaitEvent(other, recorded(t, l.Device, l.stream)))
			l.launches(l.add, 7)
			require.NoError(t, l.MemsetD8Async(p, 1, 8, other))
			require.NoError(t, l.StreamWaitEvent(l.stream, recorded(t, l.Device, other)))
		},
	} {
		require.ErrorIs(t, l.GraphExecUpdate(x, l.capture(work)), cudadrv.UpdateFailure, name)
	}
	require.ErrorIs(t, l.GraphExecUpdate(x, 1), cudadrv.InvalidHandle)
	assert.Equal(t, 4*time.Millisecond, took(x), "an update that failed changed nothing")
}

// A module's kernels in a graph run to their end before it is unloaded, and not after it.
func TestAModuleOfAGraph(t *testing.T) {
	l := load(t, sim.Config{KernelTime: milliseconds})
	x, _, _ := l.instantiated(func() { l.launches(l.empty, 2); l.launches(l.empty, 3) })
	require.NoError(t, l.GraphLaunch(x, l.stream))
	require.ErrorIs(t, l.ModuleUnload(l.module), cudadrv.IllegalState, "its kernels have not finished")
	require.NoError(t, l.StreamSynchronize(l.stream))
	assert.Equal(t, 5*time.Millisecond, l.Now())
	require.NoError(t, l.ModuleUnload(l.module))
	require.ErrorIs(t, l.GraphLaunch(x, l.stream), cudadrv.InvalidHandle, "its kernels are gone")
}

// A graph cannot be launched once the module of any of its kernels was unloaded.
func TestAGraphOfSeveralModules(t *testing.T) {
	const count = 3
	for gone := range count {
		l := load(t, sim.Config{})
		var modules [count]cudadrv.Module
		x, g, _ := l.instantiated(func() {
			for i := range modules {
				var err error
				modules[i], err = l.ModuleLoadData([]byte(addText))
				require.NoError(t, err)
				empty, err := l.ModuleGetFunction(modules[i], "empty")
				require.NoError(t, err)
				l.launches(empty, 1)
			}
		})
		require.NoError(t, l.GraphLaunch(x, l.stream))
		require.NoError(t, l.StreamSynchronize(l.stream))
		require.NoError(t, l.ModuleUnload(modules[gone]))
		require.ErrorIs(t, l.GraphLaunch(x, l.stream), cudadrv.InvalidHandle, "module %d", gone)
		_, err := l.GraphInstantiate(g)
		require.ErrorIs(t, err, cudadrv.InvalidHandle, "module %d", gone)
	}
}

func TestAnEmptyGraph(t *testing.T) {
	l := load(t, sim.Config{})
	x, _, nodes := l.instantiated(func() {})
	assert.Empty(t, nodes)
	require.NoError(t, l.GraphLaunch(x, l.stream))
	require.NoError(t, l.Audit())
}

func TestTheNumberOfACapture(t *testing.T) {
	l := load(t, sim.Config{})
	other := newStream(t, l.Device)
	info := func(s cudadrv.Stream) (cudadrv.CaptureStatus, uint64) {
		status, number, err := l.StreamGetCaptureInfo(s)
		require.NoError(t, err)
		return status, number
	}
	status, none := info(l.stream)
	assert.Equal(t, cudadrv.CaptureNone, status)
	assert.Zero(t, none)
	var first uint64
	l.capture(func() {
		require.NoError(t, l.StreamWaitEvent(other, recorded(t, l.Device, l.stream)))
		status, first = info(l.stream)
		assert.Equal(t, cudadrv.CaptureActive, status)
		_, joined := info(other)
		assert.Equal(t, first, joined)
	})
	l.capture(func() {
		_, second := info(l.stream)
		assert.NotEqual(t, first, second)
	})
	require.ErrorIs(t, l.StreamBeginCapture(l.stream, 3), cudadrv.InvalidValue)
	require.ErrorIs(t, l.StreamBeginCapture(0, cudadrv.CaptureRelaxed), cudadrv.CaptureViolation)
	require.NoError(t, l.StreamBeginCapture(l.stream, cudadrv.CaptureRelaxed))
	require.ErrorIs(t, l.GraphUpload(0, l.stream), cudadrv.InvalidHandle)
	require.NoError(t, l.StreamDestroy(l.stream))
	_, err := l.StreamEndCapture(l.stream)
	require.ErrorIs(t, err, cudadrv.IllegalState)
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		f()
	}()
	<-done
}

// Calls that CUDA calls potentially unsafe are made in any thread during captures of any mode, and a capture belongs to its
// thread.
func TestCallsDuringCaptures(t *testing.T) {
	const global, local, relaxed = cudadrv.CaptureGlobal, cudadrv.CaptureThreadLocal, cudadrv.CaptureRelaxed
	for _, mode := range []cudadrv.CaptureMode{global, local, relaxed} {
		onThread(func() {
			_, dev := start(t, sim.Config{})
			s, e := newStream(t, dev), recorded(t, dev, 0)
			attempt := func() {
				_, err := dev.MemAlloc(1)
				assert.NoError(t, err)
				_, err = dev.MemCreate(granule)
				assert.NoError(t, err)
				_, err = dev.EventQuery(e)
				assert.NoError(t, err)
				before, err := dev.ThreadExchangeStreamCaptureMode(local)
				assert.NoError(t, err)
				assert.Equal(t, global, before)
				before, err = dev.ThreadExchangeStreamCaptureMode(global)
				assert.NoError(t, err)
				assert.Equal(t, local, before)
			}
			assert.NoError(t, dev.StreamBeginCapture(s, mode))
			attempt()
			onThread(attempt)
			_, err := dev.StreamEndCapture(s)
			assert.NoError(t, err)
			if mode == relaxed {
				return
			}
			assert.NoError(t, dev.StreamBeginCapture(s, mode))
			onThread(func() {
				_, err := dev.StreamEndCapture(s)
				assert.ErrorIs(t, err, cudadrv.CaptureWrongThread)
			})
			_, err = dev.StreamEndCapture(s)
			assert.ErrorIs(t, err, cudadrv.IllegalState, "the capture has ended")
			assert.NoError(t, dev.StreamSynchronize(s))
		})
	}
	_, dev := start(t, sim.Config{})
	_, err := dev.ThreadExchangeStreamCaptureMode(3)
	require.ErrorIs(t, err, cudadrv.InvalidValue)
}
