package drivertest

import (
	"sync/atomic"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

func testStreamValues(b *bench) {
	v, ok := optional(b, cudadrv.MemoryOperations, func(v cudadrv.StreamValues) error { return v.StreamWriteValue32(0, 8, 1) })
	h, hostOK := b.host()
	if !ok || !hostOK {
		return
	}
	words := must(h.MemHostAlloc(64))(b)
	clear(words)
	at := must(h.MemHostGetDevicePointer(words))(b)
	first, second := b.stream(), b.stream()
	narrow := (*atomic.Uint32)(unsafe.Pointer(&words[0]))
	b.ok(v.StreamWriteValue32(first, at, 7))
	b.ok(b.dev.StreamSynchronize(first))
	assert.Equal(b, uint32(7), narrow.Load())

	// One stream waits for what the other writes, by each condition.
	for i, until := range []cudadrv.WaitCondition{cudadrv.WaitGreaterOrEqual, cudadrv.WaitEqual, cudadrv.WaitAnd} {
		value := uint32(16) << i
		b.ok(v.StreamWaitValue32(first, at, value, until))
		assert.False(b, must(b.dev.StreamQuery(first))(b), "it waits for %d", value)
		b.ok(v.StreamWriteValue32(second, at, value))
		b.ok(b.dev.StreamSynchronize(first))
	}
	if b.info.Capabilities.Has(cudadrv.MemoryOperations64) {
		wide := (*atomic.Uint64)(unsafe.Pointer(&words[8]))
		b.ok(v.StreamWaitValue64(first, at+8, 1<<40, cudadrv.WaitGreaterOrEqual))
		b.ok(v.StreamWriteValue64(first, at+16, 1))
		assert.False(b, must(b.dev.StreamQuery(first))(b))
		wide.Store(1<<40 + 1) // the host may write it, too
		b.ok(b.dev.StreamSynchronize(first))
		b.ok(v.StreamWriteValue64(second, at+8, 1<<63+5))
		b.ok(b.dev.StreamSynchronize(second))
		assert.Equal(b, uint64(1<<63+5), wide.Load())
	} else {
		require.ErrorIs(b, v.StreamWriteValue64(first, at, 1), cudadrv.NotSupported)
	}
	b.ok(b.dev.StreamDestroy(first))
	b.ok(b.dev.StreamDestroy(second))
	b.ok(h.MemFreeHost(words))
}

func testStreamOrdered(b *bench) {
	o, ok := optional(b, cudadrv.StreamOrdered, func(o cudadrv.StreamOrderedMemory) error { return o.MemPoolTrimTo(0) })
	if !ok {
		return
	}
	const size = 1 << 20
	s := b.stream()
	b.ok(o.MemPoolSetThreshold(1 << 40)) // the pool keeps what it has
	var all []cudadrv.Ptr
	for range 4 {
		p := must(o.MemAllocAsync(size, s))(b)
		b.ok(b.dev.MemsetD8Async(p, 1, size, s))
		all = append(all, p)
	}
	reserved, used, err := o.MemPoolUsage()
	b.ok(err)
	assert.GreaterOrEqual(b, used, int64(4*size))
	assert.GreaterOrEqual(b, reserved, used)
	for _, p := range all {
		b.ok(o.MemFreeAsync(p, s))
	}
	b.ok(b.dev.StreamSynchronize(s))
	b.ok(o.MemPoolTrimTo(0))
	reserved, used, err = o.MemPoolUsage()
	b.ok(err)
	assert.Zero(b, used)
	assert.LessOrEqual(b, reserved, int64(keptBytes))
	b.ok(o.MemPoolSetThreshold(0))

	for _, bytes := range []int64{0, -1} {
		_, err := o.MemAllocAsync(bytes, s)
		b.refused(err, "cuMemAllocAsync", cudadrv.InvalidValue)
	}
	_, err = o.MemAllocAsync(b.info.TotalBytes*2, s)
	b.refused(err, "cuMemAllocAsync", cudadrv.OutOfMemory)
	b.refused(o.MemPoolTrimTo(-1), "cuMemPoolTrimTo", cudadrv.InvalidValue)
	b.refused(o.MemPoolSetThreshold(-1), "cuMemPoolSetAttribute", cudadrv.InvalidValue)
	b.ok(b.dev.StreamDestroy(s))
}
