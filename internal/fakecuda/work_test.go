//go:build linux && (amd64 || arm64) && !gpu

package fakecuda_test

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// pending is how many operations wait in a stream.
func (d *driver) pending(s uintptr) int {
	d.Helper()
	return d.count("fakecuda_pending", s)
}

func (d *driver) step(s uintptr) bool {
	d.Helper()
	return d.count("fakecuda_step", s) == 1
}

// pinned is a page of pinned host memory as words.
func (d *driver) pinned() (p uintptr, words []uint64) {
	d.Helper()
	p = d.made("cuMemHostAlloc", 4096, 0)
	return p, unsafe.Slice((*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), 512)
}

func TestQueuedMode(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_mode", queued)
	host, words := d.pinned()
	s, other, e := d.stream(), d.stream(), d.event()
	d.ok("cuStreamWriteValue64_v2", s, host, 1, 0)
	d.ok("cuStreamWriteValue64_v2", s, host, 2, 0)
	d.ok("cuEventRecord", e, s)
	d.ok("cuStreamWaitEvent", other, e, 0)
	d.ok("cuStreamWriteValue64_v2", other, host+8, 3, 0)
	assert.Equal(t, 3, d.pending(s))
	for range 10 {
		d.refused(cudadrv.NotReady, "cuStreamQuery", s)
		d.refused(cudadrv.NotReady, "cuEventQuery", e)
	}
	assert.Equal(t, []uint64{0, 0}, words[:2])
	assert.False(t, d.step(other), "it waits for the event")
	assert.True(t, d.step(s))
	assert.Equal(t, []uint64{1, 0}, words[:2])

	d.value("fakecuda_set_patience", 3)
	for range 2 {
		d.refused(cudadrv.NotReady, "cuStreamQuery", s)
		assert.EqualValues(t, 1, words[0])
	}
	d.refused(cudadrv.NotReady, "cuEventQuery", e)
	assert.EqualValues(t, 2, words[0])

	// Waiting performs exactly the work that is waited for.
	d.ok("cuStreamWriteValue64_v2", s, host, 4, 0)
	d.ok("cuStreamSynchronize", other)
	assert.Equal(t, []uint64{2, 3}, words[:2])
	assert.Equal(t, 1, d.pending(s))
	d.ok("cuEventQuery", e)
	d.ok("cuCtxSynchronize")
	assert.EqualValues(t, 4, words[0])
}

func TestLegacyStream(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_mode", queued)
	host, words := d.pinned()
	blocking, free := d.made("cuStreamCreate", 0), d.stream()
	d.ok("cuStreamWriteValue64_v2", blocking, host, 1, 0)
	d.ok("cuStreamWriteValue64_v2", 0, host, 2, 0)
	d.ok("cuStreamWriteValue64_v2", blocking, host, 3, 0)
	d.ok("cuStreamWriteValue64_v2", free, host+8, 4, 0)
	assert.False(t, d.step(0), "the blocking stream comes first")
	assert.True(t, d.step(blocking))
	assert.False(t, d.step(blocking), "the legacy stream comes first")
	d.ok("cuStreamSynchronize", blocking)
	assert.Equal(t, []uint64{3, 0}, words[:2], "a non-blocking stream is not concerned")
	assert.Equal(t, 1, d.pending(free))
	assert.Zero(t, d.pending(1))
}

func TestWaitsForWords(t *testing.T) {
	d := start(t)
	host, words := d.pinned()
	s, other := d.stream(), d.stream()
	d.ok("cuStreamWaitValue64_v2", s, host, 5, 0)
	d.ok("cuStreamWriteValue64_v2", s, host+8, 1, 0)
	d.refused(cudadrv.NotReady, "cuStreamQuery", s)
	assert.Zero(t, words[1], "immediate mode keeps the order, too")
	atomic.StoreUint64(&words[0], 6)
	d.ok("cuStreamQuery", s)
	assert.EqualValues(t, 1, words[1])

	for _, mode := range []uintptr{immediate, queued, threaded} {
		d.value("fakecuda_set_mode", mode)
		words[0] = 0
		d.ok("cuStreamWaitValue32_v2", s, host, 8, 2)
		d.ok("cuStreamWriteValue32_v2", other, host, 8|3, 0)
		d.ok("cuStreamSynchronize", s) // only the other stream can end this
		assert.EqualValues(t, 11, words[0])
	}
	d.ok("cuStreamWaitValue32_v2", s, host, ^uintptr(0), 0) // -1 was passed
	d.ok("cuStreamSynchronize", s)
}

func TestPageableMemory(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_mode", queued)
	s, p := d.stream(), d.plain(4)
	host := []byte{1, 2, 3, 4}
	d.ok("cuMemcpyHtoDAsync_v2", p, uintptr(unsafe.Pointer(&host[0])), 4, s)
	copy(host, []byte{9, 9, 9, 9}) // the bytes were taken
	d.ok("cuMemcpyDtoHAsync_v2", uintptr(unsafe.Pointer(&host[0])), p, 4, s)
	assert.Equal(t, []byte{1, 2, 3, 4}, host)
	assert.Zero(t, d.pending(s))
	pinned, words := d.pinned()
	d.ok("cuMemcpyDtoHAsync_v2", pinned, p, 4, s)
	assert.Zero(t, words[0])
	d.ok("cuMemFree_v2", p) // it waits for the device
	assert.EqualValues(t, 0x04030201, words[0])
}

func TestHostFunctions(t *testing.T) {
	d := start(t)
	var calls, refused atomic.Int32
	release := make(chan struct{})
	query := d.symbol("cuStreamQuery")
	function := purego.NewCallback(func(argument uintptr) uintptr {
		<-release
		if result, _, _ := purego.SyscallN(query, argument); cudadrv.Result(int32(result)) == cudadrv.NotPermitted {
			refused.Add(1)
		}
		calls.Add(1)
		return 0
	})
	s := d.stream()
	d.ok("cuLaunchHostFunc", s, function, s) // returns while the function waits
	d.refused(cudadrv.NotReady, "cuStreamQuery", s)
	close(release)
	d.ok("cuStreamSynchronize", s)
	assert.EqualValues(t, 1, calls.Load())
	assert.EqualValues(t, 1, refused.Load(), "no calls in a host function")
}

func TestEarlyUnmap(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_mode", queued)
	p, h := d.mapping(granuleBytes, 0)
	s, e, plain := d.stream(), d.event(), d.plain(16)
	d.ok("cuMemsetD8Async", p, 1, granuleBytes, s)
	d.ok("cuEventRecord", e, s)
	d.ok("cuMemUnmap", p, granuleBytes) // too early
	d.refused(cudadrv.LaunchFailed, "cuStreamSynchronize", s)
	d.refused(cudadrv.LaunchFailed, "cuMemsetD8Async", plain, 1, 16, s)
	d.refused(cudadrv.LaunchFailed, "cuEventQuery", e)
	d.refused(cudadrv.LaunchFailed, "cuMemAlloc_v2", uintptr(unsafe.Pointer(&plain)), 16)
	d.refused(cudadrv.LaunchFailed, "cuMemRelease", h)
	d.ok("cuDevicePrimaryCtxRelease_v2", 0)
	d.ok("cuDevicePrimaryCtxRetain", uintptr(unsafe.Pointer(&plain)), 0)
	d.ok("cuMemRelease", h)
	d.plain(16)
}

func TestDestroyedWithWork(t *testing.T) {
	d := start(t)
	d.value("fakecuda_set_mode", queued)
	host, words := d.pinned()
	s, e := d.stream(), d.event()
	d.ok("cuStreamWriteValue64_v2", s, host, 1, 0)
	d.ok("cuEventRecord", e, s)
	d.ok("cuStreamDestroy_v2", s)
	assert.Zero(t, words[0])
	d.ok("cuEventSynchronize", e)
	assert.EqualValues(t, 1, words[0])

	again := d.stream()
	assert.NotEqual(t, s, again)
	d.value("fakecuda_reuse_handles", 1)
	d.ok("cuStreamDestroy_v2", again)
	assert.Equal(t, again, d.stream())
}

func TestCapture(t *testing.T) {
	d := start(t)
	host, words := d.pinned()
	s, other, e := d.stream(), d.stream(), d.event()
	d.ok("cuStreamBeginCapture_v2", s, 0)
	d.ok("cuStreamWriteValue64_v2", s, host, 1, 0)
	d.ok("cuEventRecord", e, s)
	d.ok("cuStreamWaitEvent", other, e, 0)
	d.ok("cuMemcpyDtoDAsync_v2", host+8, host, 8, other)
	d.ok("cuEventRecord", e, other)
	d.ok("cuStreamWaitEvent", s, e, 0)
	d.ok("cuStreamWriteValue64_v2", s, host, 2, 0)
	var graph uintptr
	d.ok("cuStreamEndCapture", s, uintptr(unsafe.Pointer(&graph)))
	assert.Equal(t, []uint64{0, 0}, words[:2], "nothing was performed")
	var count uintptr
	d.ok("cuGraphGetNodes", graph, 0, uintptr(unsafe.Pointer(&count)))
	assert.EqualValues(t, 3, count)
	exec := d.made("cuGraphInstantiateWithFlags", graph, 0)
	d.ok("cuGraphDestroy", graph)
	d.ok("cuGraphLaunch", exec, s)
	d.ok("cuStreamSynchronize", s)
	assert.Equal(t, []uint64{2, 1}, words[:2])
	d.ok("cuGraphExecDestroy", exec)

	const unjoined cudadrv.Result = 904
	d.ok("cuStreamBeginCapture_v2", s, 0)
	d.ok("cuEventRecord", e, s)
	d.ok("cuStreamWaitEvent", other, e, 0)
	d.ok("cuStreamWriteValue64_v2", other, host, 1, 0)
	d.refused(unjoined, "cuStreamEndCapture", s, uintptr(unsafe.Pointer(&graph)))
	require.Zero(t, graph)
}

// Calls that wait or work at once meet captures of other streams: by their mode, by their context, or by their flags.
func TestCallsBesideACapture(t *testing.T) {
	d := start(t)
	const unsupported, invalidated, implicit, captured cudadrv.Result = 900, 901, 906, 907
	const relaxed = 2
	blocking, s, other, e, p := d.made("cuStreamCreate", 0), d.stream(), d.stream(), d.event(), d.plain(16)
	out := d.address(new(uintptr))
	begin := func(on uintptr) {
		t.Helper()
		d.ok("cuStreamBeginCapture_v2", on, relaxed)
		d.ok("cuEventRecord", e, on)
	}
	begin(s)
	d.ok("cuStreamQuery", other)
	d.ok("cuMemsetD8_v2", p, 1, 16)
	d.ok("cuStreamEndCapture", s, out)
	d.refused(cudadrv.InvalidValue, "cuEventQuery", e)
	d.refused(cudadrv.InvalidValue, "cuStreamWaitEvent", other, e, 0)
	d.ok("cuEventRecord", e, other)
	d.ok("cuEventSynchronize", e)

	begin(s)
	d.refused(captured, "cuEventQuery", e)
	d.refused(invalidated, "cuStreamEndCapture", s, out)
	begin(s)
	d.refused(unsupported, "cuCtxSynchronize")
	d.refused(invalidated, "cuStreamEndCapture", s, out)
	begin(blocking)
	d.refused(implicit, "cuMemsetD8_v2", p, 1, 16)
	d.refused(invalidated, "cuStreamEndCapture", blocking, out)
	d.ok("cuCtxSynchronize")
}
