package replay_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/lab/replay"
)

// A trace whose peak was mapped ahead makes less than a twentieth of the driver calls in its first round.
func TestAWarmedUpTraceMakesFewDriverCalls(t *testing.T) {
	tr := open(t, "gpt2_train")
	calls := map[bool]uint64{}
	for _, warm := range []bool{false, true} {
		got, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: audited(t), Rounds: 1, Warm: warm})
		require.NoError(t, err)
		calls[warm] = got.Rounds[0].DriverCalls
	}
	assert.Positive(t, calls[false])
	assert.Less(t, calls[true], calls[false]/20)
}

// A warm-up that the limit leaves no room for ends the replay.
func TestAWarmUpBeyondTheLimit(t *testing.T) {
	_, err := replay.Run(t.Context(), open(t, "gpt2_train"), replay.Options{NewDriver: simulator, Limit: replay.Limit{Bytes: 1 << 30}, Warm: true})
	require.ErrorContains(t, err, "leaves no room")
}

// Demands of the options replace the trace's own memory.
func TestDemandsAreMappedAhead(t *testing.T) {
	tr := open(t, "resnet_train")
	o := replay.Options{NewDriver: simulator, Rounds: 1, Demands: []vram.Demand{{Bytes: 12 << 30, Count: 1}}}
	r, err := replay.Run(t.Context(), tr, o)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, r.PeakReservedBytes, int64(12<<30))
	assert.Less(t, r.PeakLiveBytes, int64(6<<30))
}
