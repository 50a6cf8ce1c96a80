package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A launch on buffers of two streams waits for the first of them while that stream works on memory of the second. The wait does
// not cover that work, so the next launch on that memory must wait for it.
func TestAWaitCoversWhatWasSubmittedBefore(t *testing.T) {
	r, owner := newFailing(t, sim.Config{})
	writer, third := r.context(), r.context()
	written, other := r.alloc(owner, mib), r.alloc(owner, mib)
	target := r.alloc(writer, mib)
	begun := false
	r.faults.SetBefore(func(function string) {
		if function == "cuStreamWaitEvent" && !begun { // after the record on the writer's stream
			begun = true
			assert.NoError(t, writer.Fill8(cuda.Whole(written), 1))
		}
	})
	require.NoError(t, third.Copy(cuda.Whole(target), cuda.Whole(other)))
	require.True(t, begun)
	r.faults.SetBefore(nil)

	waits := r.faults.Calls("cuStreamWaitEvent")
	require.NoError(t, third.Fill8(cuda.Whole(written), 2))
	assert.EqualValues(t, 1, r.faults.Calls("cuStreamWaitEvent")-waits, "for the writer's stream, which waits for the owner's")
	waits = r.faults.Calls("cuStreamWaitEvent")
	require.NoError(t, third.Fill8(cuda.Whole(written), 3))
	assert.Zero(t, r.faults.Calls("cuStreamWaitEvent")-waits, "the last write is its own")
	for _, b := range []cuda.Buffer{written, other, target} {
		require.NoError(t, b.Free())
	}
}
