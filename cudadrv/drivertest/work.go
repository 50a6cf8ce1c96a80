package drivertest

import (
	"sync"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

func testWork(b *bench) {
	const bytes = 1 << 20
	p, q := must(b.dev.MemAlloc(bytes))(b), must(b.dev.MemAlloc(bytes))(b)
	s := b.stream()
	for _, on := range []cudadrv.Stream{0, s} {
		b.ok(b.dev.MemsetD8Async(p, 0xff, bytes, on))
		b.ok(b.dev.MemsetD8Async(p+1, 0, 1, on))
		b.ok(b.dev.MemsetD8Async(p+bytes-1, 0, 1, on))
		b.ok(b.dev.MemcpyDtoDAsync(q, p, bytes, on))
		b.ok(b.dev.MemcpyDtoDAsync(q+3, p+5, bytes-5, on))
	}
	b.ok(b.dev.MemsetD8Async(p, 1, 0, s)) // no bytes are no work
	b.ok(b.dev.MemcpyDtoDAsync(q, p, 0, s))
	b.ok(b.dev.StreamSynchronize(s))
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(p))
	b.ok(b.dev.MemFree(q))
}

// Work outside memory is refused when it is submitted and does the device no harm.
func testWorkMistakes(b *bench) {
	const bytes = 1 << 20
	outside := []cudadrv.Result{cudadrv.InvalidValue, cudadrv.IllegalAddress}
	p := must(b.dev.MemAlloc(bytes))(b)
	b.refused(b.dev.MemsetD8Async(p, 1, -1, 0), "cuMemsetD8Async", cudadrv.InvalidValue)
	b.refused(b.dev.MemcpyDtoDAsync(p, p, -1, 0), "cuMemcpyDtoDAsync", cudadrv.InvalidValue)
	b.refused(b.dev.MemsetD8Async(0, 1, 8, 0), "cuMemsetD8Async", outside...)
	b.refused(b.dev.MemsetD8Async(p, 1, 64<<30, 0), "cuMemsetD8Async", outside...)
	if b.hasVirtualMemory() {
		reserved := b.reserve(b.granules(2))
		b.refused(b.dev.MemsetD8Async(reserved, 1, b.granules(1), 0), "cuMemsetD8Async", outside...)
		h := b.create(b.granules(1))
		b.ok(b.dev.MemMap(reserved, b.granules(1), h))
		b.refused(b.dev.MemsetD8Async(reserved, 1, b.granules(1), 0), "cuMemsetD8Async", outside...)
		b.ok(b.dev.MemSetAccess(reserved, b.granules(1)))
		b.ok(b.dev.MemsetD8Async(reserved, 1, b.granules(1), 0))
		b.ok(b.dev.CtxSynchronize())
		b.ok(b.dev.MemUnmap(reserved, b.granules(1)))
		b.refused(b.dev.MemsetD8Async(reserved, 1, b.granules(1), 0), "cuMemsetD8Async", outside...)
		b.ok(b.dev.MemRelease(h))
		b.ok(b.dev.MemAddressFree(reserved, b.granules(2)))
	}
	b.ok(b.dev.MemsetD8Async(p, 1, bytes, 0))
	b.ok(b.dev.CtxSynchronize())
	b.ok(b.dev.MemFree(p))
}

// Each goroutine uses its own memory, stream and event, on any OS thread.
func testGoroutines(b *bench) {
	freeBytes := b.freeBytes()
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 8 {
				if err := b.life(); !assert.NoError(b, err) {
					return
				}
			}
		})
	}
	all.Wait()
	assert.GreaterOrEqual(b, b.freeBytes(), freeBytes-keptBytes)
}

// life runs the work of a goroutine. It returns the first error, and leaves nothing allocated on success.
func (b *bench) life() error {
	p, err := b.dev.MemAlloc(64 << 10)
	if err != nil {
		return err
	}
	s, err := b.dev.StreamCreate()
	if err != nil {
		return err
	}
	e, err := b.dev.EventCreate()
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return b.dev.MemsetD8Async(p, 1, 64<<10, s) },
		func() error { return b.dev.EventRecord(e, s) },
		func() error { return b.dev.StreamWaitEvent(0, e) },
		func() error { return b.dev.EventSynchronize(e) },
		func() error { return b.dev.EventDestroy(e) },
		func() error { return b.dev.StreamDestroy(s) },
		func() error { return b.dev.MemFree(p) },
	}
	if b.hasVirtualMemory() {
		steps = append(steps, b.virtualLife)
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// virtualLife reserves, maps and gives everything back.
func (b *bench) virtualLife() error {
	bytes := b.granules(1)
	p, err := b.dev.MemAddressReserve(bytes)
	if err != nil {
		return err
	}
	h, err := b.dev.MemCreate(bytes)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return b.dev.MemMap(p, bytes, h) },
		func() error { return b.dev.MemSetAccess(p, bytes) },
		func() error { return b.dev.MemsetD8Async(p, 1, bytes, 0) },
		func() error { return b.dev.StreamSynchronize(0) },
		func() error { return b.dev.MemUnmap(p, bytes) },
		func() error { return b.dev.MemRelease(h) },
		func() error { return b.dev.MemAddressFree(p, bytes) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
