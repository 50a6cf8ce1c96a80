package acceptance_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A call that makes a stream while the device is closed gets an error, and nothing of the stream is
// left, also in a context that others keep: Close waits for the call.
func TestAStreamThatLosesAgainstCloseIsDestroyed(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // once: allocations of the process, not of the test
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{ReuseStreamIDs: true})
		h.Info()                            // opens the context, which the house keeps
		handle, err := h.gpu.StreamCreate() // the first: the next ones have it, too, once it is destroyed
		require.NoError(t, err)
		require.NoError(t, h.gpu.StreamDestroy(handle))
		entered, release := h.holdUp("cuStreamCreate")
		lost, closed := make(chan error, 1), make(chan error, 1)
		go func() {
			_, err := h.NewStream()
			lost <- err
		}()
		<-entered
		go func() { closed <- h.Close() }()
		synctest.Wait()
		assert.Empty(t, closed, "Close waits")
		_, err = h.NewStream()
		require.ErrorIs(t, err, vram.ErrClosed)
		_, err = h.AdoptStream(0)
		require.ErrorIs(t, err, vram.ErrClosed)
		release()
		require.ErrorIs(t, <-lost, vram.ErrClosed)
		require.NoError(t, <-closed)
		again, err := h.gpu.StreamCreate()
		require.NoError(t, err)
		assert.Equal(t, handle, again, "the stream was destroyed")
		require.NoError(t, h.gpu.StreamDestroy(again))
	})
}
