//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// raw are driver calls of other code in the process. Those about the current context hold for a thread.
type raw struct {
	setCurrent func(context uintptr) int32
	getCurrent func(context *uintptr) int32
	push       func(context uintptr) int32
	pop        func(context *uintptr) int32
	create     func(context *uintptr, flags uint32, device int32) int32
	destroy    func(context uintptr) int32
	retain     func(context *uintptr, device int32) int32
	release    func(device int32) int32
}

func newRaw(t *testing.T, path string) *raw {
	t.Helper()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	r := &raw{}
	purego.RegisterLibFunc(&r.setCurrent, handle, "cuCtxSetCurrent")
	purego.RegisterLibFunc(&r.getCurrent, handle, "cuCtxGetCurrent")
	purego.RegisterLibFunc(&r.push, handle, "cuCtxPushCurrent_v2")
	purego.RegisterLibFunc(&r.pop, handle, "cuCtxPopCurrent_v2")
	purego.RegisterLibFunc(&r.create, handle, "cuCtxCreate_v2")
	purego.RegisterLibFunc(&r.destroy, handle, "cuCtxDestroy_v2")
	purego.RegisterLibFunc(&r.retain, handle, "cuDevicePrimaryCtxRetain")
	purego.RegisterLibFunc(&r.release, handle, "cuDevicePrimaryCtxRelease_v2")
	return r
}

// current returns the thread's context.
func (r *raw) current(t *testing.T) uintptr {
	t.Helper()
	var c uintptr
	require.Zero(t, r.getCurrent(&c))
	return c
}

// newContext makes a context of its own, current nowhere.
func (r *raw) newContext(t *testing.T, device int32) uintptr {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var c, popped uintptr
	require.Zero(t, r.create(&c, 0, device))
	require.Zero(t, r.pop(&popped))
	require.Equal(t, c, popped)
	return c
}

func TestContextsOfOthersStayCurrent(t *testing.T) {
	f := newFake(t)
	f.setDevices(2)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	r := newRaw(t, f.path)
	contextsStay(t, dev, r, []uintptr{r.newContext(t, 1), r.newContext(t, 0)})
	require.NoError(t, dev.Close())
}

// contextsStay checks that calls work and leave the thread's current contexts unchanged: none, a foreign one, two of them. It
// destroys the contexts.
func contextsStay(t *testing.T, dev cudadrv.Device, r *raw, foreign []uintptr) {
	t.Helper()
	w := newWork(t, dev)
	for depth := range len(foreign) + 1 {
		runtime.LockOSThread()
		for _, c := range foreign[:depth] {
			require.Zero(t, r.push(c))
		}
		before := r.current(t)
		for name, call := range w.calls() {
			require.NoError(t, call(), "%s with %d contexts", name, depth)
			assert.Equal(t, before, r.current(t), name)
		}
		for i := depth - 1; i >= 0; i-- {
			var popped uintptr
			require.Zero(t, r.pop(&popped))
			assert.Equal(t, foreign[i], popped)
		}
		assert.Zero(t, r.current(t), "the stack of contexts is as deep as it was")
		runtime.UnlockOSThread()
	}
	w.close(t)
	for _, c := range foreign {
		require.Zero(t, r.destroy(c))
	}
}

// Goroutines that move between threads find the context in every call.
func TestGoroutinesOnManyThreads(t *testing.T) {
	f := newFake(t)
	f.setMode(threaded)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			for range 50 {
				p, err := dev.MemAlloc(4096)
				if !assert.NoError(t, err) {
					return
				}
				runtime.Gosched()
				assert.NoError(t, dev.MemsetD8Async(p, 1, 4096, 0))
				runtime.Gosched()
				assert.NoError(t, dev.MemFree(p))
			}
		})
	}
	group.Wait()
	require.NoError(t, dev.Close())
}

// A context of the caller's is used and never released or destroyed; one of another device is refused.
func TestAdoptedContext(t *testing.T) {
	f := newFake(t)
	f.setDevices(2)
	_, err := f.driver().DeviceCount() // the driver is started
	require.NoError(t, err)
	r := newRaw(t, f.path)
	own := r.newContext(t, 1)
	driver := dynamic.New(dynamic.Config{Library: f.path, Context: own})
	none, err := driver.Open(0)
	var wrong *dynamic.ContextError
	require.ErrorAs(t, err, &wrong)
	assert.True(t, none == nil, "no device with an error") //nolint:testifylint // Nil takes an interface with a nil pointer for nil
	assert.Equal(t, own, wrong.Context)
	require.ErrorContains(t, err, "of device 1")

	dev, err := driver.Open(1)
	require.NoError(t, err)
	w := newWork(t, dev)
	for name, call := range w.calls() {
		require.NoError(t, call(), name)
	}
	w.close(t)
	require.NoError(t, dev.Close())
	assert.Zero(t, f.calls("cuDevicePrimaryCtxRetain"))
	assert.Zero(t, f.calls("cuDevicePrimaryCtxRelease"))
	assert.Zero(t, f.calls("cuCtxDestroy"))
	assert.EqualValues(t, 1, f.live(contexts), "it is still there")
	require.Zero(t, r.destroy(own))

	none, err = dynamic.New(dynamic.Config{Library: f.path, Context: own}).Open(1)
	require.ErrorAs(t, err, &wrong)
	assert.True(t, none == nil, "no device with an error") //nolint:testifylint // Nil takes an interface with a nil pointer for nil
	require.ErrorIs(t, err, cudadrv.InvalidContext)
}

// Each device holds the primary context once, from Open to its first Close.
func TestPrimaryContextIsRetainedOnceForEachOpen(t *testing.T) {
	f := newFake(t)
	driver := f.driver()
	one, err := driver.Open(0)
	require.NoError(t, err)
	two, err := driver.Open(0)
	require.NoError(t, err)
	assert.EqualValues(t, 2, f.calls("cuDevicePrimaryCtxRetain"))
	for range 3 {
		require.NoError(t, one.Close())
	}
	assert.EqualValues(t, 1, f.calls("cuDevicePrimaryCtxRelease"))
	assert.EqualValues(t, 1, f.live(contexts), "the other one holds it")
	_, _, err = two.MemGetInfo()
	require.NoError(t, err)
	require.NoError(t, two.Close())
	assert.Zero(t, f.live(contexts))
}
