package drivertest

import (
	"slices"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

func testAddressSpace(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	sizes := []int64{b.granules(1), b.granules(3), b.granules(64), 64 << 30, 1 << 40, b.granules(1)}
	starts := make([]cudadrv.Ptr, len(sizes))
	for i, bytes := range sizes {
		starts[i] = b.reserve(bytes)
		assert.NotZero(b, starts[i])
		assert.Zero(b, int64(starts[i])%b.info.GranularityBytes)
		for j := range i {
			apart := starts[i] >= starts[j]+cudadrv.Ptr(sizes[j]) || starts[j] >= starts[i]+cudadrv.Ptr(bytes)
			assert.True(b, apart, "reservations %d and %d overlap", i, j)
		}
	}
	for i, bytes := range sizes {
		b.ok(b.dev.MemAddressFree(starts[i], bytes))
	}
}

func testAddressSpaceMistakes(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	for _, bytes := range []int64{0, -1, -b.granules(1), 1, b.granules(1) + 1, b.granules(1) - 1} {
		_, err := b.dev.MemAddressReserve(bytes)
		b.refused(err, "cuMemAddressReserve", cudadrv.InvalidValue)
	}
	_, err := b.dev.MemAddressReserve(1 << 48)
	b.refused(err, "cuMemAddressReserve", cudadrv.OutOfMemory)

	p := b.reserve(b.granules(8))
	for _, wrong := range []struct {
		p     cudadrv.Ptr
		bytes int64
	}{
		{p, b.granules(4)},
		{p, 0},
		{p, -b.granules(8)},
		{p + cudadrv.Ptr(b.granules(4)), b.granules(4)},
		{cudadrv.Ptr(b.granules(1)), b.granules(1)},
		{0, b.granules(1)},
	} {
		b.refused(b.dev.MemAddressFree(wrong.p, wrong.bytes), "cuMemAddressFree", cudadrv.InvalidValue)
	}
	h := b.create(b.granules(1))
	b.ok(b.dev.MemMap(p+cudadrv.Ptr(b.granules(2)), b.granules(1), h))
	b.refused(b.dev.MemAddressFree(p, b.granules(8)), "cuMemAddressFree", cudadrv.InvalidValue)
	b.ok(b.dev.MemUnmap(p+cudadrv.Ptr(b.granules(2)), b.granules(1)))
	b.ok(b.dev.MemRelease(h))
	b.ok(b.dev.MemAddressFree(p, b.granules(8)))
	b.refused(b.dev.MemAddressFree(p, b.granules(8)), "cuMemAddressFree", cudadrv.InvalidValue)
}

func testHandleMistakes(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	freeBytes := b.freeBytes()
	for _, bytes := range []int64{0, -1, -b.granules(1), 1, b.granules(1) + 1} {
		_, err := b.dev.MemCreate(bytes)
		b.refused(err, "cuMemCreate", cudadrv.InvalidValue)
	}
	for _, granules := range []int64{b.info.TotalBytes/b.info.GranularityBytes + 1, 1 << 50 / b.info.GranularityBytes} {
		_, err := b.dev.MemCreate(b.granules(granules))
		b.refused(err, "cuMemCreate", cudadrv.OutOfMemory)
	}
	b.refused(b.dev.MemRelease(0), "cuMemRelease", cudadrv.InvalidValue)
	h := b.create(b.granules(1))
	assert.NotZero(b, h)
	b.ok(b.dev.MemRelease(h)) // once: the driver validates the mapping now
	assert.Equal(b, freeBytes, b.freeBytes(), "failed calls change nothing")
}

// Handles of several sizes side by side: access and unmapping in one call over all, and one by one.
func testMapping(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	sizes := []int64{1, 2, 4, 1}
	p := b.reserve(b.granules(16))
	handles := make([]cudadrv.Handle, len(sizes))
	for i, granules := range sizes {
		handles[i] = b.create(b.granules(granules))
	}
	mapAll := func() (bytes int64) {
		for i, granules := range sizes {
			b.ok(b.dev.MemMap(p+cudadrv.Ptr(bytes), b.granules(granules), handles[i]))
			bytes += b.granules(granules)
		}
		return bytes
	}
	bytes := mapAll()
	b.ok(b.dev.MemSetAccess(p, bytes))
	b.ok(b.dev.MemSetAccess(p, bytes)) // again changes nothing
	b.ok(b.dev.MemsetD8Async(p, 1, bytes, 0))
	b.ok(b.dev.MemcpyDtoDAsync(p, p+cudadrv.Ptr(b.granules(4)), b.granules(4), 0)) // across handles
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(p, bytes))

	bytes = mapAll()
	at := p
	for _, granules := range sizes {
		b.ok(b.dev.MemSetAccess(at, b.granules(granules)))
		at += cudadrv.Ptr(b.granules(granules))
	}
	b.ok(b.dev.MemsetD8Async(p, 1, bytes, 0))
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(p+cudadrv.Ptr(b.granules(1)), b.granules(6))) // the two in the middle
	b.ok(b.dev.MemsetD8Async(p, 1, b.granules(1), 0))
	b.ok(b.dev.MemsetD8Async(p+cudadrv.Ptr(b.granules(7)), 1, b.granules(1), 0))
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(p, b.granules(1)))
	b.ok(b.dev.MemUnmap(p+cudadrv.Ptr(b.granules(7)), b.granules(1)))
	for _, h := range handles {
		b.ok(b.dev.MemRelease(h))
	}
	b.ok(b.dev.MemAddressFree(p, b.granules(16)))
}

// mapped returns a reservation of eight granules with handles of one, two and one granules side by side at
// its start, accessible.
func (b *bench) mapped() (p cudadrv.Ptr, undo func()) {
	b.Helper()
	p = b.reserve(b.granules(8))
	at := p
	var handles []cudadrv.Handle
	for _, granules := range []int64{1, 2, 1} {
		h := b.create(b.granules(granules))
		handles = append(handles, h)
		b.ok(b.dev.MemMap(at, b.granules(granules), h))
		at += cudadrv.Ptr(b.granules(granules))
	}
	b.ok(b.dev.MemSetAccess(p, b.granules(4)))
	return p, func() {
		b.Helper()
		b.ok(b.dev.MemsetD8Async(p, 1, b.granules(4), 0)) // failed calls changed nothing
		b.ok(b.dev.CtxSynchronize())
		b.ok(b.dev.MemUnmap(p, b.granules(4)))
		for _, h := range handles {
			b.ok(b.dev.MemRelease(h))
		}
		b.ok(b.dev.MemAddressFree(p, b.granules(8)))
	}
}

func testMapMistakes(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	p, undo := b.mapped()
	const function = "cuMemMap"
	g := cudadrv.Ptr(b.granules(1))
	one, two := b.create(b.granules(1)), b.create(b.granules(2))

	b.refused(b.dev.MemMap(p+4*g+512, b.granules(1), one), function, cudadrv.InvalidValue) // misaligned
	for _, bytes := range []int64{0, -1, -b.granules(1), 1} {
		b.refused(b.dev.MemMap(p+4*g, bytes, one), function, cudadrv.InvalidValue, cudadrv.NotSupported)
	}
	b.refused(b.dev.MemMap(p+4*g, b.granules(1), two), function, cudadrv.NotSupported) // a part of the handle
	b.refused(b.dev.MemMap(p+4*g, b.granules(2), one), function, cudadrv.NotSupported) // more than the handle
	b.refused(b.dev.MemMap(g, b.granules(1), one), function, cudadrv.InvalidValue)     // not reserved

	taken := []cudadrv.Result{cudadrv.InvalidValue, cudadrv.AlreadyMapped}
	b.refused(b.dev.MemMap(p, b.granules(1), one), function, taken...)
	b.refused(b.dev.MemMap(p+2*g, b.granules(1), one), function, taken...)   // inside a mapping
	b.refused(b.dev.MemMap(p+3*g, b.granules(2), two), function, taken...)   // over the end of one
	b.refused(b.dev.MemMap(p+2*g+g, b.granules(1), one), function, taken...) // exactly over one

	b.ok(b.dev.MemRelease(one))
	b.ok(b.dev.MemRelease(two))
	undo()
}

func testAccessMistakes(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	p, undo := b.mapped()
	const function = "cuMemSetAccess"
	g := cudadrv.Ptr(b.granules(1))
	for _, wrong := range []struct {
		p     cudadrv.Ptr
		bytes int64
	}{
		{p, 0},
		{p, -b.granules(1)},
		{p + 512, b.granules(1)},
		{p + g, b.granules(1)},   // a part of a mapping, from its start
		{p + 2*g, b.granules(1)}, // and to its end
		{p + 4*g, b.granules(1)}, // nothing mapped
		{p, b.granules(5)},       // a hole after it
		{g, b.granules(1)},       // not reserved
	} {
		b.refused(b.dev.MemSetAccess(wrong.p, wrong.bytes), function, cudadrv.InvalidValue)
	}
	undo()
}

// Access is given to the mappings of the range: those next to it, within and past the reservation, stay without, and a handle
// has it where it was given, not where else it is mapped.
func testAccessOfSome(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	outside := []cudadrv.Result{cudadrv.InvalidValue, cudadrv.IllegalAddress}
	g := cudadrv.Ptr(b.granules(1))
	p := b.reserve(b.granules(6))
	var handles []cudadrv.Handle
	for i := range cudadrv.Ptr(5) {
		handles = append(handles, b.create(b.granules(1)))
		b.ok(b.dev.MemMap(p+i*g, b.granules(1), handles[i]))
	}
	b.ok(b.dev.MemMap(p+5*g, b.granules(1), handles[1])) // a second time
	expect := func(accessible ...cudadrv.Ptr) {
		b.Helper()
		for i := range cudadrv.Ptr(6) {
			err := b.dev.MemsetD8Async(p+i*g, 1, b.granules(1), 0)
			if slices.Contains(accessible, i) {
				b.ok(err)
				continue
			}
			b.refused(err, "cuMemsetD8Async", outside...)
			b.refused(b.dev.MemsetD8Async(p+i*g, 1, 1, 0), "cuMemsetD8Async", outside...)
			b.refused(b.dev.MemsetD8Async(p+(i+1)*g-1, 1, 1, 0), "cuMemsetD8Async", outside...)
		}
	}
	expect()
	b.ok(b.dev.MemSetAccess(p+g, b.granules(2)))
	expect(1, 2)
	b.ok(b.dev.MemSetAccess(p, b.granules(1)))
	expect(0, 1, 2)
	b.ok(b.dev.MemSetAccess(p+5*g, b.granules(1)))
	expect(0, 1, 2, 5)
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(p+2*g, b.granules(1)))
	b.ok(b.dev.MemMap(p+2*g, b.granules(1), handles[2])) // a new mapping
	expect(0, 1, 5)
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(p, b.granules(6)))
	for _, h := range handles {
		b.ok(b.dev.MemRelease(h))
	}
	b.ok(b.dev.MemAddressFree(p, b.granules(6)))
}

func testUnmapMistakes(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	p, undo := b.mapped()
	const function = "cuMemUnmap"
	g := cudadrv.Ptr(b.granules(1))
	b.refused(b.dev.MemUnmap(p, 0), function, cudadrv.InvalidValue)
	b.refused(b.dev.MemUnmap(p, -b.granules(1)), function, cudadrv.InvalidValue)
	b.refused(b.dev.MemUnmap(p+g, b.granules(1)), function, cudadrv.InvalidValue) // a part of a mapping
	undo()
}

func testMove(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	p := b.reserve(b.granules(8))
	h := b.create(b.granules(2))
	freeBytes := b.freeBytes()
	for i := range int64(4) {
		at := p + cudadrv.Ptr(b.granules(2*i))
		b.ok(b.dev.MemMap(at, b.granules(2), h))
		b.ok(b.dev.MemSetAccess(at, b.granules(2)))
		b.ok(b.dev.MemsetD8Async(at, byte(i), b.granules(2), 0))
		b.ok(b.dev.CtxSynchronize())
		b.ok(b.dev.MemUnmap(at, b.granules(2)))
	}
	assert.Equal(b, freeBytes, b.freeBytes(), "moving takes and gives no memory")
	b.ok(b.dev.MemRelease(h))
	b.ok(b.dev.MemAddressFree(p, b.granules(8)))
}

func testAlias(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	p := b.reserve(b.granules(2))
	h := b.create(b.granules(1))
	freeBytes := b.freeBytes()
	b.ok(b.dev.MemMap(p, b.granules(1), h))
	b.ok(b.dev.MemMap(p+cudadrv.Ptr(b.granules(1)), b.granules(1), h))
	b.ok(b.dev.MemSetAccess(p, b.granules(2)))
	assert.Equal(b, freeBytes, b.freeBytes(), "mapping takes no memory")
	b.ok(b.dev.MemUnmap(p, b.granules(1)))
	b.ok(b.dev.MemsetD8Async(p+cudadrv.Ptr(b.granules(1)), 1, b.granules(1), 0))
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(p+cudadrv.Ptr(b.granules(1)), b.granules(1)))
	b.ok(b.dev.MemRelease(h))
	assert.Equal(b, freeBytes+b.granules(1), b.freeBytes())
	b.ok(b.dev.MemAddressFree(p, b.granules(2)))
}

func testReleasedWhileMapped(b *bench) {
	if !b.hasVirtualMemory() {
		return
	}
	freeBytes := b.freeBytes()
	p := b.reserve(b.granules(4))
	h := b.create(b.granules(4))
	b.ok(b.dev.MemMap(p, b.granules(4), h))
	b.ok(b.dev.MemSetAccess(p, b.granules(4)))
	b.ok(b.dev.MemRelease(h))
	assert.Equal(b, freeBytes-b.granules(4), b.freeBytes(), "it is still mapped")
	b.ok(b.dev.MemsetD8Async(p, 1, b.granules(4), 0))
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemUnmap(p, b.granules(4)))
	assert.Equal(b, freeBytes, b.freeBytes(), "the last mapping held it")
	b.ok(b.dev.MemAddressFree(p, b.granules(4)))
}

func testWithoutVirtualMemory(b *bench) {
	if b.hasVirtualMemory() {
		return
	}
	const bytes = 2 << 20
	_, err := b.dev.MemAddressReserve(bytes)
	b.refused(err, "cuMemAddressReserve", cudadrv.NotSupported)
	_, err = b.dev.MemCreate(bytes)
	b.refused(err, "cuMemCreate", cudadrv.NotSupported)
	b.refused(b.dev.MemAddressFree(bytes, bytes), "cuMemAddressFree", cudadrv.NotSupported)
	b.refused(b.dev.MemRelease(1), "cuMemRelease", cudadrv.NotSupported)
	b.refused(b.dev.MemMap(bytes, bytes, 1), "cuMemMap", cudadrv.NotSupported)
	b.refused(b.dev.MemSetAccess(bytes, bytes), "cuMemSetAccess", cudadrv.NotSupported)
	b.refused(b.dev.MemUnmap(bytes, bytes), "cuMemUnmap", cudadrv.NotSupported)
}
