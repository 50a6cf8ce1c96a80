package acceptance_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A function of Events may close the device: that Close waits for all calls but its own. The device
// is closed once, so that every Close has the same error.
func TestAnEventFunctionClosesTheDevice(t *testing.T) {
	for _, alone := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var h *house
			var nested, again error
			leaks := 0
			told, outside, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			h = openHouse(t, vram.Config{LimitBytes: 64 * mib, Events: vram.Events{
				Growth: func(vram.GrowthEvent) {
					close(told)
					<-outside
					nested = h.Close()
					again = h.Close()
					close(done)
				},
				Leak: func(*vram.InUseError) { leaks++ },
			}}, sim.Config{})
			b := must(t, h.stream(), 2*mib)
			<-told
			var first error
			closed := make(chan struct{})
			if !alone { // a Close that waits for the calls that are due, and so for the one that closes
				go func() {
					first = h.Close()
					close(closed)
				}()
				synctest.Wait()
			} else {
				close(closed)
			}
			close(outside)
			<-done
			var leaked *vram.InUseError
			require.ErrorAs(t, nested, &leaked)
			assert.Equal(t, nested, again)
			<-closed
			last := h.Close()
			assert.Equal(t, nested, last)
			if !alone {
				assert.Equal(t, nested, first)
			}
			assert.Equal(t, 1, leaks, "Close outside has waited for the calls that were due")
			require.ErrorIs(t, b.Free(), vram.ErrClosed)
		})
	}
}

// OnOutOfMemory may close the device as well: its request fails, since the device is closed.
func TestAHandlerClosesTheDevice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *house
		h = openHouse(t, vram.Config{LimitBytes: 64 * mib, OnOutOfMemory: func(*vram.OutOfMemoryError) bool { return h.Close() != nil }}, sim.Config{})
		s := h.stream()
		must(t, s, 40*mib)
		_, err := s.Alloc(40 * mib)
		require.ErrorIs(t, err, vram.ErrClosed)
		var leaked *vram.InUseError
		require.ErrorAs(t, h.Close(), &leaked)
		assert.EqualValues(t, 1, leaked.BufferCount)
	})
}

// Close calls Observer.Closed: a Close there would wait for itself, and is refused.
func TestCloseInObserverClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h *house
		var nested error
		h = openHouse(t, vram.Config{Observer: vram.Observer{Closed: func() { nested = h.Close() }}}, sim.Config{})
		h.stream()
		require.NoError(t, h.Close())
		var closed *vram.ClosedError
		require.ErrorAs(t, nested, &closed)
		require.NoError(t, h.Close(), "a later one has the error of the first")
	})
}
