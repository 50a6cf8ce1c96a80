package drivertest

import (
	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// The legacy default stream waits for earlier work on blocking streams, and they for it, and an event on it covers their work.
// Its two names are one stream. An allocator's streams are not affected.
func testLegacyStream(b *bench) {
	l, ok := optional(b, cudadrv.BlockingCreation, func(l cudadrv.BlockingStreams) error {
		_, err := l.StreamCreateBlocking()
		return err
	})
	if !ok {
		return
	}
	bytes := longFill()
	p := must(b.dev.MemAlloc(bytes))(b)
	own, other := must(l.StreamCreateBlocking())(b), must(l.StreamCreateBlocking())(b)
	first, second := b.event(), b.event()
	work := func(s cudadrv.Stream, count int) {
		for range count {
			b.ok(b.dev.MemsetD8Async(p, 1, bytes, s))
		}
	}
	covers := func(before, after cudadrv.Stream, count int, what string) {
		work(before, 64)
		b.ok(b.dev.EventRecord(first, before))
		work(after, count)
		b.ok(b.dev.EventRecord(second, after))
		b.ok(b.dev.EventSynchronize(second))
		assert.True(b, must(b.dev.EventQuery(first))(b), what)
		b.ok(b.dev.CtxSynchronize())
	}
	for _, legacy := range []cudadrv.Stream{0, 1} {
		covers(own, legacy, 1, "the default stream did not wait for a blocking one")
		covers(own, legacy, 0, "an event on the default stream did not cover a blocking one")
		covers(legacy, own, 1, "a blocking stream did not wait for the default one")
		covers(legacy, 1-legacy, 0, "the default stream is not one")
	}
	work(own, 64)
	b.ok(b.dev.EventRecord(first, own))
	work(0, 1)
	work(other, 1)
	b.ok(b.dev.EventRecord(second, other))
	b.ok(b.dev.EventSynchronize(second))
	assert.True(b, must(b.dev.EventQuery(first))(b), "a blocking stream overtook another past the default one")

	b.standsApart(p, bytes)
	for _, e := range []cudadrv.Event{first, second} {
		b.ok(b.dev.EventDestroy(e))
	}
	for _, s := range []cudadrv.Stream{own, other} {
		b.ok(b.dev.StreamDestroy(s))
	}
	b.ok(b.dev.MemFree(p))
}

// standsApart checks that a stream of StreamCreate runs while the default stream is blocked.
func (b *bench) standsApart(p cudadrv.Ptr, bytes int64) {
	b.Helper()
	h, ok := b.dev.(cudadrv.HostFunctions)
	if !ok || !b.info.Capabilities.Has(cudadrv.HostCalls) {
		return
	}
	s, held, apart := b.stream(), b.event(), b.event()
	release := make(chan struct{})
	b.ok(h.LaunchHostFunc(0, func() { <-release }))
	b.ok(b.dev.EventRecord(held, 0))
	b.ok(b.dev.MemsetD8Async(p, 1, bytes, s))
	b.ok(b.dev.EventRecord(apart, s))
	b.ok(b.dev.EventSynchronize(apart))
	assert.False(b, must(b.dev.EventQuery(held))(b), "the default stream was not held up")
	close(release)
	b.ok(b.dev.CtxSynchronize())
	for _, e := range []cudadrv.Event{held, apart} {
		b.ok(b.dev.EventDestroy(e))
	}
	b.ok(b.dev.StreamDestroy(s))
}
