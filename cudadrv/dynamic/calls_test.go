//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// After Close no call reaches the driver.
func TestNoCallReachesTheDriverAfterClose(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	w.close(t)
	require.NoError(t, dev.Close())
	before := f.calls("")
	calls := w.calls()
	maps.Copy(calls, map[string]func() error{
		"cuMemFree":           func() error { return w.MemFree(w.p) },
		"cuMemAddressFree":    func() error { return w.MemAddressFree(w.reserved, w.granule) },
		"cuMemRelease":        func() error { return w.MemRelease(w.handle) },
		"cuMemSetAccess":      func() error { return w.MemSetAccess(w.reserved, w.granule) },
		"cuMemUnmap":          func() error { return w.MemUnmap(w.reserved, w.granule) },
		"cuStreamDestroy":     func() error { return w.StreamDestroy(w.stream) },
		"cuEventDestroy":      func() error { return w.EventDestroy(w.event) },
		"cuMemFreeHost":       func() error { return w.MemFreeHost(w.pinned) },
		"cuMemHostRegister":   func() error { return w.MemHostRegister(make([]byte, 64)) },
		"cuMemHostUnregister": func() error { return w.MemHostUnregister(make([]byte, 64)) },
		"cuLaunchHostFunc":    func() error { return w.LaunchHostFunc(w.stream, func() {}) },
		"cuMemExportToShareableHandle": func() error {
			_, err := w.MemExportToShareableHandle(w.handle)
			return err
		},
		"cuMemImportFromShareableHandle": func() error { _, err := w.MemImportFromShareableHandle(0); return err },
	})
	for name, call := range calls {
		err := call()
		require.ErrorIs(t, err, cudadrv.InvalidContext, name)
		require.ErrorContains(t, err, name+": ")
		require.ErrorContains(t, err, "the device is closed")
	}
	assert.Equal(t, before, f.calls(""))
	assert.Equal(t, "dynamic", dev.Info().Driver)
}

// Calls and Close at the same time: each call works or is refused, Close is one for all who ask.
func TestCloseAmidCalls(t *testing.T) {
	f := newFake(t)
	f.setMode(threaded)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	var group sync.WaitGroup
	started := make(chan struct{}, 16)
	for range 16 {
		group.Go(func() {
			for i := 0; ; i++ {
				_, _, err := dev.MemGetInfo()
				if i == 10 {
					started <- struct{}{}
				}
				if err != nil {
					assert.ErrorIs(t, err, cudadrv.InvalidContext)
					assert.ErrorContains(t, err, "the device is closed")
					return
				}
			}
		})
	}
	for range 16 {
		<-started
	}
	for range 4 {
		group.Go(func() { assert.NoError(t, dev.Close()) })
	}
	group.Wait()
	assert.EqualValues(t, 1, f.calls("cuDevicePrimaryCtxRelease"))
}

// A failed Close says so, and says it again.
func TestCloseThatFails(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	f.failCall("cuDevicePrimaryCtxRelease", 1, int32(cudadrv.Unknown))
	for range 2 {
		require.ErrorIs(t, dev.Close(), cudadrv.Unknown)
	}
	again, err := f.driver().Open(0)
	require.NoError(t, err)
	require.NoError(t, again.Close())
	r := newRaw(t, f.path)
	require.Zero(t, r.release(0)) // the one that failed
}

// An Open that fails in a later step undoes the earlier ones, and names the step.
func TestOpenThatFails(t *testing.T) {
	for _, name := range []string{
		"cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem", "cuDeviceGetUuid", "cuMemGetAllocationGranularity",
		"cuDevicePrimaryCtxRetain", "cuDeviceGetCount",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			driver := f.driver()
			_, err := driver.DeviceCount()
			require.NoError(t, err)
			f.failCall(name, 1, int32(cudadrv.OutOfMemory))
			dev, err := driver.Open(0)
			require.ErrorIs(t, err, cudadrv.OutOfMemory)
			require.ErrorContains(t, err, name+": ")
			assert.Nil(t, dev)
			assert.Zero(t, f.live(contexts))
			dev, err = driver.Open(0)
			require.NoError(t, err)
			require.NoError(t, dev.Close())
		})
	}
}

// Every call that the driver refuses becomes an error with the call's name, the result, the driver's words for it, and
// the line that made the call.
func TestEveryFailureNamesItsCall(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	copies := 0
	for name, call := range w.calls() {
		f.failCall(name, 1, int32(cudadrv.LaunchFailed))
		err := call()
		var failure *cudadrv.CallError
		require.True(t, errors.As(err, &failure), "%s: %v", name, err)
		assert.Equal(t, name, failure.Func)
		assert.Equal(t, cudadrv.LaunchFailed, failure.Result)
		assert.NotEmpty(t, failure.Detail, name)
		if strings.HasPrefix(name, "cuMemcpy") && strings.Count(failure.Detail, "0x") == 2 { // from one address to another
			assert.Contains(t, failure.Detail, fmt.Sprintf("%#x", uint64(w.p)), name)
			assert.Contains(t, failure.Detail, fmt.Sprintf("%#x", uint64(w.q)), name)
			copies++
		}
		assert.Regexp(t, `^dynamic/(work|compute)_test\.go:\d+$`, failure.Place, name)
	}
	assert.Equal(t, 3, copies, "within a device, of rows, and to a peer")
	// A push that fails is told as such, and the call is not made.
	f.failCall("cuCtxPushCurrent", 1, int32(cudadrv.InvalidContext))
	before := f.calls("cuMemAlloc")
	_, err = w.MemAlloc(4096)
	require.ErrorIs(t, err, cudadrv.InvalidContext)
	require.ErrorContains(t, err, "could not be made current")
	assert.Equal(t, before, f.calls("cuMemAlloc"))
	// A result that the project does not know has the driver's name for it.
	f.failCall("cuMemAlloc", 1, 709)
	_, err = w.MemAlloc(4096)
	require.ErrorContains(t, err, "cuMemAlloc: CUDA_ERROR_CONTEXT_IS_DESTROYED: 4096 bytes: ")
	f.failCall("cuMemAlloc", 1, 31999)
	_, err = w.MemAlloc(4096)
	require.ErrorContains(t, err, "cuMemAlloc: CUresult(31999): 4096 bytes")

	f.failCall("cuLaunchHostFunc", 1, int32(cudadrv.LaunchFailed))
	require.ErrorIs(t, w.LaunchHostFunc(w.stream, func() { assert.Fail(t, "it was refused") }), cudadrv.LaunchFailed)
	// Descriptor 0 is one like others: the driver decides.
	f.failCall("cuMemImportFromShareableHandle", 1, int32(cudadrv.LaunchFailed))
	_, err = w.MemImportFromShareableHandle(0)
	require.ErrorIs(t, err, cudadrv.LaunchFailed)
	w.close(t)
	require.NoError(t, dev.Close())
}

// A function for the host is kept until it has run, and no longer; one that the driver refuses is not kept at all.
func TestAHostFunctionIsNotKept(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	for name, submit := range map[string]func(function func()){
		"it has run": func(function func()) {
			require.NoError(t, w.LaunchHostFunc(w.stream, function))
			require.NoError(t, w.StreamSynchronize(w.stream))
		},
		"it was refused": func(function func()) {
			f.failCall("cuLaunchHostFunc", 1, int32(cudadrv.LaunchFailed))
			require.ErrorIs(t, w.LaunchHostFunc(w.stream, function), cudadrv.LaunchFailed)
		},
		"the device has no such stream": func(function func()) {
			f.failCall("cuLaunchHostFunc", 1, int32(cudadrv.InvalidHandle))
			require.ErrorIs(t, w.LaunchHostFunc(1<<40, function), cudadrv.InvalidHandle)
		},
	} {
		var kept weak.Pointer[[1 << 16]byte]
		func() {
			memory := new([1 << 16]byte)
			kept = weak.Make(memory)
			submit(func() { memory[0]++ })
		}()
		for end := time.Now().Add(time.Minute); kept.Value() != nil && time.Now().Before(end); { // the thread that ran it returns later
			runtime.GC()
		}
		assert.True(t, kept.Value() == nil, name) //nolint:testifylint // a failure of Nil prints all bytes
	}
	w.close(t)
	require.NoError(t, dev.Close())
}

// Calls that the wrapper refuses never reach the driver.
func TestWhatIsRefusedNeverReachesTheDriver(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	before := f.calls("")
	for name, call := range map[string]func() error{
		"cuMemAlloc":          func() error { _, err := w.MemAlloc(-1); return err },
		"cuMemAddressReserve": func() error { _, err := w.MemAddressReserve(w.granule + 1); return err },
		"cuMemAddressFree":    func() error { return w.MemAddressFree(w.reserved, -w.granule) },
		"cuMemCreate":         func() error { _, err := w.MemCreate(-w.granule); return err },
		"cuMemRelease":        func() error { return w.MemRelease(0) },
		"cuMemMap":            func() error { return w.MemMap(w.reserved, w.granule, 0) },
		"cuMemSetAccess":      func() error { return w.MemSetAccess(w.reserved, -1) },
		"cuMemUnmap":          func() error { return w.MemUnmap(0, w.granule) },
		"cuMemsetD8Async":     func() error { return w.MemsetD8Async(w.p, 0, -1, 0) },
		"cuMemcpyDtoDAsync":   func() error { return w.MemcpyDtoDAsync(w.p, w.q, -1, 0) },
		"cuStreamDestroy":     func() error { return w.StreamDestroy(2) },
		"cuStreamWaitEvent":   func() error { return w.StreamWaitEvent(w.stream, 0) },
		"cuEventDestroy":      func() error { return w.EventDestroy(0) },
		"cuEventRecord":       func() error { return w.EventRecord(0, w.stream) },
		"cuEventQuery":        func() error { _, err := w.EventQuery(0); return err },
		"cuEventSynchronize":  func() error { return w.EventSynchronize(0) },
	} {
		err := call()
		var failure *cudadrv.CallError
		require.True(t, errors.As(err, &failure), name)
		assert.Equal(t, name, failure.Func)
		assert.Contains(t, []cudadrv.Result{cudadrv.InvalidValue, cudadrv.InvalidHandle}, failure.Result, name)
		assert.Regexp(t, `^dynamic/calls_test\.go:\d+$`, failure.Place)
	}
	require.NoError(t, w.MemFree(0))
	require.NoError(t, w.MemsetD8Async(w.p, 0, 0, w.stream))
	_, err = w.MemImportFromShareableHandle(-1)
	require.ErrorIs(t, err, cudadrv.InvalidValue)
	assert.Equal(t, before, f.calls(""))
	w.close(t)
	require.NoError(t, dev.Close())
}
