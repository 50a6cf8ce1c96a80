package drivertest

import (
	"bytes"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
)

// optional returns the device's interface for a capability. If the device lacks the capability, a call of the interface, if
// there is one, must fail accordingly, and the subtest ends.
func optional[T any](b *bench, c cudadrv.Capability, lacking func(T) error) (T, bool) {
	b.Helper()
	t, ok := b.dev.(T)
	if b.info.Capabilities.Has(c) {
		require.True(b, ok, "the capability without the interface")
		return t, true
	}
	if ok {
		require.ErrorIs(b, lacking(t), cudadrv.NotSupported)
	}
	return t, false
}

// host returns the device's interface for page-locked memory, if it has one.
func (b *bench) host() (cudadrv.HostMemory, bool) {
	b.Helper()
	return optional(b, cudadrv.PinnedHost, func(h cudadrv.HostMemory) error {
		_, err := h.MemHostAlloc(1)
		return err
	})
}

// pattern fills b so that a shift, a swap or a byte of another pattern shows.
func pattern(b []byte, seed int) {
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + seed*31)
	}
}

func testHostMemory(b *bench) {
	h, ok := b.host()
	if !ok {
		return
	}
	const size = 1<<20 + 3
	from, to := must(h.MemHostAlloc(size))(b), must(h.MemHostAlloc(size))(b)
	assert.Len(b, from, size)
	p, q := must(b.dev.MemAlloc(size))(b), must(b.dev.MemAlloc(size))(b)
	s := b.stream()
	for i, on := range []cudadrv.Stream{0, s} {
		pattern(from, i)
		clear(to)
		b.ok(h.MemcpyHtoDAsync(p, from, on))
		b.ok(b.dev.MemcpyDtoDAsync(q, p, size, on))
		b.ok(b.dev.MemsetD8Async(q+100, 0xee, 50, on))
		b.ok(h.MemcpyHtoDAsync(q+200, from[:10], on)) // a part of the slice
		b.ok(h.MemcpyDtoHAsync(to, q, on))
		b.ok(b.dev.StreamSynchronize(on))
		want := bytes.Clone(from)
		copy(want[100:150], bytes.Repeat([]byte{0xee}, 50))
		copy(want[200:210], from)
		assert.True(b, bytes.Equal(want, to), "the bytes that come back are others than those that went")
	}
	b.ok(h.MemcpyHtoDAsync(p, nil, s)) // no bytes are no work
	b.ok(h.MemcpyDtoHAsync(nil, p, s))

	// The device writes into host memory by the address that it has there.
	at := must(h.MemHostGetDevicePointer(to))(b)
	b.ok(b.dev.MemsetD8Async(at+1, 0x5a, 1, s))
	b.ok(b.dev.StreamSynchronize(s))
	assert.Equal(b, byte(0x5a), to[1])

	b.ok(h.MemFreeHost(from))
	b.ok(h.MemFreeHost(to[:1]))
	for _, bytes := range []int64{0, -1, -1 << 62} {
		_, err := h.MemHostAlloc(bytes)
		b.refused(err, "cuMemHostAlloc", cudadrv.InvalidValue)
	}
	b.refused(h.MemFreeHost(nil), "cuMemFreeHost", cudadrv.InvalidValue)
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(p))
	b.ok(b.dev.MemFree(q))
}

// Memory of Go's heap, page-locked for a while.
func testRegisteredMemory(b *bench) {
	h, ok := b.host()
	if !ok {
		return
	}
	const size = 4 << 20
	own := make([]byte, size)
	b.ok(h.MemHostRegister(own))
	p := must(b.dev.MemAlloc(size))(b)
	s := b.stream()
	b.ok(b.dev.MemsetD8Async(p, 0x3c, size, s))
	b.ok(h.MemcpyDtoHAsync(own, p, s))
	b.ok(b.dev.StreamSynchronize(s))
	assert.True(b, bytes.Equal(own, bytes.Repeat([]byte{0x3c}, size)))
	b.ok(h.MemHostUnregister(own))
	b.refused(h.MemHostRegister(nil), "cuMemHostRegister", cudadrv.InvalidValue)
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(p))
}

// MemFreeHost waits for all work of the device, of a stream that does not use the memory, too; so the work that uses it has
// finished when the memory is gone.
func testHostFreeWaits(b *bench) {
	h, ok := b.host()
	if !ok {
		return
	}
	const size, small = 16 << 20, 64 << 10
	p, s := must(b.dev.MemAlloc(size))(b), b.stream()
	long := must(h.MemHostAlloc(size))(b) // copies of it take longer than a free
	used, other := must(h.MemHostAlloc(small))(b), must(h.MemHostAlloc(small))(b)
	for i, freed := range [][]byte{other, used} {
		for range 8 {
			b.ok(h.MemcpyHtoDAsync(p, long, s))
		}
		b.ok(h.MemcpyHtoDAsync(p, used, s))
		b.ok(h.MemFreeHost(freed))
		assert.True(b, must(b.dev.StreamQuery(s))(b), "free %d returned before the work of a stream had finished", i)
	}
	b.ok(h.MemFreeHost(long))
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(p))
}

// The contents of a handle appear at each mapping of it, at both places at once.
func testBytesFollowHandles(b *bench) {
	h, ok := b.host()
	if !ok || !b.hasVirtualMemory() {
		return
	}
	size := b.granules(1)
	from, to := must(h.MemHostAlloc(size))(b), must(h.MemHostAlloc(size))(b)
	p := b.reserve(b.granules(4))
	first, second := b.create(size), b.create(size)
	g := cudadrv.Ptr(size)
	b.ok(b.dev.MemMap(p, size, first))
	b.ok(b.dev.MemMap(p+g, size, second))
	b.ok(b.dev.MemSetAccess(p, 2*size))
	pattern(from, 1)
	b.ok(h.MemcpyHtoDAsync(p, from, 0))
	b.ok(b.dev.MemsetD8Async(p+g, 0x77, size, 0))
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(p, 2*size))

	b.ok(b.dev.MemMap(p, size, second)) // the other way round, and the first one twice
	b.ok(b.dev.MemMap(p+g, size, first))
	b.ok(b.dev.MemMap(p+3*g, size, first))
	b.ok(b.dev.MemSetAccess(p, 2*size))
	b.ok(b.dev.MemSetAccess(p+3*g, size))
	b.ok(h.MemcpyDtoHAsync(to, p, 0))
	b.ok(b.dev.CtxSynchronize())
	assert.True(b, bytes.Equal(to, bytes.Repeat([]byte{0x77}, len(to))), "the second handle's bytes")
	for _, at := range []cudadrv.Ptr{p + g, p + 3*g} {
		clear(to)
		b.ok(h.MemcpyDtoHAsync(to, at, 0))
		b.ok(b.dev.CtxSynchronize())
		assert.True(b, bytes.Equal(from, to), "the first handle's bytes")
	}
	b.ok(b.dev.MemsetD8Async(p+g, 0x11, size, 0))
	b.ok(h.MemcpyDtoHAsync(to, p+3*g, 0))
	b.ok(b.dev.CtxSynchronize())
	assert.True(b, bytes.Equal(to, bytes.Repeat([]byte{0x11}, len(to))), "written here, read there")

	b.ok(b.dev.MemUnmap(p, 2*size))
	b.ok(b.dev.MemUnmap(p+3*g, size))
	b.ok(b.dev.MemRelease(first))
	b.ok(b.dev.MemRelease(second))
	b.ok(b.dev.MemAddressFree(p, b.granules(4)))
	b.ok(h.MemFreeHost(from))
	b.ok(h.MemFreeHost(to))
}
