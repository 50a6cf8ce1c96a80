package replay_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/replay"
)

// The default mode holds little more than lives, over all rounds. What streams that share hold depends a little on how fast a round is
// played: where it lasts many ticks, as under the race detector, they give back in other places, and the pipeline's hold 1.165, not 1.148.
func TestBalancedHoldsLittleMoreThanLives(t *testing.T) {
	for name, most := range map[string]float64{"gpt2_train": 1.085, "resnet_train": 1.02, "pipeline_1f1b": 1.17} {
		t.Run(name, func(t *testing.T) {
			got, err := replay.Run(t.Context(), open(t, name), replay.Options{NewDriver: simulator, Rounds: 3})
			require.NoError(t, err)
			assert.LessOrEqual(t, got.ReservedOverLive, most)
			for _, r := range got.Rounds {
				assert.Zero(t, r.FailedCount)
			}
		})
	}
}
