package drivertest

import (
	"slices"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// keptBytes is the memory that a driver may keep when plain allocations and streams are freed: a chunk of 2 MiB for small
// allocations and the queues of some streams, but not another test's worth.
const keptBytes = 64 << 20

func testPlain(b *bench) {
	type block struct {
		p     cudadrv.Ptr
		bytes int64
	}
	var blocks []block
	for _, bytes := range []int64{1, 255, 256, 512, 4097, 64 << 10, 1 << 20, 2 << 20, 5<<20 + 3, 256, 1} {
		p := must(b.dev.MemAlloc(bytes))(b)
		assert.NotZero(b, p)
		assert.Zero(b, p%256, "%#x for %d bytes", p, bytes)
		blocks = append(blocks, block{p, bytes})
	}
	slices.SortFunc(blocks, func(x, y block) int {
		if x.p < y.p {
			return -1
		}
		return 1
	})
	for i := range len(blocks) - 1 {
		assert.LessOrEqual(b, blocks[i].p+cudadrv.Ptr(blocks[i].bytes), blocks[i+1].p, "live allocations overlap")
	}
	for _, bl := range blocks {
		b.ok(b.dev.MemsetD8Async(bl.p, 0xa5, bl.bytes, 0))
	}
	for _, bl := range blocks {
		b.ok(b.dev.MemFree(bl.p))
	}
}

// wholeBytes is the page size of plain segments.
const wholeBytes = 2 << 20

// Whole pages begin at a multiple of their size after any allocations and frees; each can be written and read to its last byte,
// and freeing one leaves the others.
func testPlainSegments(b *bench) {
	live := map[cudadrv.Ptr]int64{}
	var odd []cudadrv.Ptr // between them
	s := b.stream()
	for round := range int64(3) {
		for i := range int64(8) {
			bytes := wholeBytes * (1 + i*(round+1)%5)
			if i%3 == 2 {
				odd = append(odd, must(b.dev.MemAlloc(4097*(i+1)))(b))
			}
			p := must(b.dev.MemAlloc(bytes))(b)
			assert.Zero(b, p%wholeBytes, "%#x for %d bytes", p, bytes)
			for q, n := range live {
				assert.True(b, p+cudadrv.Ptr(bytes) <= q || q+cudadrv.Ptr(n) <= p, "%#x overlaps %#x", p, q)
			}
			live[p] = bytes
			b.ok(b.dev.MemsetD8Async(p, 1, bytes, s))
		}
		for p, bytes := range live {
			b.ok(b.dev.MemcpyDtoDAsync(p+cudadrv.Ptr(bytes/2), p, bytes/2, s))
			if bytes > 2*wholeBytes {
				b.ok(b.dev.MemFree(p))
				delete(live, p)
			}
		}
	}
	for p := range live {
		b.ok(b.dev.MemFree(p))
	}
	for _, p := range odd {
		b.ok(b.dev.MemFree(p))
	}
	b.ok(b.dev.StreamDestroy(s))
}

func testPlainMistakes(b *bench) {
	for _, bytes := range []int64{0, -1, -1 << 62} {
		_, err := b.dev.MemAlloc(bytes)
		b.refused(err, "cuMemAlloc", cudadrv.InvalidValue)
	}
	for _, bytes := range []int64{b.info.TotalBytes * 2, 1 << 50, 1<<63 - 1} {
		_, err := b.dev.MemAlloc(bytes)
		b.refused(err, "cuMemAlloc", cudadrv.OutOfMemory)
	}
	p := must(b.dev.MemAlloc(8 << 20))(b)
	b.refused(b.dev.MemFree(p+4<<20), "cuMemFree", cudadrv.InvalidValue)
	b.refused(b.dev.MemFree(1<<30), "cuMemFree", cudadrv.InvalidValue)
	b.ok(b.dev.MemFree(0))
	b.ok(b.dev.MemsetD8Async(p, 1, 8<<20, 0)) // still there
	b.ok(b.dev.MemFree(p))
	b.refused(b.dev.MemFree(p), "cuMemFree", cudadrv.InvalidValue)
}

func testPlainFreeWaits(b *bench) {
	const bytes = 16 << 20
	p, other := must(b.dev.MemAlloc(bytes))(b), must(b.dev.MemAlloc(256))(b)
	s := b.stream()
	for range 64 {
		b.ok(b.dev.MemsetD8Async(p, 1, bytes, s))
	}
	b.ok(b.dev.MemFree(other))
	assert.True(b, must(b.dev.StreamQuery(s))(b), "MemFree returned before the work of a stream had finished")
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.MemFree(p))
}

func testMemoryInformation(b *bench) {
	freeBytes, totalBytes, err := b.dev.MemGetInfo()
	b.ok(err)
	assert.Positive(b, freeBytes)
	assert.LessOrEqual(b, freeBytes, totalBytes)
	assert.Equal(b, b.info.TotalBytes, totalBytes)

	const bytes = 2 * keptBytes
	p := must(b.dev.MemAlloc(bytes))(b)
	assert.LessOrEqual(b, b.freeBytes(), freeBytes-bytes)
	b.ok(b.dev.MemFree(p))
	assert.GreaterOrEqual(b, b.freeBytes(), freeBytes-keptBytes)
	if !b.hasVirtualMemory() {
		return
	}
	freeBytes = b.freeBytes()
	reserved := b.reserve(b.granules(16))
	assert.Equal(b, freeBytes, b.freeBytes(), "address space is no memory")
	h := b.create(b.granules(16))
	assert.Equal(b, freeBytes-b.granules(16), b.freeBytes())
	b.ok(b.dev.MemMap(reserved, b.granules(16), h))
	assert.Equal(b, freeBytes-b.granules(16), b.freeBytes(), "mapping takes no more")
	b.ok(b.dev.MemUnmap(reserved, b.granules(16)))
	assert.Equal(b, freeBytes-b.granules(16), b.freeBytes(), "unmapping gives nothing back")
	b.ok(b.dev.MemRelease(h))
	assert.Equal(b, freeBytes, b.freeBytes())
	b.ok(b.dev.MemAddressFree(reserved, b.granules(16)))
}
