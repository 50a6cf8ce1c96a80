package acceptance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

func tuneAtRunTime(ctx context.Context, dev *vram.Device) (vram.Measurement, error) {
	half, cacheBytes, level := 0.5, int64(64<<20), vram.StatsExact
	if err := dev.Reconfigure(vram.Settings{MemoryFraction: &half, PoolCacheBytes: &cacheBytes, Stats: &level}); err != nil {
		return vram.Measurement{}, err
	}
	var err error
	m := dev.Measure(func() {
		if err = dev.Warm(ctx, vram.Demand{Bytes: 1 << 20, Count: 16}); err == nil { // expand the cache
			_, err = dev.Trim(ctx, 8<<20) // and clean it up, beyond a threshold
		}
	})
	dev.ResetPeaks()
	return m, err
}

// The calls that programs know from elsewhere work on a device that is in use.
func TestCallsThatProgramsKnow(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 512 * mib}, sim.Config{TotalBytes: gib})
	s := h.stream()
	freeAll(t, must(t, s, 4*mib))
	m, err := tuneAtRunTime(t.Context(), h.Device)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, m.Stats.PeakReservedBytes, 16*mib)
	n := h.addsUp()
	assert.Equal(t, gib/2, n.LimitBytes)
	assert.LessOrEqual(t, n.ReservedBytes, 8*mib)
	assert.Equal(t, n.ReservedBytes, n.PeakReservedBytes)
	freeAll(t, must(t, s, mib))
	assert.Equal(t, mib, h.Stats().PeakLiveBytes, "counted exactly from now on")
	require.NoError(t, h.Coalesce(t.Context()))
	h.trim()
	assert.Zero(t, h.Stats().ReservedBytes)
}
