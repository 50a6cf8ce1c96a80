package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// Work of the caller's own is behind that of the buffer's stream, and the buffer is freed behind it: the checker of the
// device would report both.
func TestWorkOfTheCallersOwn(t *testing.T) {
	r, c := newRig(t)
	other := r.context()
	x := r.alloc(other, mib)
	require.NoError(t, other.Fill8(cuda.Whole(x), 7))
	fill := func(device cudadrv.Device, on cudadrv.Stream) error { return device.MemsetD8Async(x.Ptr(), 9, mib, on) }
	require.NoError(t, c.Submit(fill, cuda.Whole(x)))
	got := make([]byte, 2)
	require.NoError(t, other.CopyOutAt(got, x, mib-2))
	assert.Equal(t, []byte{9, 9}, got)
	r.free(x)

	calls := 0
	count := func(cudadrv.Device, cudadrv.Stream) error { calls++; return cudadrv.Unknown }
	require.ErrorIs(t, c.Submit(count, cuda.Whole(x)), cuda.ErrNotLive)
	require.ErrorIs(t, (*cuda.Context)(nil).Submit(count), cuda.ErrNotOpen)
	g, err := c.Capture(func() error {
		assert.ErrorIs(t, c.Submit(count), cuda.ErrCapturing)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, g.Close())
	assert.Zero(t, calls)
	require.ErrorIs(t, c.Submit(count), cudadrv.Unknown)
}
