package core

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/sizeclass"
)

// The settings follow the table of the package comment at each level, and are restored afterwards.
func TestLevelsOfPressure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		level                 pressure.Level
		kept, budget, ranges  int64
		idleTicks, decayTicks int
	}{
		{pressure.Normal, 16 * mib, 8 * mib, 6, 10, 6},
		{pressure.High, 4 * mib, 4 * mib, 3, 3, 2},
		{pressure.Critical, mib, 2 * mib, 1, 1, 0},
	} {
		t.Run(c.level.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 512, Budget{})
			for _, level := range []pressure.Level{pressure.Critical, c.level, c.level} {
				w.core.SetPressure(level)
			}
			assert.Equal(t, c.kept, int64(w.core.retention.limit()<<sizeclass.UnitShift))
			w.core.SetSettings(Settings{Budget: Budget{CacheBytes: 8 * mib, CacheRanges: 6}})
			assert.Equal(t, Budget{CacheBytes: c.budget, CacheRanges: int(c.ranges)}, w.core.limits.budget)

			a, b := w.alloc(mib, 0, w.always), w.alloc(mib, 0, w.always)
			w.free(a)
			w.free(b)
			w.core.Drain()
			w.core.SetBudget(Budget{})
			require.True(t, w.lend(0, 100)) // half of it six times
			w.core.Tick()
			assert.Equal(t, c.idleTicks, idleAfter(w))
			ticks := 0
			for ; w.core.HeldBytes() > 0; ticks++ {
				require.Less(t, ticks, 100)
				w.back(w.core.Decay(false))
				w.core.Tick()
			}
			assert.Equal(t, c.decayTicks+1, ticks)

			w.core.SetPressure(pressure.Normal)
			assert.Equal(t, int64(16*mib), int64(w.core.retention.limit()<<sizeclass.UnitShift))
			w.finish(false)
		})
	}
}

// When the level rises, magazines of large blocks release their excess at the next tick; a bound of one range
// or byte remains a bound.
func TestPressureEmptiesMagazines(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4096, Budget{})
	require.True(t, w.lend(0, 12))
	for _, bytes := range []int64{2 * mib, 3 * mib, 5 * mib} {
		w.repeat(heatKept+4, bytes, 0, w.always)
	}
	cached, _ := w.kept()
	require.Equal(t, uint64(10*mib)>>sizeclass.UnitShift, cached)
	w.core.SetPressure(pressure.High)
	w.core.Tick()
	cached, _ = w.kept()
	assert.LessOrEqual(t, cached, uint64(4*mib)>>sizeclass.UnitShift)
	w.core.SetPressure(pressure.Critical)
	w.core.Tick()
	cached, _ = w.kept()
	assert.Zero(t, cached)
	w.core.SetBudget(Budget{CacheBytes: 1, CacheRanges: 1})
	assert.Equal(t, Budget{CacheBytes: 1, CacheRanges: 1}, w.core.limits.budget)
	w.finish(false)
}

// Under pressure no block waits for a shared fence after a tick.
func TestPressureEndsSlack(t *testing.T) {
	t.Parallel()
	var device Allowance
	var limit atomic.Int64
	limit.Store(1 << 40)
	w := newWorld(t, 512, Budget{})
	s := &w.core.inFlight.slack
	s.device, s.limit = &device, &limit
	free := func() uint64 {
		for range 2 * fencesPerTick {
			w.core.inFlight.slack.follow(minSlack)
		}
		return s.units
	}
	assert.Positive(t, free())
	w.core.SetPressure(pressure.High)
	w.core.Tick()
	assert.Zero(t, s.units)
	assert.Zero(t, free())
	w.core.SetPressure(pressure.Normal)
	w.core.Tick()
	assert.Positive(t, free())
	w.core.endSlack()
	w.finish(false)
}
