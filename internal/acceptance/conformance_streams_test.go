package acceptance_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// These tests are about frees by other threads, and about streams that come and go;
// docs/conformance.md names their sources.

const handedOver = 100 // blocks, as in the original

// RMM: mr_ref_test_mt, AllocFreeDifferentThreads on one stream, on the default stream and on a
// stream for each thread. One goroutine allocates and submits work, another frees.
func TestOneGoroutineAllocatesAnotherFrees(t *testing.T) {
	for name, open := range map[string]func(h *house) *vram.Stream{
		"a stream": (*house).stream,
		"the default stream": func(h *house) *vram.Stream {
			s, err := h.AdoptStream(0)
			require.NoError(h.t, err)
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHouse(t, vram.Config{}, sim.Config{})
			var o overlaps
			var all sync.WaitGroup
			streams := []*vram.Stream{open(h)}
			if name == "a stream" {
				streams = append(streams, open(h)) // a pair of goroutines for each
			}
			for _, s := range streams {
				blocks := make(chan vram.Buffer)
				all.Go(func() {
					defer close(blocks)
					for i := range int64(handedOver) {
						b, err := s.Alloc((i%7 + 1) * 100 * kib)
						if !assert.NoError(t, err) || !assert.NoError(t, o.enter(b)) {
							return
						}
						assert.NoError(t, h.gpu.Launch(s.Handle(), time.Microsecond))
						blocks <- b
					}
				})
				all.Go(func() {
					for b := range blocks {
						assert.NoError(t, o.free(b))
					}
				})
			}
			all.Wait()
			n := h.addsUp()
			assert.Equal(t, uint64(handedOver*len(streams)), n.FreeCount)
			assert.Zero(t, n.LiveBytes)
		})
	}
}

// RMM: mr_ref_test_mt, AllocFreeDifferentThreadsDifferentStream. One goroutine allocates on a,
// another uses the block on b, after an event, lets a wait for that use, and frees. Nobody else
// has the memory before the use on b has ended.
func TestABlockIsUsedOnAnotherStream(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: handedOver * 2 * mib}, sim.Config{})
	a, b := h.stream(), h.stream()
	type handOver struct {
		block vram.Buffer
		ready cudadrv.Event
	}
	event := func(s *vram.Stream) cudadrv.Event {
		e, err := h.gpu.EventCreate()
		assert.NoError(t, err)
		assert.NoError(t, h.gpu.EventRecord(e, s.Handle()))
		return e
	}
	after := func(s *vram.Stream, e cudadrv.Event) {
		assert.NoError(t, h.gpu.StreamWaitEvent(s.Handle(), e))
		assert.NoError(t, h.gpu.EventDestroy(e))
	}
	blocks := make(chan handOver, handedOver)
	var all sync.WaitGroup
	all.Go(func() {
		defer close(blocks)
		for range handedOver {
			x, err := a.Alloc(2 * mib)
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, h.gpu.Launch(a.Handle(), time.Millisecond))
			blocks <- handOver{x, event(a)}
		}
	})
	all.Go(func() {
		for x := range blocks {
			after(b, x.ready)
			assert.NoError(t, h.gpu.Launch(b.Handle(), time.Millisecond))
			after(a, event(b))
			assert.NoError(t, x.block.Free())
		}
	})
	all.Wait()
	c := h.stream()
	freeAll(t, must(t, c, handedOver*2*mib))
	require.NoError(t, h.gpu.StreamSynchronize(c.Handle()), "its work waits on the device")
	idle, err := h.gpu.StreamQuery(b.Handle())
	require.NoError(t, err)
	assert.True(t, idle, "every use on b has ended")
	assert.GreaterOrEqual(t, h.gpu.Now(), handedOver*time.Millisecond)
}

// RMM: PoolTest.DeletedStream. Memory freed on a stream can be used when the stream is gone, and so
// can memory that is freed after that.
func TestMemoryOutlivesItsStream(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 32 * mib}, sim.Config{})
	a := h.stream()
	x, y := must(t, a, 16*mib), must(t, a, 16*mib)
	require.NoError(t, h.gpu.Launch(a.Handle(), time.Second))
	freeAll(t, x)
	require.NoError(t, a.Close())
	_, err := h.gpu.StreamQuery(a.Handle())
	require.ErrorIs(t, err, cudadrv.InvalidHandle)

	b := h.stream()
	z := must(t, b, 16*mib)
	assert.Equal(t, x.Ptr(), z.Ptr())
	freeAll(t, y)
	freeAll(t, z)
	freeAll(t, must(t, b, 32*mib))
	h.addsUp()
}

// RMM #2252: a new stream whose handle has the value of one that was destroyed is another stream.
// It finds neither its cache nor its books.
func TestAHandleThatComesAgainIsAnotherStream(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{ReuseStreamIDs: true})
	for _, bytes := range []int64{5 * kib, 8 * mib} {
		old := h.stream()
		kept, freed := must(t, old, bytes), must(t, old, bytes)
		freeAll(t, freed)
		require.NoError(t, old.Close())

		young := h.stream()
		require.Equal(t, old.Handle(), young.Handle())
		assert.NotEqual(t, old.ID(), young.ID())
		for _, s := range h.Stats().Streams {
			if s.Stream == young.ID() {
				assert.Zero(t, s.HeldBytes, "nothing is inherited")
				assert.Zero(t, s.AllocCount)
			}
		}
		_, err := old.Alloc(bytes)
		require.ErrorIs(t, err, vram.ErrClosed)
		x := must(t, young, bytes)
		assert.NotEqual(t, kept.Ptr(), x.Ptr())

		// Memory freed on the old stream now goes its own way, independent of the new one.
		require.NoError(t, h.gpu.Launch(young.Handle(), time.Second))
		freeAll(t, kept)
		require.ErrorIs(t, kept.Free(), vram.ErrBadFree)
		assert.True(t, x.Live())
		freeAll(t, x)
		require.NoError(t, young.Close())
		assert.Zero(t, h.addsUp().LiveBytes)
	}
}

// The same for handles that are the caller's.
func TestAnAdoptedHandleThatComesAgainIsAnotherStream(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{ReuseStreamIDs: true})
	adopt := func() *vram.Stream {
		handle, err := h.gpu.StreamCreate()
		require.NoError(t, err)
		s, err := h.AdoptStream(handle)
		require.NoError(t, err)
		return s
	}
	old := adopt()
	x := must(t, old, 8*mib)
	require.NoError(t, h.gpu.Launch(old.Handle(), time.Second))
	freeAll(t, x)
	require.NoError(t, old.Close())
	assert.GreaterOrEqual(t, h.gpu.Now(), time.Second, "Close waits for the work: later nobody could")
	require.NoError(t, h.gpu.StreamDestroy(old.Handle()))
	young := adopt()
	require.Equal(t, old.Handle(), young.Handle())
	assert.Zero(t, h.Stats().Streams[0].HeldBytes)
	freeAll(t, must(t, young, 8*mib))
	require.NoError(t, young.Close())
	require.NoError(t, h.gpu.StreamDestroy(young.Handle()))
}

// RMM: ArenaTest.PerThreadToStreamDealloc. A stream's memory passes to another by a request that
// needs all of it, and the free of a block then reaches its present owner.
func TestAFreeFindsItsOwnerAfterMemoryMoved(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	a, b := h.stream(), h.stream()
	var o overlaps
	enter := func(x vram.Buffer) vram.Buffer {
		require.NoError(t, o.enter(x))
		return x
	}
	kept := enter(must(t, a, 4*mib))
	var crumbs []vram.Buffer
	for range 15 {
		crumbs = append(crumbs, enter(must(t, a, 4*mib)))
	}
	for _, x := range crumbs {
		require.NoError(t, o.free(x))
	}
	y := enter(must(t, b, 60*mib)) // all of a's memory except one block
	for _, x := range crumbs {
		require.ErrorIs(t, x.Free(), vram.ErrBadFree, "what was freed and has moved on")
	}
	require.NoError(t, o.free(kept)) // a's, in the middle of b's
	z := enter(must(t, b, 4*mib))
	require.NoError(t, o.free(y))
	w := enter(must(t, a, 60*mib))
	require.NoError(t, a.Close())
	require.NoError(t, o.free(w)) // its stream is closed
	require.NoError(t, o.free(z))
	freeAll(t, must(t, b, 64*mib))
	assert.Zero(t, h.addsUp().LiveBytes)
}
