package recorder_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/lab/replay/recorder"
	"github.com/go-vram/vram/monitor/snapshot"
)

func simulated() cudadrv.Driver { return sim.New(sim.Config{}) }

func recorded(t *testing.T, tr *trace.Trace, o replay.Options) (*recorder.Recorder, replay.Result) {
	t.Helper()
	o.NewDriver = simulated
	r, err := recorder.Attach(tr, &o)
	require.NoError(t, err)
	result, err := replay.Run(t.Context(), tr, o)
	require.NoError(t, err)
	return r, result
}

// The history leads to the memory at its end, which has the trace's live buffers; the curve ends at the reserved bytes.
func TestARecordedReplayFits(t *testing.T) {
	for name, config := range map[string]vram.Config{
		"balanced": {}, "lean": {Footprint: vram.Lean}, "plain": {Segments: vram.SegmentsPlain},
	} {
		t.Run(name, func(t *testing.T) {
			tr, err := trace.Open("resnet_train")
			require.NoError(t, err)
			r, result := recorded(t, tr, replay.Options{Rounds: 2, Config: config})
			s := r.Snapshot()
			require.NotNil(t, s)
			require.NoError(t, snapshot.Check(s))

			var liveBytes, segmentBytes int64
			for _, at := range s.Segments {
				segmentBytes += at.Bytes
				for _, b := range at.Blocks {
					if b.State == snapshot.Live {
						liveBytes += b.Bytes
					}
				}
			}
			assert.Equal(t, tr.Info.LeftoverBytes, liveBytes)
			assert.GreaterOrEqual(t, segmentBytes, liveBytes)
			allocs := 0
			for _, e := range s.Traces[0] {
				if e.Action == snapshot.Alloc {
					allocs++
				}
			}
			assert.Equal(t, tr.Info.AllocCount, allocs, "the history of one round")
			curve := r.Reserved()
			require.Len(t, curve, len(tr.Events))
			assert.Equal(t, result.Rounds[0].PeakReservedBytes, slices.Max(curve))
			require.NoError(t, snapshot.Write(&bytes.Buffer{}, s))
		})
	}
}

// An allocation that finds no memory is in the history, with the line of the trace that it stands on.
func TestAFailureIsRecorded(t *testing.T) {
	const text = "t_us,op,id,size,stream\n0,a,0,1048576,0\n5,a,1,67108864,0\n9,f,0,1048576,0\n"
	tr, err := trace.Read("short", bytes.NewBufferString(text))
	require.NoError(t, err)
	r, result := recorded(t, tr, replay.Options{Rounds: 1, Limit: replay.Limit{Bytes: 8 << 20}})
	require.Equal(t, 1, result.FailedCount())
	s := r.Snapshot()
	require.NoError(t, snapshot.Check(s))
	i := slices.IndexFunc(s.Traces[0], func(e snapshot.Event) bool { return e.Action == snapshot.OutOfMemory })
	require.GreaterOrEqual(t, i, 0)
	e := s.Traces[0][i]
	assert.Equal(t, int64(64<<20), e.Bytes)
	assert.Positive(t, e.DeviceFreeBytes)
	assert.Equal(t, int64(5), e.Micros)
	assert.Equal(t, snapshot.Stack{{File: "short.csv", Line: 3, Function: "allocation of 67108864 bytes"}}, e.Stack)
}

// A replay without an order is not recorded.
func TestOnlyOneGoroutineIsRecorded(t *testing.T) {
	tr, err := trace.Open("resnet_train")
	require.NoError(t, err)
	for _, o := range []replay.Options{{Parallel: true}, {Copies: 2}, {Jitter: 0.1}} {
		_, err := recorder.Attach(tr, &o)
		require.ErrorIs(t, err, recorder.ErrOneAtATime)
	}
}
