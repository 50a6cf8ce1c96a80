package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/examples/internal/schedule"
	"github.com/go-vram/vram/internal/trace"
)

// The recording's order of forwards and backwards is 1F1B: cutting it in that order finds each backward at
// the frees of its forward's saved buffers.
func TestRecordingIsWhole(t *testing.T) {
	t.Parallel()
	r, err := openRecording()
	require.NoError(t, err)
	require.Len(t, r.steps, 3)
	for n, steps := range r.steps {
		for s, p := range steps {
			held := make([]int64, p.bufferCount)
			var outputs int
			for _, at := range schedule.OneF1B(s, stageCount, microBatchCount, fullAhead) {
				o, ok := p.operations[at]
				require.True(t, ok, "step %d stage %d has no %v", n, s, at)
				for _, c := range o.chunks {
					for _, b := range c.frees {
						require.Positive(t, held[b], "step %d stage %d %v frees buffer %d", n, s, at, b)
						held[b] = 0
					}
					for _, a := range c.allocs {
						require.Zero(t, held[a.buffer])
						require.Positive(t, a.bytes)
						held[a.buffer] = a.bytes
					}
				}
				if o.out != none {
					require.Equal(t, r.inputBytes[at.MicroBatch], held[o.out], "step %d stage %d %v hands over a micro-batch", n, s, at)
					held[o.out] = 0
					outputs++
				}
				assert.Equal(t, at.Kind == forward && s < stageCount-1 || at.Kind == backward && s > 0, o.out != none)
				assert.Greater(t, o.compute(), 100*time.Microsecond, "step %d stage %d %v", n, s, at)
				assert.Less(t, o.compute(), 10*time.Millisecond, "step %d stage %d %v", n, s, at)
			}
			var left []int64
			for _, bytes := range held {
				if bytes > 0 {
					left = append(left, bytes)
				}
			}
			want := append([]int64(nil), r.paramBytes[s]...) // a gradient for each parameter
			if s == 0 {                                      // and unused gradients of the inputs
				want = append(want, r.inputBytes[:]...)
			}
			assert.ElementsMatch(t, want, left, "step %d stage %d: what is left is gradients", n, s)
			assert.ElementsMatch(t, r.paramBytes[s], p.operations[turn{Kind: optimizer}].batchBytes)
		}
	}
	for s := range stageCount {
		assert.Len(t, r.stateBytes[s], 2*len(r.paramBytes[s]), "two moments for each parameter")
	}
}

// The operations, the parameters and the copied buffers are all allocations of the trace.
func TestRecordingKeepsAllAllocations(t *testing.T) {
	t.Parallel()
	tr, err := trace.Open(recordingName)
	require.NoError(t, err)
	r, err := cut(tr)
	require.NoError(t, err)
	var perStep [4]int // the recorded steps, including the first
	for n, steps := range r.steps {
		for _, p := range steps {
			for _, o := range p.operations {
				perStep[n+1] += len(o.batchBytes)
				for _, c := range o.chunks {
					perStep[n+1] += len(c.allocs)
				}
			}
		}
		perStep[n+1] += microBatchCount // the first stage's inputs
	}
	perStep[0] = perStep[1] + 4*48 // the optimizer's state
	extra := 4 * 3                 // workspaces of the libraries: three for each stage, kept for ever
	assert.Equal(t, tr.Info.AllocCount, perStep[0]+perStep[1]+perStep[2]+perStep[3]+96+extra)
}

// Other recordings are refused.
func TestCutRefusesOthers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gpt2_train", "resnet_train"} {
		tr, err := trace.Open(name)
		require.NoError(t, err)
		_, err = cut(tr)
		assert.ErrorContains(t, err, "streams, want 5")
	}
	tr, err := trace.Open(recordingName)
	require.NoError(t, err)
	short := *tr
	short.Events, short.Micros = tr.Events[:25_000], tr.Micros[:25_000]
	_, err = cut(&short)
	require.ErrorContains(t, err, "forwards, want a multiple of 8")

	hoarding := *tr // a stage that keeps everything
	hoarding.Events, hoarding.Micros = nil, nil
	for n, e := range tr.Events {
		if n < 30_000 || e.Op == trace.Alloc || e.Stream != 2 {
			hoarding.Events, hoarding.Micros = append(hoarding.Events, e), append(hoarding.Micros, tr.Micros[n])
		}
	}
	_, err = cut(&hoarding)
	require.ErrorContains(t, err, "does not free what its forward has saved")
}

// compute returns the time of the operation's kernels.
func (o *operation) compute() time.Duration {
	sum := o.batchTime
	for i := range o.chunks {
		sum += o.chunks[i].compute
	}
	return sum
}
