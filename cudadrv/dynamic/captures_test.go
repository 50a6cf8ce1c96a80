//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"maps"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
)

// exchanges returns how often threads have changed their mode.
func (f *fake) exchanges() uint64 { return f.calls("cuThreadExchangeStreamCaptureMode") }

// unsafeCalls returns an allocator's calls that captures forbid, or may forbid, on hardware.
func unsafeCalls(w *work, other cudadrv.Stream, e cudadrv.Event) map[string]func() error {
	calls := map[string]func() error{
		"cuStreamQuery":       func() error { _, err := w.StreamQuery(other); return err },
		"cuStreamSynchronize": func() error { return w.StreamSynchronize(other) },
		"cuEventQuery":        func() error { _, err := w.EventQuery(e); return err },
		"cuEventSynchronize":  func() error { return w.EventSynchronize(e) },
	}
	all := w.calls()
	for _, name := range []string{
		"cuMemAlloc", "cuMemHostAlloc", "cuMemCreate", "cuMemMap", "cuMemAddressReserve", "cuMemGetInfo", "cuStreamCreate",
		"cuEventCreate",
	} {
		calls[name] = all[name]
	}
	return calls
}

// unsafeSequences is unsafeCalls with the calls that make something first.
func unsafeSequences(w *work, other cudadrv.Stream, e cudadrv.Event) map[string]func() error {
	calls := unsafeCalls(w, other, e)
	calls["cuModuleUnload"] = func() error {
		m, err := w.ModuleLoadData([]byte(drivertest.PTX))
		return first(err, w.ModuleUnload(m))
	}
	calls["cuGraphInstantiate"] = func() error {
		x, err := w.GraphInstantiate(w.graph)
		return first(err, w.GraphExecDestroy(x))
	}
	return calls
}

// onAnotherThread makes a call on another thread.
func onAnotherThread(f func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		failed <- f()
	}()
	return <-failed
}

// During a capture begun through the device, in any mode, calls of this thread and of others work, and change neither the
// capture nor the mode of the thread.
func callsWhileTheDeviceCaptures(t *testing.T, dev cudadrv.Device) {
	t.Helper()
	w := newWork(t, dev)
	other, err := w.StreamCreate()
	require.NoError(t, err)
	require.NoError(t, w.EventRecord(w.event, other))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for mode := cudadrv.CaptureGlobal; mode <= cudadrv.CaptureRelaxed; mode++ {
		require.NoError(t, w.StreamBeginCapture(w.stream, mode))
		for name, call := range unsafeSequences(w, other, w.event) {
			require.NoError(t, call(), "%s in mode %d", name, mode)
			require.NoError(t, onAnotherThread(call), "%s in mode %d, on another thread", name, mode)
		}
		require.NoError(t, w.MemsetD8Async(w.p, 1, 64, w.stream))
		own, err := w.ThreadExchangeStreamCaptureMode(cudadrv.CaptureGlobal)
		require.NoError(t, err)
		assert.Equal(t, cudadrv.CaptureGlobal, own)
		graph, err := w.StreamEndCapture(w.stream)
		require.NoError(t, err, "mode %d", mode)
		nodes, err := w.GraphGetNodes(graph)
		require.NoError(t, err)
		assert.Len(t, nodes, 1)
		require.NoError(t, w.GraphDestroy(graph))
	}
	require.NoError(t, w.StreamDestroy(other))
	w.close(t)
}

func TestCallsWhileTheDeviceCaptures(t *testing.T) {
	dev, err := newFake(t).driver().Open(0)
	require.NoError(t, err)
	callsWhileTheDeviceCaptures(t, dev)
	require.NoError(t, dev.Close())
}

// A capture in global mode that other code has begun on another thread does not make calls of the device fail: refused calls
// are repeated. By CUDA's rules the refusal invalidates the other capture.
func callsWhileOthersCapture(t *testing.T, dev cudadrv.Device, others *capturing) {
	t.Helper()
	w := newWork(t, dev)
	other, err := w.StreamCreate()
	require.NoError(t, err)
	require.NoError(t, w.EventRecord(w.event, other))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, call := range unsafeSequences(w, other, w.event) {
		require.NoError(t, others.begin(w.stream, cudadrv.CaptureGlobal))
		require.NoError(t, onAnotherThread(call), name)
		if err := others.EndCapture(w.stream); err != nil {
			require.ErrorIs(t, err, cudadrv.CaptureBroken, name)
		}
	}
	require.NoError(t, w.StreamDestroy(other))
	w.close(t)
}

func TestCallsWhileOthersCapture(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	callsWhileOthersCapture(t, dev, newCapturing(t, f.path))
	require.NoError(t, dev.Close())
}

// Without a capture, or with one in relaxed mode, no thread changes its mode; during other captures all calls do, except calls
// on streams. A refused call is repeated once.
func TestModesAreChangedForCapturesOnly(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	changes := func(name string) uint64 {
		t.Helper()
		before := f.exchanges()
		require.NoError(t, w.calls()[name]())
		return f.exchanges() - before
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own := []string{"cuMemsetD8Async", "cuMemcpyDtoDAsync", "cuLaunchKernel", "cuMemsetD32Async", "cuMemcpy2DAsync", "cuMemcpyPeerAsync"}
	for _, name := range append(own, "cuMemAlloc", "cuEventQuery") {
		assert.Zero(t, changes(name), name)
	}
	captured := func(mode cudadrv.CaptureMode, f func()) {
		t.Helper()
		require.NoError(t, w.StreamBeginCapture(w.stream, mode))
		f()
		graph, err := w.StreamEndCapture(w.stream)
		require.NoError(t, err)
		require.NoError(t, w.GraphDestroy(graph))
	}
	captured(cudadrv.CaptureRelaxed, func() { assert.Zero(t, changes("cuMemGetInfo")) })
	captured(cudadrv.CaptureGlobal, func() {
		assert.EqualValues(t, 2, changes("cuMemGetInfo"))
		for _, name := range own {
			assert.Zero(t, changes(name), name)
		}
	})
	assert.Zero(t, changes("cuMemGetInfo"), "the capture has ended")

	f.failCall("cuMemAlloc", 1, int32(cudadrv.CaptureViolation))
	before := f.calls("cuMemAlloc")
	assert.EqualValues(t, 2, changes("cuMemAlloc"))
	assert.Equal(t, before+2, f.calls("cuMemAlloc"))
	f.failCall("cuMemAlloc", 0, int32(cudadrv.CaptureViolation))
	_, err = w.MemAlloc(4096)
	require.ErrorIs(t, err, cudadrv.CaptureViolation)
	assert.Equal(t, before+4, f.calls("cuMemAlloc"))
	f.failCall("cuMemAlloc", 0, 0)
	w.close(t)
	require.NoError(t, dev.Close())
}

// A capture counts until it has ended, however it ends: not where the wrong stream ends it, and with its stream, or with the
// error that says that it was broken or that the thread was the wrong one.
func TestCapturesCountUntilTheyEnd(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	underWay := func() bool {
		t.Helper()
		before := f.exchanges()
		_, _, err := w.MemGetInfo()
		require.NoError(t, err)
		return f.exchanges() > before
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s, err := w.StreamCreate()
	require.NoError(t, err)
	other, err := w.StreamCreate()
	require.NoError(t, err)
	ended := func(on cudadrv.Stream) error { _, err := w.StreamEndCapture(on); return err }

	require.ErrorIs(t, w.StreamBeginCapture(s, 3), cudadrv.InvalidValue)
	assert.False(t, underWay(), "it did not begin")
	require.NoError(t, w.StreamBeginCapture(s, cudadrv.CaptureThreadLocal))
	assert.True(t, underWay())
	require.ErrorIs(t, onAnotherThread(func() error { return ended(s) }), cudadrv.CaptureWrongThread)
	assert.False(t, underWay())
	require.NoError(t, w.StreamBeginCapture(s, cudadrv.CaptureThreadLocal))
	require.NoError(t, w.EventRecord(w.event, s))
	require.NoError(t, w.StreamWaitEvent(other, w.event))
	require.ErrorIs(t, ended(other), cudadrv.CaptureUnmatched)
	assert.True(t, underWay())
	require.ErrorIs(t, ended(s), cudadrv.CaptureBroken)
	assert.False(t, underWay())
	require.ErrorIs(t, ended(s), cudadrv.IllegalState)
	assert.False(t, underWay())

	require.NoError(t, w.StreamBeginCapture(s, cudadrv.CaptureGlobal))
	require.NoError(t, w.StreamBeginCapture(other, cudadrv.CaptureGlobal))
	require.NoError(t, w.StreamDestroy(s))
	assert.True(t, underWay(), "the other one")
	require.NoError(t, w.StreamDestroy(other))
	assert.False(t, underWay())
	require.NoError(t, w.EventRecord(w.event, w.stream))
	w.close(t)
	require.NoError(t, dev.Close())
}

// Calls that fail leave the mode of the thread as it was, too.
func TestAFailureLeavesTheModeOfTheThread(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for _, mode := range []cudadrv.CaptureMode{cudadrv.CaptureGlobal, cudadrv.CaptureThreadLocal} {
		_, err := w.ThreadExchangeStreamCaptureMode(mode)
		require.NoError(t, err)
		for name, call := range maps.All(unsafeCalls(w, w.stream, w.event)) {
			f.failCall(name, 0, int32(cudadrv.CaptureViolation))
			require.ErrorIs(t, call(), cudadrv.CaptureViolation, name)
			f.failCall(name, 0, 0)
			now, err := w.ThreadExchangeStreamCaptureMode(mode)
			require.NoError(t, err)
			assert.Equal(t, mode, now, name)
		}
	}
	_, err = w.ThreadExchangeStreamCaptureMode(cudadrv.CaptureGlobal)
	require.NoError(t, err)
	w.close(t)
	require.NoError(t, dev.Close())
}
