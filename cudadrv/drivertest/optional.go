package drivertest

import (
	"bytes"
	"os"
	"sync/atomic"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// Functions of one stream run once each, in order, and after the work before them.
func testHostFunctions(b *bench) {
	l, ok := optional(b, cudadrv.HostCalls, func(l cudadrv.HostFunctions) error { return l.LaunchHostFunc(0, func() {}) })
	if !ok {
		return
	}
	const size, count = 4 << 20, 200 // more than a block of a driver's own table, if it has one
	p := must(b.dev.MemAlloc(size))(b)
	streams := []cudadrv.Stream{0, b.stream(), b.stream()}
	next := make([]atomic.Int64, len(streams))
	wrong := atomic.Int64{}
	for i := range int64(count) {
		for j, s := range streams {
			b.ok(b.dev.MemsetD8Async(p, byte(i), size, s))
			b.ok(l.LaunchHostFunc(s, func() {
				if !next[j].CompareAndSwap(i, i+1) {
					wrong.Add(1)
				}
			}))
		}
	}
	for j, s := range streams {
		b.ok(b.dev.StreamSynchronize(s))
		assert.Equal(b, int64(count), next[j].Load())
	}
	assert.Zero(b, wrong.Load(), "functions out of order")
	b.refused(l.LaunchHostFunc(0, nil), "cuLaunchHostFunc", cudadrv.InvalidValue)

	// Work after a function waits for it.
	release, done := make(chan struct{}), b.event()
	b.ok(l.LaunchHostFunc(streams[1], func() { <-release }))
	b.ok(b.dev.EventRecord(done, streams[1]))
	assert.False(b, must(b.dev.EventQuery(done))(b))
	close(release)
	b.ok(b.dev.EventSynchronize(done))

	b.ok(b.dev.EventDestroy(done))
	b.ok(b.dev.StreamDestroy(streams[1]))
	b.ok(b.dev.StreamDestroy(streams[2]))
	b.ok(b.dev.MemFree(p))
}

// A handle is exported as a descriptor and imported as another handle of the same memory.
func testShareable(b *bench) {
	m, ok := optional(b, cudadrv.ShareableHandles, func(m cudadrv.ShareableMemory) error {
		_, err := m.MemImportFromShareableHandle(0)
		return err
	})
	if !ok || !b.hasVirtualMemory() {
		return
	}
	size := b.granules(2)
	first := must(m.MemCreateShareable(size))(b)
	fd := must(m.MemExportToShareableHandle(first))(b)
	file := os.NewFile(uintptr(fd), "exported memory")
	if !assert.NotNil(b, file, "descriptor %d", fd) {
		return
	}
	second := must(m.MemImportFromShareableHandle(fd))(b)
	b.ok(file.Close())
	p := b.reserve(2 * size)
	b.ok(b.dev.MemMap(p, size, first))
	b.ok(b.dev.MemMap(p+cudadrv.Ptr(size), size, second))
	b.ok(b.dev.MemSetAccess(p, 2*size))
	b.ok(b.dev.MemsetD8Async(p, 0x42, size, 0))
	b.ok(b.dev.CtxSynchronize())
	if h, ok := b.host(); ok {
		seen := must(h.MemHostAlloc(size))(b)
		b.ok(h.MemcpyDtoHAsync(seen, p+cudadrv.Ptr(size), 0))
		b.ok(b.dev.CtxSynchronize())
		assert.True(b, bytes.Equal(seen, bytes.Repeat([]byte{0x42}, len(seen))), "written by one handle, read by the other")
		b.ok(h.MemFreeHost(seen))
	}
	b.ok(b.dev.MemUnmap(p, 2*size))
	b.ok(b.dev.MemRelease(first))
	b.ok(b.dev.MemRelease(second))
	b.ok(b.dev.MemAddressFree(p, 2*size))

	for _, bytes := range []int64{0, -1, 1} {
		_, err := m.MemCreateShareable(bytes)
		b.refused(err, "cuMemCreate", cudadrv.InvalidValue)
	}
	_, err := m.MemExportToShareableHandle(0)
	b.refused(err, "cuMemExportToShareableHandle", cudadrv.InvalidValue)
	_, err = m.MemImportFromShareableHandle(-1)
	b.refused(err, "cuMemImportFromShareableHandle", cudadrv.InvalidValue)
}

func testCapture(b *bench) {
	q, ok := optional(b, cudadrv.CaptureInformation, func(q cudadrv.CaptureQueries) error {
		_, err := q.StreamIsCapturing(0)
		return err
	})
	if !ok {
		return
	}
	s := b.stream()
	for _, on := range []cudadrv.Stream{0, s} {
		assert.Equal(b, cudadrv.CaptureNone, must(q.StreamIsCapturing(on))(b))
	}
	b.ok(b.dev.StreamDestroy(s))
}
