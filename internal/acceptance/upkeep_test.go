package acceptance_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// Coalesce makes one range of neighbouring free blocks, from magazines and ranges, and releases
// nothing.
func TestCoalesce(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	for range 20 { // a length that comes back, for a magazine
		freeAll(t, must(t, s, 5*mib))
	}
	var live []vram.Buffer
	for range 8 {
		live = append(live, must(t, s, 3*mib), must(t, s, 3*kib))
	}
	freeAll(t, live...)
	before := h.addsUp()
	require.NoError(t, h.Coalesce(t.Context()))
	after := h.addsUp()
	assert.Equal(t, before.ReservedBytes, after.ReservedBytes)
	assert.Equal(t, before.CachedBytes, after.CachedBytes)
	assert.Equal(t, 1, after.Streams[0].FreeRanges)
	assert.Equal(t, after.CachedBytes, after.Streams[0].RangeBytes, "nothing is left in magazines")

	ended, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, h.Coalesce(ended), context.Canceled)
}

// Trim frees memory that another stream has finished with, without a tick, also where no
// memory has to go back to the driver: in the bubble no time passes.
func TestTrimTakesHomeWhatHasFinished(t *testing.T) {
	freeAll(t, must(t, openHouse(t, vram.Config{}, sim.Config{}).stream(), 1)) // the goroutines that a process starts once
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{}, sim.Config{})
		trim := func() error { return second(h.Trim(t.Context(), math.MaxInt64)) }
		require.NoError(t, trim(), "before the first use")
		a, b := h.stream(), h.stream()
		x := must(t, a, 8*mib)
		require.NoError(t, x.RecordStream(b))
		require.NoError(t, h.gpu.Launch(b.Handle(), time.Second))
		freeAll(t, x)
		require.NoError(t, trim())
		assert.Equal(t, 8*mib, h.addsUp().PendingBytes, "the work is not over")
		h.gpu.Advance(time.Second)
		synctest.Wait() // nobody is in a turn
		assert.Equal(t, 8*mib, h.addsUp().PendingBytes, "nobody has looked")
		require.NoError(t, trim())
		assert.Zero(t, h.addsUp().PendingBytes)
		assert.Equal(t, h.Stats().PeakReservedBytes, h.Stats().ReservedBytes, "nothing had to go back")
		require.NoError(t, h.Close())
		require.ErrorIs(t, trim(), vram.ErrClosed)
		require.ErrorIs(t, h.Coalesce(t.Context()), vram.ErrClosed)
	})
}
