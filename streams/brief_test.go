package streams

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/stream/core"
)

// briefCapture answers queries for a stream, and ends its capture before each answer.
type briefCapture struct{ *sim.Device }

var _ cudadrv.CaptureQueries = briefCapture{}

func (c briefCapture) StreamIsCapturing(s cudadrv.Stream) (cudadrv.CaptureStatus, error) {
	if status, err := c.Device.StreamIsCapturing(s); err != nil || status == cudadrv.CaptureNone {
		return status, err
	}
	_, err := c.EndCapture(s)
	return cudadrv.CaptureNone, err
}

// captureAtRecord captures a stream from right before the next record of a fence until the query after it.
func (r *rig) captureAtRecord(s *Stream) {
	s.cuda.captures = briefCapture{r.gpu}
	r.faults.SetBefore(func(function string) {
		if function == "cuEventRecord" {
			r.faults.SetBefore(nil)
			assert.NoError(r.t, r.gpu.BeginCapture(s.Handle()))
		}
	})
}

// A capture that is not announced may begin and end while a fence is recorded, between two queries that know nothing of it. The
// fence would never pass, and the memory of its Return would serve no other stream before the next fence of a stream that may
// have nothing left to return. Another fence is recorded at once.
func TestAFenceInACaptureThatHasEnded(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(t *testing.T, r *rig, s *Stream){
		"of a Trim": func(t *testing.T, r *rig, s *Stream) {
			t.Helper()
			r.captureAtRecord(s)
			require.NoError(t, s.Trim(t.Context()))
		},
		"recorded before its Return": func(t *testing.T, r *rig, s *Stream) {
			t.Helper()
			r.tick(s) // wants a fence
			r.captureAtRecord(s)
			require.NoError(t, must(t, s, 3*mib).Free()) // the callers' turn records it
			_, err := r.pool.Trim(t.Context(), 0)
			require.NoError(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, 32*mib)
			s, other := r.adopt(), r.stream(core.Budget{})
			b := must(t, s, 24*mib)
			require.NoError(t, r.gpu.Launch(s.Handle(), time.Second))
			require.NoError(t, b.Free())
			back(t, r, s)
			assert.EqualValues(t, 1, r.stats(s).LostFences)
			assert.Positive(t, r.books().PendingBytes)
			assert.Less(t, r.gpu.Now(), time.Second)
			require.NoError(t, s.Trim(t.Context())) // pages that the fence does not cover
			require.NoError(t, must(t, other, 32*mib).Free())
			assert.GreaterOrEqual(t, r.gpu.Now(), time.Second)
			assert.EqualValues(t, 1, r.stats(s).LostFences)
			assert.Zero(t, s.cuda.calls.Load())
			r.balanced(s, other)
			require.NoError(t, r.fences.Close())
			assert.Equal(t, r.faults.Calls("cuEventCreate"), r.faults.Calls("cuEventDestroy"), "no event is kept")
		})
	}
}

// A driver that fails each query of a fence as if a graph had it keeps no caller: the stream's work is waited for instead.
func TestNoFenceIsRecordedForever(t *testing.T) {
	t.Parallel()
	r := newRig(t, 32*mib)
	s, other := r.stream(core.Budget{}), r.stream(core.Budget{})
	b := must(t, s, 24*mib)
	require.NoError(t, r.gpu.Launch(s.Handle(), time.Second))
	require.NoError(t, b.Free())
	require.NoError(t, r.faults.Add(fault.Rule{Func: "cuEventQuery", Result: cudadrv.InvalidValue}))
	require.NoError(t, s.Trim(t.Context()))
	assert.EqualValues(t, maxRecords, r.stats(s).LostFences)
	assert.Equal(t, time.Second, r.gpu.Now())
	require.NoError(t, must(t, other, 32*mib).Free())
}

// A wait for another stream whose event a capture has that was not announced: the wait fails and names the captured stream, the mark
// counts as lost, and a capture that lasts is not disturbed. No later request fails for one that has ended, since it may have begun
// after it: see cudaStream.shortage.
func TestAWaitForAnEventOfACapture(t *testing.T) {
	t.Parallel()
	for name, wait := range map[string]func(s, of *Stream, b Buffer) error{
		"waitFor":    func(s, of *Stream, _ Buffer) error { return s.cuda.waitFor(&of.cuda) },
		"WaitStream": func(s, of *Stream, _ Buffer) error { return s.WaitStream(of) },
		"Transfer":   func(s, _ *Stream, b Buffer) error { _, err := b.Transfer(s); return err },
		"Between": func(s, of *Stream, _ Buffer) error {
			return Submitter{s}.Between(Submitter{of}, func() error { return nil })
		},
	} {
		for _, lasts := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, lasts %v", name, lasts), func(t *testing.T) {
				t.Parallel()
				r := newRig(t, 32*mib)
				of, s := r.stream(core.Budget{}), r.stream(core.Budget{})
				b := must(t, of, 24*mib)
				before := of.cuda.forbiddenCalls.Load() // as a request that begins now reads it
				r.captureAtRecord(of)
				if lasts {
					of.cuda.captures = r.gpu
				}
				err := wait(s, of, b)
				forbidden(t, err, of, "cuEventRecord")
				var captured *CaptureError
				require.ErrorAs(t, err, &captured)
				require.NoError(t, captured.Err)
				assert.EqualValues(t, 1, r.stats(of).LostFences)
				assert.Zero(t, r.stats(s).LostFences)
				if lasts {
					require.Error(t, of.cuda.shortage(before, nil))
					_, err := r.gpu.EndCapture(of.Handle())
					require.NoError(t, err)
				} else {
					require.NoError(t, of.cuda.shortage(before, nil))
				}
				require.NoError(t, wait(s, of, must(t, of, mib)), "after the capture")
				require.NoError(t, b.Free())
			})
		}
	}
}
