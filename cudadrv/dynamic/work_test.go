//go:build linux && (amd64 || arm64)

package dynamic_test

import (
	"maps"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// everything is a device with all optional interfaces.
type everything interface {
	cudadrv.Device
	cudadrv.HostMemory
	cudadrv.HostFunctions
	cudadrv.ShareableMemory
	cudadrv.CaptureQueries
	cudadrv.Kernels
	cudadrv.Graphs
	cudadrv.TimedEvents
	cudadrv.WideWork
	cudadrv.Peers
	cudadrv.SharedEvents
}

// work is a device with one of each thing, so that every call can be made over and over.
type work struct {
	everything
	granule        int64
	p, q, reserved cudadrv.Ptr
	handle         cudadrv.Handle
	stream         cudadrv.Stream
	event          cudadrv.Event
	pinned         []byte
	word           cudadrv.Ptr
	compute
}

func newWork(tb testing.TB, dev cudadrv.Device) *work {
	tb.Helper()
	w := &work{everything: dev.(everything), granule: dev.Info().GranularityBytes}
	var errs [8]error
	w.p, errs[0] = dev.MemAlloc(4096)
	w.q, errs[1] = dev.MemAlloc(4096)
	w.reserved, errs[2] = dev.MemAddressReserve(w.granule)
	w.handle, errs[3] = w.MemCreateShareable(w.granule)
	w.stream, errs[4] = dev.StreamCreate()
	w.event, errs[5] = dev.EventCreate()
	w.pinned, errs[6] = w.MemHostAlloc(4096)
	for _, err := range errs {
		require.NoError(tb, err)
	}
	w.word, errs[7] = w.MemHostGetDevicePointer(w.pinned)
	require.NoError(tb, errs[7])
	w.compute = newCompute(tb, w)
	return w
}

// close gives everything back but the device.
func (w *work) close(tb testing.TB) {
	tb.Helper()
	w.compute.close(tb, w)
	for _, err := range []error{
		w.CtxSynchronize(), w.MemFree(w.p), w.MemFree(w.q), w.MemAddressFree(w.reserved, w.granule), w.MemRelease(w.handle),
		w.StreamDestroy(w.stream), w.EventDestroy(w.event), w.MemFreeHost(w.pinned),
	} {
		require.NoError(tb, err)
	}
}

// calls returns all that neither take nor give anything on balance, each with its name.
func (w *work) calls() map[string]func() error {
	calls := map[string]func() error{
		"cuMemGetInfo": func() error { _, _, err := w.MemGetInfo(); return err },
		"cuMemAlloc":   func() error { return with(w.MemAlloc(4096))(w.MemFree) },
		"cuMemAddressReserve": func() error {
			return with(w.MemAddressReserve(w.granule))(func(p cudadrv.Ptr) error { return w.MemAddressFree(p, w.granule) })
		},
		"cuMemCreate": func() error { return with(w.MemCreate(w.granule))(w.MemRelease) },
		"cuMemMap": func() error {
			return first(w.MemMap(w.reserved, w.granule, w.handle), w.MemSetAccess(w.reserved, w.granule),
				w.MemUnmap(w.reserved, w.granule))
		},
		"cuStreamQuery":       func() error { _, err := w.StreamQuery(w.stream); return err },
		"cuStreamSynchronize": func() error { return w.StreamSynchronize(w.stream) },
		"cuStreamWaitEvent":   func() error { return w.StreamWaitEvent(w.stream, w.event) },
		"cuCtxSynchronize":    func() error { return w.CtxSynchronize() },
		"cuEventCreate":       func() error { return with(w.EventCreate())(w.EventDestroy) },
		"cuStreamCreate":      func() error { return with(w.StreamCreate())(w.StreamDestroy) },
		"cuEventRecord":       func() error { return first(w.EventRecord(w.event, w.stream), w.EventRecord(w.event, 0)) },
		"cuEventQuery":        func() error { _, err := w.EventQuery(w.event); return err },
		"cuEventSynchronize":  func() error { return w.EventSynchronize(w.event) },
		"cuMemsetD8Async":     func() error { return w.MemsetD8Async(w.p, 1, 4096, w.stream) },
		"cuMemcpyDtoDAsync":   func() error { return w.MemcpyDtoDAsync(w.p, w.q, 4096, w.stream) },
		"cuMemHostAlloc":      func() error { return with(w.MemHostAlloc(4096))(w.MemFreeHost) },
		"cuMemHostGetDevicePointer": func() error {
			_, err := w.MemHostGetDevicePointer(w.pinned)
			return err
		},
		"cuMemcpyHtoDAsync":   func() error { return w.MemcpyHtoDAsync(w.p, w.pinned, w.stream) },
		"cuMemcpyDtoHAsync":   func() error { return w.MemcpyDtoHAsync(w.pinned, w.p, w.stream) },
		"cuStreamIsCapturing": func() error { _, err := w.StreamIsCapturing(w.stream); return err },
	}
	maps.Copy(calls, w.computeCalls())
	return calls
}

// with makes a call that takes and, where it worked, the one that gives back.
func with[T any](value T, err error) func(func(T) error) error {
	return func(undo func(T) error) error {
		if err != nil {
			return err
		}
		return undo(value)
	}
}

// first returns the first error of several calls, all of which were made.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// The slice is the memory itself: it shows the device's writes.
func TestPinnedMemoryIsTheMemoryItself(t *testing.T) {
	f := newFake(t)
	dev, err := f.driver().Open(0)
	require.NoError(t, err)
	w := newWork(t, dev)
	assert.Equal(t, uintptr(w.word), uintptr(unsafe.Pointer(&w.pinned[0])), "unified addressing")
	w.close(t)
	require.NoError(t, dev.Close())
}
