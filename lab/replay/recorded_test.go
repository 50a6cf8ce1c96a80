package replay_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/monitor/history"
)

// A recording of a program plays like any other trace: as many events, and as many bytes live at most.
func TestARecordingIsPlayed(t *testing.T) {
	t.Parallel()
	d, err := vram.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	recorder, err := history.Start(d, history.Options{})
	require.NoError(t, err)
	var live []vram.Buffer
	var liveBytes, peakBytes int64
	for i := range 500 {
		b, err := s.Alloc(int64(i*7919%50_000 + 1))
		require.NoError(t, err)
		live, liveBytes = append(live, b), liveBytes+b.Bytes()
		peakBytes = max(peakBytes, liveBytes)
		if len(live) == 20 {
			require.NoError(t, live[0].Free())
			live, liveBytes = live[1:], liveBytes-live[0].Bytes()
		}
	}
	recorder.Stop()
	var text bytes.Buffer
	require.NoError(t, recorder.WriteTrace(&text))
	require.NoError(t, s.FreeBatch(live))
	require.NoError(t, d.Close())
	tr, err := trace.Read("recorded", &text)
	require.NoError(t, err)
	assert.Equal(t, 500, tr.Info.AllocCount)
	assert.Equal(t, peakBytes, tr.Info.PeakLiveBytes)

	result, err := replay.Run(t.Context(), tr, replay.Options{
		NewDriver: func() cudadrv.Driver { return sim.New(sim.Config{}) }, Rounds: 1,
	})
	require.NoError(t, err)
	assert.Equal(t, 981, result.EventCount)
	assert.Equal(t, peakBytes, result.PeakLiveBytes)
	assert.Zero(t, result.FailedCount())
}
