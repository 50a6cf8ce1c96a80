package replay_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/replay"
	"github.com/go-vram/vram/internal/trace"
)

func TestThePeakIsExplained(t *testing.T) {
	for _, segments := range []vram.Segments{vram.SegmentsVMM, vram.SegmentsPlain} {
		for _, name := range trace.Embedded() {
			t.Run(name+"/"+segments.String(), func(t *testing.T) {
				tr := open(t, name)
				got, err := replay.Run(t.Context(), tr, replay.Options{
					NewDriver: audited(t), Config: vram.Config{Segments: segments}, Rounds: 3, ExplainPeak: true,
				})
				require.NoError(t, err)
				p := got.Peak
				require.NotNil(t, p)
				assert.Equal(t, p.ReservedBytes, p.LiveBytes+p.RoundingBytes+p.SpanBytes+p.MagazineBytes+p.PageBytes+p.PieceBytes+
					p.PendingBytes+p.FreeBytes+p.OtherBytes, "%+v", p)
				assert.Equal(t, got.PeakReservedBytes, p.ReservedBytes, "nothing was given back within the step")
				assert.LessOrEqual(t, p.LiveBytes, tr.Info.PeakLiveBytes)
				for _, part := range []int64{
					p.LiveBytes, p.RoundingBytes, p.SpanBytes, p.MagazineBytes, p.PageBytes, p.PieceBytes, p.PendingBytes, p.FreeBytes,
				} {
					assert.GreaterOrEqual(t, part, int64(0), "%+v", p)
				}
				assert.Positive(t, got.Rounds[0].DriverNsPerOp, "modelled time passes the watch")
			})
		}
	}
}

func TestWhatIsLiveAtThePeak(t *testing.T) {
	tr := read(t, "0,a,0,1048576,0", "1,a,1,3145728,0", "2,f,0,1048576,0", "3,a,2,8388608,0", "4,f,2,8388608,0")
	got, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Rounds: 2, ExplainPeak: true})
	require.NoError(t, err)
	assert.Equal(t, 1, got.Peak.Round)
	assert.Equal(t, 3, got.Peak.Event)
	assert.Equal(t, int64(11<<20), got.Peak.LiveBytes)
	assert.Nil(t, got.SettledOverLive, "two rounds only")
}

func TestAPeakNeedsOneGoroutine(t *testing.T) {
	_, err := replay.Run(t.Context(), open(t, "resnet_train"), replay.Options{NewDriver: simulator, ExplainPeak: true, Parallel: true})
	require.ErrorIs(t, err, replay.ErrPeakNeedsOneGoroutine)
}
