//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"sync"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fakecuda"
)

func TestInjectedFailures(t *testing.T) {
	d := start(t)
	d.fail("cuMemAlloc", 2, cudadrv.Unknown)
	d.fail("cuEventCreate", 0, cudadrv.OutOfMemory)
	at := d.address(new(uintptr))
	d.ok("cuMemAlloc_v2", at, 1)
	d.refused(cudadrv.Unknown, "cuMemAlloc_v2", at, 1)
	d.ok("cuMemAlloc_v2", at, 1)
	for range 3 {
		d.refused(cudadrv.OutOfMemory, "cuEventCreate", at, 0)
	}
	d.fail("cuEventCreate", 0, cudadrv.Success)
	d.ok("cuEventCreate", at, 0)
	assert.Equal(t, 2, d.live(kindAllocations))
	assert.Equal(t, 3, d.count("fakecuda_calls", d.text("cuMemAlloc")))
	assert.Equal(t, 3, d.count("fakecuda_calls", d.text("cuMemAlloc_v2")))
	assert.Zero(t, d.count("fakecuda_calls", d.text("cuMemAllo")))
	assert.Equal(t, 10, d.count("fakecuda_calls", 0)) // with cuInit, retain and set current

	for range 64 {
		d.fail("cuMemFree", 1000, cudadrv.Unknown)
	}
	assert.Zero(t, d.count("fakecuda_fail", d.text("cuMemFree"), 1, 1), "there is no room")
}

// Symbols are taken away when the library is built.
func TestHiddenSymbols(t *testing.T) {
	d := start(t)
	var function uintptr
	path, err := fakecuda.Build(t.TempDir(), "cuMemCreate", "cuMemFree_v2")
	require.NoError(t, err)
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	require.NoError(t, err)
	for _, name := range []string{"cuMemCreate", "cuMemFree_v2"} {
		_, err = purego.Dlsym(handle, name)
		assert.Error(t, err, name)
	}
	_, err = purego.Dlsym(handle, "cuMemMap")
	assert.NoError(t, err)

	// It is a driver of its own, which nobody has started.
	other := &driver{T: t, handle: handle, symbols: map[string]uintptr{}}
	other.refused(cudadrv.NotInitialized, "cuDeviceGetCount", uintptr(unsafe.Pointer(&function)))
	assert.NotZero(t, d.live(kindContexts))
	assert.Zero(t, other.live(kindContexts))
}

// Many threads go through the lives of memory, streams and events at once, while a thread of the library performs.
func TestThreads(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_mode", threaded)
	var context uintptr
	d.ok("cuCtxGetCurrent", uintptr(unsafe.Pointer(&context)))
	freeBytes, count := d.freeBytes(), d.live(-1)
	names := []string{
		"cuCtxSetCurrent", "cuMemAlloc_v2", "cuStreamCreate", "cuEventCreate", "cuMemsetD8Async", "cuEventRecord", "cuStreamWaitEvent",
		"cuEventSynchronize", "cuMemcpyDtoH_v2", "cuMemAddressReserve", "cuMemCreate", "cuMemMap", "cuMemSetAccess", "cuMemUnmap",
		"cuMemRelease", "cuMemAddressFree", "cuStreamSynchronize", "cuEventDestroy_v2",
		"cuStreamDestroy_v2", "cuMemFree_v2",
	}
	for _, name := range names {
		d.symbol(name) // so that goroutines only read the table
	}
	var all sync.WaitGroup
	for i := range byte(8) {
		all.Go(func() {
			for range 20 {
				d.life(context, i)
			}
		})
	}
	all.Wait()
	d.ok("cuCtxSynchronize")
	assert.Equal(t, freeBytes, d.freeBytes())
	assert.Equal(t, count, d.live(-1))
}
