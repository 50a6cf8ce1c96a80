package drivertest

import (
	"runtime"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// graphs returns the device's interface for graphs, if it has one.
func (b *bench) graphs() (cudadrv.Graphs, bool) {
	b.Helper()
	return optional(b, cudadrv.GraphLaunches, func(g cudadrv.Graphs) error { return g.StreamBeginCapture(0, cudadrv.CaptureRelaxed) })
}

// captured returns the graph of f's work on s. The capture ends also if f fails.
func (b *bench) captured(g cudadrv.Graphs, s cudadrv.Stream, mode cudadrv.CaptureMode, f func()) cudadrv.Graph {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	b.ok(g.StreamBeginCapture(s, mode))
	defer drop(g, s)
	f()
	return must(g.StreamEndCapture(s))(b)
}

// drop ends a capture of the calling thread that is still in progress. The stream must exist: else a driver crashes.
func drop(g cudadrv.Graphs, s cudadrv.Stream) {
	if status, _, err := g.StreamGetCaptureInfo(s); err != nil || status == cudadrv.CaptureNone {
		return
	}
	if graph, err := g.StreamEndCapture(s); err == nil {
		_ = g.GraphDestroy(graph)
	}
}

// adding is a kernel and two blocks of memory for it.
type adding struct {
	kernels  cudadrv.Kernels
	module   cudadrv.Module
	add      cudadrv.Function
	to, from cudadrv.Ptr
	stream   cudadrv.Stream
}

// addedWords is how many words a block has.
const addedWords = 500

// adding prepares the operands of graphs; without kernels in the device, it has no kernel either.
func (b *bench) adding() *adding {
	b.Helper()
	a := &adding{to: must(b.dev.MemAlloc(4 * addedWords))(b), from: must(b.dev.MemAlloc(4 * addedWords))(b), stream: b.stream()}
	if k, ok := b.dev.(cudadrv.Kernels); ok && b.info.Capabilities.Has(cudadrv.KernelLaunches) {
		a.kernels, a.module = k, must(k.ModuleLoadData([]byte(PTX)))(b)
		a.add = b.function(k, a.module, "vram_add32")
	}
	b.ok(b.dev.MemsetD8Async(a.to, 0, 4*addedWords, a.stream))
	b.ok(b.dev.MemsetD8Async(a.from, 1, 4*addedWords, a.stream))
	b.ok(b.dev.StreamSynchronize(a.stream))
	return a
}

func (b *bench) release(a *adding) {
	b.Helper()
	b.ok(b.dev.CtxSynchronize())
	if a.kernels != nil {
		b.ok(a.kernels.ModuleUnload(a.module))
	}
	b.ok(b.dev.StreamDestroy(a.stream))
	b.ok(b.dev.MemFree(a.to))
	b.ok(b.dev.MemFree(a.from))
}

// launch adds one block to the other, or does nothing where there are no kernels.
func (a *adding) launch(b *bench, to, from cudadrv.Ptr) {
	b.Helper()
	if a.kernels != nil {
		b.ok(a.kernels.LaunchKernel(a.add, wide(addedWords), words(to, from, uint32(addedWords)), a.stream))
	}
}

// sums asserts that the block holds a sum that kernels have made.
func (b *bench) sums(a *adding, sum uint32) {
	b.Helper()
	if a.kernels != nil && !b.simulated() {
		b.holds(a.to, sum, addedWords, a.stream)
	}
}

// In every mode work is captured and not performed, has nodes of its kinds in its order, and runs as often as the graph is
// launched.
func testGraphs(b *bench) {
	g, ok := b.graphs()
	if !ok {
		return
	}
	const one = uint32(0x01010101)
	a := b.adding()
	for mode := cudadrv.CaptureGlobal; mode <= cudadrv.CaptureRelaxed; mode++ {
		b.ok(b.dev.MemsetD8Async(a.to, 0, 4*addedWords, a.stream))
		graph := b.captured(g, a.stream, mode, func() {
			b.ok(b.dev.MemsetD8Async(a.from, 1, 4*addedWords, a.stream))
			a.launch(b, a.to, a.from)
			b.ok(b.dev.MemcpyDtoDAsync(a.from, a.to, 4*addedWords, a.stream))
		})
		want := []cudadrv.NodeKind{cudadrv.MemsetNode, cudadrv.KernelNode, cudadrv.MemcpyNode}
		if a.kernels == nil {
			want = []cudadrv.NodeKind{cudadrv.MemsetNode, cudadrv.MemcpyNode}
		}
		assert.Equal(b, want, b.kinds(g, graph), "mode %d", mode)
		b.holds(a.to, 0, addedWords, a.stream) // nothing was performed
		exec := must(g.GraphInstantiate(graph))(b)
		b.ok(g.GraphDestroy(graph))
		b.ok(g.GraphUpload(exec, a.stream))
		for range 3 {
			b.ok(g.GraphLaunch(exec, a.stream))
		}
		b.ok(b.dev.StreamSynchronize(a.stream))
		b.sums(a, 3*one)
		b.ok(g.GraphLaunch(exec, 0))
		b.ok(b.dev.StreamSynchronize(0))
		b.sums(a, 4*one)
		b.ok(g.GraphExecDestroy(exec))
	}
	b.graphMistakes(g, a.stream)
	b.release(a)
}

// kinds returns the kinds of a graph's nodes.
func (b *bench) kinds(g cudadrv.Graphs, graph cudadrv.Graph) []cudadrv.NodeKind {
	b.Helper()
	kinds := []cudadrv.NodeKind{}
	for _, n := range must(g.GraphGetNodes(graph))(b) {
		kinds = append(kinds, must(g.GraphNodeGetType(n))(b))
	}
	return kinds
}

func (b *bench) graphMistakes(g cudadrv.Graphs, s cudadrv.Stream) {
	b.Helper()
	nothing := []cudadrv.Result{cudadrv.InvalidHandle, cudadrv.InvalidValue}
	_, err := g.GraphGetNodes(0)
	b.refused(err, "cuGraphGetNodes", nothing...)
	_, err = g.GraphNodeGetType(0)
	b.refused(err, "cuGraphNodeGetType", nothing...)
	_, err = g.GraphInstantiate(0)
	b.refused(err, "cuGraphInstantiate", nothing...)
	b.refused(g.GraphLaunch(0, s), "cuGraphLaunch", nothing...)
	b.refused(g.GraphUpload(0, s), "cuGraphUpload", nothing...)
	b.refused(g.GraphDestroy(0), "cuGraphDestroy", nothing...)
	b.refused(g.GraphExecDestroy(0), "cuGraphExecDestroy", nothing...)
	b.refused(g.GraphExecUpdate(0, 0), "cuGraphExecUpdate", nothing...)

	empty := b.captured(g, s, cudadrv.CaptureRelaxed, func() {})
	assert.Empty(b, must(g.GraphGetNodes(empty))(b))
	exec := must(g.GraphInstantiate(empty))(b)
	b.ok(g.GraphLaunch(exec, s))
	b.ok(b.dev.StreamSynchronize(s))
	b.ok(g.GraphExecDestroy(exec))
	b.ok(g.GraphDestroy(empty))
}

// An executable graph takes other parameters: of a graph of the same topology, or of one node.
func testGraphChanges(b *bench) {
	g, ok := b.graphs()
	if !ok {
		return
	}
	a := b.adding()
	if a.kernels == nil {
		b.release(a)
		return
	}
	const one = uint32(0x01010101)
	first := b.captured(g, a.stream, cudadrv.CaptureThreadLocal, func() { a.launch(b, a.from, a.from) })
	exec := must(g.GraphInstantiate(first))(b)
	second := b.captured(g, a.stream, cudadrv.CaptureThreadLocal, func() { a.launch(b, a.to, a.from) })
	b.ok(g.GraphExecUpdate(exec, second)) // before the first launch
	b.ok(g.GraphLaunch(exec, a.stream))
	b.ok(b.dev.StreamSynchronize(a.stream))
	b.sums(a, one)

	node := must(g.GraphGetNodes(first))(b)[0]
	few := words(a.to, a.from, uint32(1))
	b.ok(g.GraphExecKernelNodeSetParams(exec, node, a.add, wide(1), few))
	clear(few)
	b.ok(g.GraphLaunch(exec, a.stream))
	b.ok(b.dev.StreamSynchronize(a.stream))
	if !b.simulated() {
		b.holds(a.to, 2*one, 1, a.stream)
		b.holds(a.to+4, one, addedWords-1, a.stream)
	}

	third := b.captured(g, a.stream, cudadrv.CaptureThreadLocal, func() {
		a.launch(b, a.to, a.from)
		a.launch(b, a.to, a.from)
	})
	b.refused(g.GraphExecUpdate(exec, third), "cuGraphExecUpdate", cudadrv.UpdateFailure)
	b.refused(g.GraphExecKernelNodeSetParams(exec, node, 0, wide(1), nil), "cuGraphExecKernelNodeSetParams",
		cudadrv.InvalidHandle, cudadrv.InvalidValue)
	for _, graph := range []cudadrv.Graph{first, second, third} {
		b.ok(g.GraphDestroy(graph))
	}
	b.ok(g.GraphExecDestroy(exec))
	b.release(a)
}

// A launch or an upload on a stream that is captured is refused in each mode, and breaks the capture; on another stream it
// works. The graph stays as it was.
func testGraphsInGraphs(b *bench) {
	g, ok := b.graphs()
	if !ok {
		return
	}
	a, other := b.adding(), b.stream()
	b.graphsInGraphs(g, a, other)
	b.ok(b.dev.StreamDestroy(other))
	b.release(a)
}

// graphsInGraphs leaves no capture in progress, also if it fails.
func (b *bench) graphsInGraphs(g cudadrv.Graphs, a *adding, other cudadrv.Stream) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer drop(g, a.stream)
	inner := b.captured(g, a.stream, cudadrv.CaptureRelaxed, func() {
		b.ok(b.dev.MemsetD8Async(a.to, 3, 4*addedWords, a.stream))
		a.launch(b, a.to, a.from)
	})
	exec := must(g.GraphInstantiate(inner))(b)
	for mode := cudadrv.CaptureGlobal; mode <= cudadrv.CaptureRelaxed; mode++ {
		for name, call := range map[string]func(cudadrv.GraphExec, cudadrv.Stream) error{"cuGraphLaunch": g.GraphLaunch, "cuGraphUpload": g.GraphUpload} {
			b.ok(g.StreamBeginCapture(a.stream, mode))
			b.refused(call(exec, a.stream), name, cudadrv.CaptureViolation)
			_, err := g.StreamEndCapture(a.stream)
			b.refused(err, "cuStreamEndCapture", cudadrv.CaptureBroken)
			b.ok(g.GraphDestroy(b.captured(g, a.stream, mode, func() { b.ok(call(exec, other)) })))
		}
	}
	b.ok(b.dev.StreamSynchronize(other))
	b.ok(g.GraphLaunch(exec, a.stream))
	b.ok(b.dev.StreamSynchronize(a.stream))
	b.sums(a, 0x04040404)
	b.ok(g.GraphExecDestroy(exec))
	b.ok(g.GraphDestroy(inner))
}

// During a capture, in any mode, a module is unloaded and a graph is made and destroyed on the capturing thread.
func testCallsInCaptures(b *bench) {
	g, ok := b.graphs()
	if !ok {
		return
	}
	a := b.adding()
	inner := b.captured(g, a.stream, cudadrv.CaptureRelaxed, func() { a.launch(b, a.to, a.from) })
	for mode := cudadrv.CaptureGlobal; mode <= cudadrv.CaptureRelaxed; mode++ {
		b.ok(g.GraphDestroy(b.captured(g, a.stream, mode, func() {
			b.ok(g.GraphExecDestroy(must(g.GraphInstantiate(inner))(b)))
			if a.kernels != nil {
				b.ok(a.kernels.ModuleUnload(must(a.kernels.ModuleLoadData([]byte(PTX)))(b)))
			}
		})))
	}
	b.ok(g.GraphDestroy(inner))
	b.release(a)
}

// Work on the legacy default stream, by either name, is refused while a blocking stream is captured, and breaks that capture.
// While another stream is captured it works.
func testDefaultStreamInCaptures(b *bench) {
	g, ok := b.graphs()
	l, blocks := b.dev.(cudadrv.BlockingStreams)
	if !ok || !blocks || !b.info.Capabilities.Has(cudadrv.BlockingCreation) {
		return
	}
	a, tied := b.adding(), must(l.StreamCreateBlocking())(b)
	b.defaultStreamInCaptures(g, a, tied)
	b.ok(b.dev.StreamDestroy(tied))
	b.release(a)
}

// defaultStreamInCaptures leaves no capture in progress, also if it fails.
func (b *bench) defaultStreamInCaptures(g cudadrv.Graphs, a *adding, tied cudadrv.Stream) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer drop(g, tied)
	const bytes = 4 * addedWords
	calls := map[string]func(s cudadrv.Stream) error{
		"cuMemsetD8Async":   func(s cudadrv.Stream) error { return b.dev.MemsetD8Async(a.to, 1, bytes, s) },
		"cuMemcpyDtoDAsync": func(s cudadrv.Stream) error { return b.dev.MemcpyDtoDAsync(a.to, a.from, bytes, s) },
	}
	if a.kernels != nil {
		calls["cuLaunchKernel"] = func(s cudadrv.Stream) error {
			return a.kernels.LaunchKernel(a.add, wide(addedWords), words(a.to, a.from, uint32(addedWords)), s)
		}
	}
	if w, ok := b.dev.(cudadrv.WideWork); ok && b.info.Capabilities.Has(cudadrv.WideFills) {
		calls["cuMemsetD32Async"] = func(s cudadrv.Stream) error { return w.MemsetD32Async(a.to, 1, addedWords, s) }
	}
	inner := b.captured(g, a.stream, cudadrv.CaptureRelaxed, func() { b.ok(b.dev.MemsetD8Async(a.to, 3, bytes, a.stream)) })
	exec := must(g.GraphInstantiate(inner))(b)
	calls["cuGraphLaunch"] = func(s cudadrv.Stream) error { return g.GraphLaunch(exec, s) }
	for name, call := range calls {
		for _, legacy := range []cudadrv.Stream{0, 1} {
			b.ok(g.StreamBeginCapture(tied, cudadrv.CaptureRelaxed))
			b.refused(call(legacy), name, cudadrv.CaptureImplicit)
			_, err := g.StreamEndCapture(tied)
			b.refused(err, "cuStreamEndCapture", cudadrv.CaptureBroken)
			b.ok(call(legacy))
			b.ok(g.GraphDestroy(b.captured(g, a.stream, cudadrv.CaptureRelaxed, func() { b.ok(call(legacy)) })))
		}
	}
	b.ok(b.dev.CtxSynchronize())
	b.ok(g.GraphExecDestroy(exec))
	b.ok(g.GraphDestroy(inner))
}

// The information about a capture, and how it joins streams.
func testCaptureInformation(b *bench) {
	g, ok := b.graphs()
	if !ok {
		return
	}
	s, other, e := b.stream(), b.stream(), b.event()
	none := func(on cudadrv.Stream) {
		b.Helper()
		status, number, err := g.StreamGetCaptureInfo(on)
		b.ok(err)
		assert.Equal(b, cudadrv.CaptureNone, status)
		assert.Zero(b, number)
	}
	none(s)
	graph := b.captured(g, s, cudadrv.CaptureThreadLocal, func() {
		status, number, err := g.StreamGetCaptureInfo(s)
		b.ok(err)
		assert.Equal(b, cudadrv.CaptureActive, status)
		none(other)
		b.ok(b.dev.EventRecord(e, s))
		b.ok(b.dev.StreamWaitEvent(other, e))
		status, joined, err := g.StreamGetCaptureInfo(other)
		b.ok(err)
		assert.Equal(b, cudadrv.CaptureActive, status)
		assert.Equal(b, number, joined, "one capture has one number")
		assert.NotZero(b, number)
		if q, ok := b.dev.(cudadrv.CaptureQueries); ok && b.info.Capabilities.Has(cudadrv.CaptureInformation) {
			assert.Equal(b, cudadrv.CaptureActive, must(q.StreamIsCapturing(s))(b))
		}
	})
	none(s)
	none(other)
	b.ok(g.GraphDestroy(graph))

	runtime.LockOSThread()
	before := must(g.ThreadExchangeStreamCaptureMode(cudadrv.CaptureRelaxed))(b)
	assert.Equal(b, cudadrv.CaptureRelaxed, must(g.ThreadExchangeStreamCaptureMode(before))(b))
	assert.Equal(b, before, must(g.ThreadExchangeStreamCaptureMode(before))(b))
	runtime.UnlockOSThread()
	b.ok(b.dev.EventDestroy(e))
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.StreamDestroy(other))
}

// Mistakes break their capture at most: the next one works.
func testCaptureMistakes(b *bench) {
	g, ok := b.graphs()
	if !ok {
		return
	}
	p := must(b.dev.MemAlloc(4096))(b)
	s, other, e := b.stream(), b.stream(), b.event()
	b.captureMistakes(g, s, other, e, p)
	b.ok(b.dev.EventDestroy(e))
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.StreamDestroy(other))
	b.ok(b.dev.MemFree(p))
}

// captureMistakes leaves no capture in progress, also if it fails.
func (b *bench) captureMistakes(g cudadrv.Graphs, s, other cudadrv.Stream, e cudadrv.Event, p cudadrv.Ptr) {
	b.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer drop(g, s)
	begin := func(mode cudadrv.CaptureMode) {
		b.Helper()
		b.ok(g.StreamBeginCapture(s, mode))
	}
	ended := func(r cudadrv.Result) {
		b.Helper()
		_, err := g.StreamEndCapture(s)
		b.refused(err, "cuStreamEndCapture", r)
	}
	ended(cudadrv.IllegalState)
	b.refused(g.StreamBeginCapture(0, cudadrv.CaptureRelaxed), "cuStreamBeginCapture", cudadrv.CaptureViolation)
	b.refused(g.StreamBeginCapture(s, 3), "cuStreamBeginCapture", cudadrv.InvalidValue)

	begin(cudadrv.CaptureRelaxed) // a captured event says nothing
	b.ok(b.dev.EventRecord(e, s))
	_, err := b.dev.EventQuery(e)
	b.refused(err, "cuEventQuery", cudadrv.CapturedEvent)
	ended(cudadrv.CaptureBroken)

	begin(cudadrv.CaptureRelaxed) // work that does not come back
	b.ok(b.dev.EventRecord(e, s))
	b.ok(b.dev.StreamWaitEvent(other, e))
	b.ok(b.dev.MemsetD8Async(p, 1, 64, other))
	ended(cudadrv.CaptureUnjoined)

	begin(cudadrv.CaptureRelaxed) // twice, and at the wrong end
	b.refused(g.StreamBeginCapture(s, cudadrv.CaptureRelaxed), "cuStreamBeginCapture", cudadrv.IllegalState)
	b.ok(b.dev.EventRecord(e, s))
	b.ok(b.dev.StreamWaitEvent(other, e))
	_, err = g.StreamEndCapture(other)
	b.refused(err, "cuStreamEndCapture", cudadrv.CaptureUnmatched)
	ended(cudadrv.CaptureBroken)

	b.wrongThread(g, s)
	b.ok(g.GraphDestroy(b.captured(g, s, cudadrv.CaptureGlobal, func() { b.ok(b.dev.MemsetD8Async(p, 1, 64, s)) })))
}

// wrongThread ends captures on a thread that did not begin them: all end there, and only relaxed ones make a graph. The caller
// has locked its thread.
func (b *bench) wrongThread(g cudadrv.Graphs, s cudadrv.Stream) {
	b.Helper()
	if b.simulated() && runtime.GOOS != "linux" {
		return // the simulator knows threads on Linux only
	}
	for mode := cudadrv.CaptureGlobal; mode <= cudadrv.CaptureRelaxed; mode++ {
		b.ok(g.StreamBeginCapture(s, mode))
		var graph cudadrv.Graph
		ended := make(chan error)
		go func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var err error
			graph, err = g.StreamEndCapture(s)
			ended <- err
		}()
		err := <-ended
		status, _, asked := g.StreamGetCaptureInfo(s)
		b.ok(asked)
		assert.Equal(b, cudadrv.CaptureNone, status, "mode %d", mode)
		if mode == cudadrv.CaptureRelaxed {
			require.NoError(b, err)
			b.ok(g.GraphDestroy(graph))
			continue
		}
		b.refused(err, "cuStreamEndCapture", cudadrv.CaptureWrongThread)
		_, err = g.StreamEndCapture(s)
		b.refused(err, "cuStreamEndCapture", cudadrv.IllegalState)
	}
}
