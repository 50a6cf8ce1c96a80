//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// asking are driver calls of other code in the process about objects of the device under test.
type asking struct {
	hostFlags   func(flags *uint32, p unsafe.Pointer) int32
	streamFlags func(s uintptr, flags *uint32) int32
	elapsed     func(milliseconds *float32, from, to uintptr) int32
}

func newAsking(t *testing.T, path string) *asking {
	t.Helper()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	a := &asking{}
	purego.RegisterLibFunc(&a.hostFlags, handle, "cuMemHostGetFlags")
	purego.RegisterLibFunc(&a.streamFlags, handle, "cuStreamGetFlags")
	purego.RegisterLibFunc(&a.elapsed, handle, "cuEventElapsedTime")
	return a
}

// Objects have the properties that the documentation of each call promises: host memory that every context and the device can
// use, streams that do or do not wait for the default stream, and events without timing.
func TestWhatIsMadeHasItsFlags(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	r, ask := newRaw(t, f.path), newAsking(t, f.path)
	blocking, err := dev.(cudadrv.BlockingStreams).StreamCreateBlocking()
	require.NoError(t, err)
	registered := make([]byte, 4096)
	require.NoError(t, w.MemHostRegister(registered))
	require.NoError(t, w.EventRecord(w.event, w.stream))
	require.NoError(t, w.EventSynchronize(w.event))

	runtime.LockOSThread()
	var context, popped uintptr
	require.Zero(t, r.retain(&context, 0))
	require.Zero(t, r.push(context))
	const portable, mapped, nonBlocking = 1, 2, 1
	var flags uint32
	require.Zero(t, ask.hostFlags(&flags, unsafe.Pointer(unsafe.SliceData(w.pinned))))
	assert.EqualValues(t, portable|mapped, flags, "allocated")
	require.Zero(t, ask.hostFlags(&flags, unsafe.Pointer(unsafe.SliceData(registered))))
	assert.EqualValues(t, portable|mapped, flags, "registered")
	require.Zero(t, ask.streamFlags(uintptr(w.stream), &flags))
	assert.EqualValues(t, nonBlocking, flags)
	require.Zero(t, ask.streamFlags(uintptr(blocking), &flags))
	assert.Zero(t, flags)
	var milliseconds float32
	assert.EqualValues(t, cudadrv.InvalidHandle, ask.elapsed(&milliseconds, uintptr(w.event), uintptr(w.event)))
	require.Zero(t, r.pop(&popped))
	require.Zero(t, r.release(0))
	runtime.UnlockOSThread()

	require.NoError(t, w.MemHostUnregister(registered))
	require.NoError(t, w.StreamDestroy(blocking))
	w.close(t)
	require.NoError(t, dev.Close())
}

// A call that fails leaves the thread with the contexts that it had, as one that works does, and so does one whose context
// could not be made current.
func TestContextsStayCurrentAfterAFailure(t *testing.T) {
	f := newFake(t)
	f.setDevices(2)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w, r := newWork(t, dev), newRaw(t, f.path)
	foreign := r.newContext(t, 1)
	for _, depth := range []int{0, 1} {
		runtime.LockOSThread()
		if depth > 0 {
			require.Zero(t, r.push(foreign))
		}
		before := r.current(t)
		for name, call := range w.calls() {
			for _, failing := range []string{name, "cuCtxPushCurrent"} {
				pushed := f.calls("cuCtxPushCurrent")
				f.failCall(failing, 1, int32(cudadrv.LaunchFailed))
				err := call()
				assert.Equal(t, before, r.current(t), "%s, %s fails", name, failing)
				if failing == name || f.calls("cuCtxPushCurrent") > pushed {
					require.ErrorIs(t, err, cudadrv.LaunchFailed, name)
				}
				f.failCall(failing, 0, 0)
			}
		}
		if depth > 0 {
			var popped uintptr
			require.Zero(t, r.pop(&popped))
			assert.Equal(t, foreign, popped)
		}
		assert.Zero(t, r.current(t), "the stack of contexts is as deep as it was")
		runtime.UnlockOSThread()
	}
	w.close(t)
	require.Zero(t, r.destroy(foreign))
	require.NoError(t, dev.Close())
}

// Work on memory is submitted with the device's context current, also on a stream that is the caller's own: without it an
// H200's driver refuses some.
func TestWorkIsSubmittedWithItsContext(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	calls := w.calls()
	for _, name := range []string{"cuMemsetD8Async", "cuMemcpyDtoDAsync", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"} {
		pushed, popped := f.calls("cuCtxPushCurrent"), f.calls("cuCtxPopCurrent")
		require.NoError(t, calls[name](), name)
		assert.Equal(t, pushed+1, f.calls("cuCtxPushCurrent"), name)
		assert.Equal(t, popped+1, f.calls("cuCtxPopCurrent"), name)
	}
	w.close(t)
	require.NoError(t, dev.Close())
}

// An error describes its own call, after any earlier failures.
func TestAFailureSaysNothingOfEarlierOnes(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	for name, call := range w.calls() {
		pushed := f.calls("cuCtxPushCurrent")
		f.failCall("cuCtxPushCurrent", 1, int32(cudadrv.InvalidContext))
		if err := call(); f.calls("cuCtxPushCurrent") > pushed {
			require.ErrorContains(t, err, "could not be made current", name)
		}
		f.failCall("cuCtxPushCurrent", 0, 0)
		f.failCall(name, 1, int32(cudadrv.LaunchFailed))
		err := call()
		require.ErrorIs(t, err, cudadrv.LaunchFailed, name)
		assert.NotContains(t, err.Error(), "could not be made current", name)
	}
	w.close(t)
	require.NoError(t, dev.Close())
}
