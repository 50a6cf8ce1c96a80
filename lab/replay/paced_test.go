package replay_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
)

// The short form plays the trace with the fewest events.
func TestGapBetweenEvents(t *testing.T) {
	names := trace.Embedded()
	if testing.Short() {
		names = []string{"resnet_train"}
	}
	for _, name := range names {
		tr := open(t, name)
		const gap = time.Microsecond
		start := time.Now()
		got, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: audited(t), Rounds: 2, Gap: gap})
		took := time.Since(start)
		require.NoError(t, err)
		requireSound(t, tr, got, 2)
		require.NotNil(t, got.Paced)
		assert.Equal(t, gap.Nanoseconds(), got.GapNanos)
		assert.Positive(t, got.P999Nanos)
		assert.LessOrEqual(t, got.P50Nanos, got.P99Nanos)
		assert.LessOrEqual(t, got.P99Nanos, got.P999Nanos)
		assert.GreaterOrEqual(t, took, time.Duration(tr.Info.EventCount)*gap, "the work was done")
	}
}

func TestGapBetweenEventsUnderALimit(t *testing.T) {
	tr := open(t, "resnet_train")
	got, err := replay.Run(t.Context(), tr, replay.Options{
		NewDriver: audited(t), Rounds: 2, Gap: time.Nanosecond, Limit: replay.Limit{Bytes: 64 << 20},
	})
	require.NoError(t, err, "what found no memory is left out of the paced round, too")
	assert.Positive(t, got.FailedCount())
	assert.NotNil(t, got.Paced)
}

func TestGapRefuses(t *testing.T) {
	tr := open(t, "resnet_train")
	_, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Gap: -1})
	require.ErrorContains(t, err, "gap -1ns")
	_, err = replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Gap: 1, Parallel: true})
	require.ErrorIs(t, err, replay.ErrGapNeedsOneGoroutine)
	ctx, cancel := context.WithCancel(t.Context())
	driver := audited(t)
	seen := 0
	_, err = replay.Run(ctx, tr, replay.Options{
		NewDriver: driver, Rounds: 1, Gap: time.Nanosecond,
		Observe: func(replay.Observation) {
			if seen++; seen == tr.Info.EventCount {
				cancel() // right before the paced round
			}
		},
	})
	require.ErrorIs(t, err, context.Canceled)
	cancel()
}
