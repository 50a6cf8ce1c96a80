package acceptance_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Of Closes among goroutines one ends the device, and all have its error.
func TestClosesOfADeviceMeet(t *testing.T) {
	for range 20 {
		h := openHouse(t, vram.Config{}, sim.Config{})
		must(t, h.stream(), mib) // is live
		begin := make(chan struct{})
		errs := make([]error, 4)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				<-begin
				errs[i] = h.Close()
			})
		}
		close(begin)
		all.Wait()
		var inUse *vram.InUseError
		require.ErrorAs(t, errs[0], &inUse)
		for _, err := range errs {
			require.Equal(t, errs[0], err)
		}
	}
}

// Close waits for a call that is in the driver, and a further Close waits for the first, with events and without.
func TestCallsOfADeviceMeetItsClose(t *testing.T) {
	handle := func(h *house) vram.StreamHandle {
		own, err := h.gpu.StreamCreate()
		require.NoError(t, err)
		return own
	}
	for name, c := range map[string]struct {
		function string
		call     func(h *house) error
	}{
		"GPUMemory":   {"cuMemGetInfo", func(h *house) error { return second(h.GPUMemory()) }},
		"NewStream":   {"cuStreamCreate", func(h *house) error { return second(h.NewStream()) }},
		"AdoptStream": {"cuStreamIsCapturing", func(h *house) error { return second(h.AdoptStream(handle(h))) }},
		"Close":       {"cuDevicePrimaryCtxRelease", func(h *house) error { return h.Close() }},
	} {
		for _, watched := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				cfg := vram.Config{}
				if watched {
					cfg.Events.OutOfMemory = func(*vram.OutOfMemoryError) {}
				}
				h := openHouse(t, cfg, sim.Config{})
				h.Info()
				freeAll(t, must(t, h.stream(), 1))
				entered, release := h.holdUp(c.function)
				done, closed := make(chan error, 1), make(chan error, 1)
				go func() { done <- c.call(h) }()
				<-entered
				go func() { closed <- h.Close() }()
				synctest.Wait()
				assert.Empty(t, closed, "%s: Close waits", name)
				release()
				<-done
				require.NoError(t, <-closed)
			})
		}
	}
}

// Close of a set waits for a placement that is in the driver; one that comes later is refused, and calls no driver.
func TestAPlacementMeetsTheCloseOfItsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, faults := openSet(t, 1, vram.Config{})
		s.Devices()[0].Info()
		entered, release := (&house{t: t, faults: faults}).holdUp("cuMemGetInfo")
		done, closed := make(chan error, 1), make(chan error, 1)
		go func() { done <- second(s.Place(1)) }()
		<-entered
		go func() { closed <- s.Close() }()
		synctest.Wait()
		assert.Empty(t, closed, "Close waits")
		calls := faults.Calls("cuMemGetInfo")
		require.ErrorIs(t, second(s.Place(1)), vram.ErrClosed)
		assert.Equal(t, calls, faults.Calls("cuMemGetInfo"))
		release()
		require.NoError(t, <-done)
		require.NoError(t, <-closed)
	})
}
