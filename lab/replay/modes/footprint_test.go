package modes_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/lab/replay"
)

// The default mode holds little more than lives, over all rounds. Ticks come where the test has them, and in no turn: time
// stands still but for its sleeps. With ticks the streams of the pipeline give back in other places.
//
// A tick that runs into a turn changes which way a request goes, and by that where it lies: of a hundred runs in real time one
// holds a handle more.
func TestBalancedHoldsLittleMoreThanLives(t *testing.T) {
	for name, most := range map[string]struct{ calm, ticking float64 }{
		"gpt2_train":    {1.08, 1.08},
		"resnet_train":  {1.015, 1.015},
		"pipeline_1f1b": {1.155, 1.17},
	} {
		t.Run(name, func(t *testing.T) { holdsLittle(t, name, most.calm, nil) })
		t.Run(name+" with ticks", func(t *testing.T) {
			holdsLittle(t, name, most.ticking, func(o replay.Observation) {
				if o.Index%1009 == 0 {
					<-time.After(100 * time.Millisecond) // the next tick, on the bubble's clock,
					synctest.Wait()                      // to its end
				}
			})
		})
	}
}

func holdsLittle(t *testing.T, name string, most float64, observe func(replay.Observation)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		got, err := replay.Run(t.Context(), open(t, name), replay.Options{NewDriver: simulator, Rounds: rounds, Observe: observe})
		require.NoError(t, err)
		assert.LessOrEqual(t, got.ReservedOverLive, most)
		for _, r := range got.Rounds {
			assert.Zero(t, r.FailedCount)
		}
		assert.Equal(t, observe != nil, time.Since(begun) > 0, "ticks")
	})
}
