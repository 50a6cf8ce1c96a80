package boxes_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel/internal/boxes"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A description is encoded once as long as no other takes its place, and each has its own argument. One that the driver refuses
// is an error, and is asked for again.
func TestCache(t *testing.T) {
	faults := fault.Wrap(sim.New(sim.Config{Bytes: true}))
	dev, err := vram.Open(vram.Config{Driver: faults})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	stream, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(stream)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	b, err := c.Alloc(1 << 20)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.Free()) })
	box := func(rows int64) *cudadrv.TensorMap {
		return &cudadrv.TensorMap{
			Ptr: b.Ptr(), Type: cudadrv.TensorFloat32, Rank: 1,
			Dims: [cudadrv.MaxTensorRank]int64{rows}, Box: [cudadrv.MaxTensorRank]int32{64},
		}
	}
	const encode = "cuTensorMapEncodeTiled"
	var cache boxes.Cache
	require.NoError(t, faults.Add(fault.Rule{Func: encode, Count: 1, Result: cudadrv.Unknown}))
	_, err = cache.Arg(c, box(100))
	require.ErrorIs(t, err, cudadrv.Unknown)
	faults.Clear()
	first, err := cache.Arg(c, box(100))
	require.NoError(t, err)
	calls := faults.Calls(encode)
	again, err := cache.Arg(c, box(100))
	require.NoError(t, err)
	assert.Equal(t, first, again)
	assert.Equal(t, calls, faults.Calls(encode))
	seen := map[string]bool{}
	const most = 2000 // more than the cache has places for
	for rows := range int64(most) {
		arg, err := cache.Arg(c, box(rows+1))
		require.NoError(t, err)
		want, err := c.EncodeTensorMap(*box(rows + 1))
		require.NoError(t, err)
		require.Equal(t, cuda.Value(want), arg)
		seen[string(want[:])] = true
	}
	assert.Len(t, seen, most, "each is another one")
}
