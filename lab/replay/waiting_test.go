package replay

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
)

// exchange is a pipeline of four stages that hand over to each other.
func exchange(t *testing.T) *trace.Trace {
	t.Helper()
	tr, err := trace.Open("pipeline_1f1b")
	require.NoError(t, err)
	return tr
}

// Under a limit that the goroutines' order may break, allocations wait: each is served, or refused as a deadlock, and the
// limit holds. With all the memory that was live at once in the recording nobody is refused.
func TestAPipelineWaits(t *testing.T) {
	t.Parallel()
	tr := exchange(t)
	waits := uint64(0)
	for seed := uint64(1); seed <= 2 || waits == 0 && seed <= 20; seed++ { // the goroutines may take turns so well that nobody waits
		for _, limit := range []float64{0.86, 1.0} {
			t.Run(fmt.Sprint(limit, " seed ", seed), func(t *testing.T) {
				r, err := Run(t.Context(), tr, Options{
					NewDriver: func() cudadrv.Driver { return sim.New(sim.Config{}) }, Parallel: true, Wait: true, Rounds: 1, Seed: seed,
					Limit: Limit{TimesPeak: limit},
				})
				require.NoError(t, err)
				assert.LessOrEqual(t, r.PeakReservedBytes, Limit{TimesPeak: limit}.For(tr.Info.PeakLiveBytes))
				assert.EqualValues(t, r.DeadlockCount, r.FailedCount(), "nothing else is refused")
				assert.Equal(t, r.FailedCount(), r.DeadlockedCount(), "and none for want of memory")
				assert.LessOrEqual(t, r.DeadlockCount, r.WaitCount)
				waits += r.WaitCount
			})
		}
	}
	assert.Positive(t, waits)
}

func TestCopiesAreTracesSideBySide(t *testing.T) {
	t.Parallel()
	tr := exchange(t)
	two := copied(tr, 2)
	assert.Equal(t, 2*tr.Info.EventCount, len(two.Events))
	assert.Equal(t, 2*len(tr.Leftovers()), len(two.Leftovers()))
	var live, peak int64
	born := uint32(0)
	of := map[uint32]trace.Event{}
	for _, e := range two.Events {
		if e.Op == trace.Alloc {
			require.Equal(t, born, e.ID, "ids are dense, in order")
			born++
			of[e.ID] = e
			live += e.Bytes
		} else {
			require.Equal(t, of[e.ID].Bytes, e.Bytes)
			half := uint16(tr.Info.StreamCount) //nolint:gosec // five
			require.Equal(t, of[e.ID].Stream/half, e.Stream/half, "a copy frees its own")
			delete(of, e.ID)
			live -= e.Bytes
		}
		peak = max(peak, live)
	}
	assert.Equal(t, two.Info.PeakLiveBytes, peak)
	assert.Same(t, tr, copied(tr, 1))
}

func TestWaitingNeedsGoroutines(t *testing.T) {
	t.Parallel()
	o := Options{NewDriver: func() cudadrv.Driver { return nil }, Wait: true}
	require.True(t, errors.Is(o.complete(), ErrWaitNeedsGoroutines))
	o = Options{NewDriver: o.NewDriver, Copies: MostCopies + 1}
	require.Error(t, o.complete())
}
