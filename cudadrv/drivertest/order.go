package drivertest

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

func testStreams(b *bench) {
	seen := map[cudadrv.Stream]bool{0: true}
	for range 8 {
		s := b.stream()
		assert.False(b, seen[s], "stream %#x names two live streams", s)
		seen[s] = true
	}
	for s := range seen {
		b.ok(b.dev.StreamSynchronize(s))
		assert.True(b, must(b.dev.StreamQuery(s))(b), "a stream without work has finished it")
	}
	delete(seen, 0)
	for s := range seen {
		b.ok(b.dev.StreamDestroy(s))
	}
	b.refused(b.dev.StreamDestroy(0), "cuStreamDestroy", cudadrv.InvalidHandle)
	b.ok(b.dev.StreamSynchronize(0))
}

func testEvents(b *bench) {
	e, other := b.event(), b.event()
	assert.NotZero(b, e)
	assert.NotEqual(b, e, other)
	s := b.stream()

	// Never recorded: it has passed, and waiting for it waits for nothing.
	assert.True(b, must(b.dev.EventQuery(e))(b))
	b.ok(b.dev.EventSynchronize(e))
	b.ok(b.dev.StreamWaitEvent(s, e))
	assert.True(b, must(b.dev.StreamQuery(s))(b))

	// Recorded again and again, on one stream and on another.
	for _, on := range []cudadrv.Stream{s, s, 0, s} {
		b.ok(b.dev.EventRecord(e, on))
		b.ok(b.dev.EventSynchronize(e))
		assert.True(b, must(b.dev.EventQuery(e))(b))
	}
	// An event outlives its stream.
	b.ok(b.dev.EventRecord(e, s))
	b.ok(b.dev.StreamDestroy(s))
	b.ok(b.dev.EventSynchronize(e))
	assert.True(b, must(b.dev.EventQuery(e))(b))

	_, err := b.dev.EventQuery(0)
	b.refused(err, "cuEventQuery", cudadrv.InvalidHandle)
	b.refused(b.dev.EventRecord(0, 0), "cuEventRecord", cudadrv.InvalidHandle)
	b.refused(b.dev.EventDestroy(0), "cuEventDestroy", cudadrv.InvalidHandle)
	b.ok(b.dev.EventDestroy(e))
	b.ok(b.dev.EventDestroy(other))
}

// An event passes no sooner than the work before it, and a stream that waits for an event finishes no sooner than the event.
func testOrder(b *bench) {
	bytes := longFill()
	p := must(b.dev.MemAlloc(bytes))(b)
	first, second := b.stream(), b.stream()
	before, after := b.event(), b.event()
	for range 16 {
		b.ok(b.dev.MemsetD8Async(p, 1, bytes, first))
		b.ok(b.dev.EventRecord(before, first))
		b.ok(b.dev.StreamWaitEvent(second, before))
		b.ok(b.dev.MemsetD8Async(p, 2, bytes, second))
		b.ok(b.dev.EventRecord(after, second))
		if must(b.dev.EventQuery(after))(b) {
			assert.True(b, must(b.dev.EventQuery(before))(b), "the later event passed first")
		}
		b.ok(b.dev.StreamWaitEvent(first, after))
	}
	b.ok(b.dev.CtxSynchronize())

	// Much work on one stream, none on the other but to wait for it.
	for range 64 {
		b.ok(b.dev.MemsetD8Async(p, 1, bytes, first))
	}
	b.ok(b.dev.EventRecord(before, first))
	b.ok(b.dev.StreamWaitEvent(second, before))
	b.ok(b.dev.EventRecord(after, second))
	b.ok(b.dev.EventSynchronize(after))
	assert.True(b, must(b.dev.EventQuery(before))(b), "a stream did not wait for an event")
	assert.True(b, must(b.dev.StreamQuery(first))(b))
	assert.True(b, must(b.dev.EventQuery(after))(b))
	for range 64 {
		b.ok(b.dev.MemsetD8Async(p, 2, bytes, second))
	}
	b.ok(b.dev.StreamSynchronize(second))
	assert.True(b, must(b.dev.StreamQuery(second))(b))
	b.ok(b.dev.MemsetD8Async(p, 3, bytes, first))
	b.ok(b.dev.MemsetD8Async(p, 3, bytes, 0))
	b.ok(b.dev.CtxSynchronize())
	for _, s := range []cudadrv.Stream{0, first, second} {
		assert.True(b, must(b.dev.StreamQuery(s))(b), "CtxSynchronize returned before stream %#x had finished", s)
	}
	for _, e := range []cudadrv.Event{before, after} {
		b.ok(b.dev.EventDestroy(e))
	}
	for _, s := range []cudadrv.Stream{first, second} {
		b.ok(b.dev.StreamDestroy(s))
	}
	b.ok(b.dev.MemFree(p))
}

// longFill returns the size of a fill that takes long enough to be overtaken where an order is missing. The short form runs on
// devices whose time is modelled.
func longFill() int64 {
	if testing.Short() {
		return 256 << 10
	}
	return 16 << 20
}
