package drivertest

import (
	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// A device as its own peer: the suite knows no other one.
func testPeers(b *bench) {
	p, ok := optional(b, cudadrv.PeerAccess, func(p cudadrv.Peers) error {
		_, err := p.DeviceCanAccessPeer(0)
		return err
	})
	if !ok {
		return
	}
	own := p.Context()
	assert.NotZero(b, own)
	_, err := p.DeviceCanAccessPeer(b.info.Ordinal) // any answer is valid
	b.ok(err)
	for _, ordinal := range []int{-1, 1 << 20} {
		_, err := p.DeviceCanAccessPeer(ordinal)
		b.refused(err, "cuDeviceCanAccessPeer", cudadrv.InvalidDevice)
	}
	const bytes = 1 << 16
	from, to, s := must(b.dev.MemAlloc(bytes))(b), must(b.dev.MemAlloc(bytes))(b), b.stream()
	for i, on := range []cudadrv.Stream{s, 0} {
		b.ok(b.dev.MemsetD8Async(from, byte(i+1), bytes, on))
		b.ok(p.MemcpyPeerAsync(to, own, from, own, bytes, on))
		b.holdsPattern(to, []byte{byte(i + 1)}, bytes, on)
	}
	b.ok(p.MemcpyPeerAsync(to, own, from, own, 0, s))
	b.refused(p.MemcpyPeerAsync(to, own, from, own, -1, s), "cuMemcpyPeerAsync", cudadrv.InvalidValue)
	b.refused(p.MemcpyPeerAsync(to, 0, from, own, bytes, s), "cuMemcpyPeerAsync", cudadrv.InvalidContext)
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(from))
	b.ok(b.dev.MemFree(to))
	b.accessByOrdinal(p)
}

// accessByOrdinal grants the device access to its own memory as if it were another one.
func (b *bench) accessByOrdinal(p cudadrv.Peers) {
	b.Helper()
	if !b.hasVirtualMemory() {
		b.refused(p.MemSetPeerAccess(1<<30, 1<<20, b.info.Ordinal), "cuMemSetAccess", cudadrv.NotSupported)
		return
	}
	size := b.granules(1)
	at, h := b.reserve(size), b.create(size)
	b.ok(b.dev.MemMap(at, size, h))
	b.refused(p.MemSetPeerAccess(at, size, -1), "cuMemSetAccess", cudadrv.InvalidDevice, cudadrv.InvalidValue)
	b.refused(p.MemSetPeerAccess(at, -size, b.info.Ordinal), "cuMemSetAccess", cudadrv.InvalidValue)
	b.ok(p.MemSetPeerAccess(at, size, b.info.Ordinal))
	b.ok(b.dev.MemsetD8Async(at, 1, size, 0))
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(at, size))
	b.ok(b.dev.MemRelease(h))
	b.ok(b.dev.MemAddressFree(at, size))
}

// A shared event is one like others here, and has a descriptor. Another process would open it.
func testSharedEvents(b *bench) {
	x, ok := optional(b, cudadrv.EventSharing, func(x cudadrv.SharedEvents) error {
		_, err := x.EventCreateShared()
		return err
	})
	if !ok {
		return
	}
	e, other, plain, s := must(x.EventCreateShared())(b), must(x.EventCreateShared())(b), b.event(), b.stream()
	b.ok(b.dev.EventRecord(e, s))
	b.ok(b.dev.EventSynchronize(e))
	assert.True(b, must(b.dev.EventQuery(e))(b))
	b.ok(b.dev.StreamWaitEvent(s, e))
	first, second := must(x.IpcGetEventHandle(e))(b), must(x.IpcGetEventHandle(other))(b)
	assert.NotEqual(b, cudadrv.EventDescriptor{}, first)
	assert.NotEqual(b, first, second)
	_, err := x.IpcGetEventHandle(plain)
	b.refused(err, "cuIpcGetEventHandle", cudadrv.InvalidHandle)
	_, err = x.IpcGetEventHandle(0)
	b.refused(err, "cuIpcGetEventHandle", cudadrv.InvalidHandle)
	for _, e := range []cudadrv.Event{e, other, plain} {
		b.ok(b.dev.EventDestroy(e))
	}
	b.ok(b.dev.StreamDestroy(s))
}
