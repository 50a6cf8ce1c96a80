package acceptance_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// adopt makes a CUDA stream and a cache for it.
func (h *house) adopt() *vram.Stream {
	h.t.Helper()
	handle, err := h.gpu.StreamCreate()
	require.NoError(h.t, err)
	s, err := h.AdoptStream(handle)
	require.NoError(h.t, err)
	return s
}

// The default stream of a thread cannot have a cache: the error names streams that can.
func TestThePerThreadDefaultStreamIsRefused(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	_, err := h.AdoptStream(2)
	var refused *vram.HandleError
	require.ErrorAs(t, err, &refused)
	assert.EqualValues(t, 2, refused.Handle)
	assert.ErrorContains(t, err, "NewStream")
}

// A CUDA stream has one cache at a time, under each of its handles.
func TestAHandleIsAdoptedOnce(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	refused := func(handle vram.StreamHandle, by *vram.Stream) {
		t.Helper()
		_, err := h.AdoptStream(handle)
		var e *vram.HandleError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, by.ID(), e.Stream)
		assert.Contains(t, err.Error(), "already")
	}
	own, adopted := h.stream(), h.adopt()
	refused(own.Handle(), own)
	refused(adopted.Handle(), adopted)
	legacy, err := h.AdoptStream(1)
	require.NoError(t, err)
	refused(0, legacy)
	refused(1, legacy)

	kept := must(t, adopted, 8*mib)
	require.NoError(t, adopted.Close())
	again, err := h.AdoptStream(adopted.Handle())
	require.NoError(t, err, "the old cache is closed, though a buffer of it lives")
	freeAll(t, must(t, again, 8*mib))
	freeAll(t, kept)
	require.NoError(t, legacy.Close())
	blocking, err := h.gpu.StreamCreateBlocking()
	require.NoError(t, err)
	require.NoError(t, h.gpu.BeginCapture(blocking))
	legacy, err = h.AdoptStream(0)
	require.NoError(t, err, "also while a blocking stream is being captured")
	freeAll(t, must(t, legacy, mib))
	_, err = h.gpu.EndCapture(blocking)
	require.NoError(t, err, "the capture was not disturbed")
	h.addsUp()
}

// Of many that adopt a handle at the same time one has it, and nothing of the others is left.
func TestManyAdoptAHandleAtOnce(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	handle, err := h.gpu.StreamCreate()
	require.NoError(t, err)
	var won atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := h.AdoptStream(handle)
			if err == nil {
				won.Add(1)
				freeAll(t, must(t, s, mib))
				return
			}
			var refused *vram.HandleError
			assert.ErrorAs(t, err, &refused)
		})
	}
	all.Wait()
	assert.EqualValues(t, 1, won.Load())
	assert.Len(t, h.Stats().Streams, 1)
}

// A CUDA stream that was destroyed is refused with the driver's error, and nothing is lost.
func TestADestroyedHandleIsRefused(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	handle, err := h.gpu.StreamCreate()
	require.NoError(t, err)
	require.NoError(t, h.gpu.StreamDestroy(handle))
	_, err = h.AdoptStream(handle)
	require.ErrorIs(t, err, cudadrv.InvalidHandle)
	assert.Empty(t, h.Stats().Streams)
	h.addsUp()
}

// A fence on the legacy default stream covers the work of blocking streams: their uses of its
// buffers are safe.
func TestTheLegacyStreamsFencesCoverBlockingStreams(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 32 * mib, Waits: vram.WaitsNever}, sim.Config{})
	blocking, err := h.gpu.StreamCreateBlocking()
	require.NoError(t, err)
	legacy, err := h.AdoptStream(0)
	require.NoError(t, err)
	other := h.stream()
	x := must(t, legacy, 32*mib)
	require.NoError(t, h.gpu.Launch(blocking, time.Second)) // uses x, in the order of the default stream
	freeAll(t, x)
	require.NoError(t, legacy.Trim(context.Background()))
	y := must(t, other, 32*mib)
	assert.Equal(t, x.Ptr(), y.Ptr())
	assert.GreaterOrEqual(t, h.gpu.Now(), time.Second, "the pool has waited for the work of the blocking stream")
	freeAll(t, y)
}
