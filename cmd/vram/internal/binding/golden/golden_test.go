package golden_test

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cmd/vram/internal/binding/golden"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/vramtest"
)

// The generated package loads, and its methods launch its kernels with their arguments. The device checks that the kernels
// read and write only as the methods declare.
func TestTheGeneratedPackageRuns(t *testing.T) {
	c, err := cuda.NewContext(vramtest.Open(t, vramtest.Kernels(vramtest.KernelConfig{Pointers: true})).Stream())
	require.NoError(t, err)
	kernels, err := golden.Load(c)
	require.NoError(t, err)
	const n = 5
	buffer := func(values ...float32) cuda.Buffer {
		b, err := c.Alloc(4 * n)
		require.NoError(t, err)
		if len(values) > 0 {
			require.NoError(t, cuda.CopyIn(c, b, values))
		}
		return b
	}
	content := func(b cuda.Buffer) []float32 {
		all := make([]float32, n)
		require.NoError(t, cuda.CopyOut(c, all, b))
		return all
	}
	x, y, fresh := buffer(1, 2, 3, 4, 5), buffer(10, 10, 10, 10, 10), buffer()
	require.NoError(t, kernels.Saxpy(c, cuda.Cover(n, 32), n, 2, x, y))
	assert.Equal(t, []float32{12, 14, 16, 18, 20}, content(y))
	require.NoError(t, kernels.NsScaleFloat(c, cuda.Cover(n, n), fresh, x, -3, true))
	assert.Equal(t, []float32{-3, -6, -9, -12, -15}, content(fresh))

	small, err := c.AllocZeroed(16)
	require.NoError(t, err)
	require.NoError(t, kernels.NsScaleFloat2(c, cuda.Cover(7, 7), small))
	words := make([]uint32, 4)
	require.NoError(t, cuda.CopyOut(c, words, small))
	assert.Equal(t, []uint32{7, 0, 0, 0}, words)
	require.NoError(t, kernels.Fill(c, cuda.Cover(1, 1), small, -1, 1<<40, 0, 0))
	require.NoError(t, cuda.CopyOut(c, words, small))
	assert.Equal(t, []uint32{math.MaxUint32, 0, 0, 256}, words)
	require.NoError(t, kernels.Nothing(c, cuda.Cover(1, 1)))
	require.NoError(t, kernels.Unused(c, cuda.Cover(1, 1), small))

	require.NoError(t, kernels.Scaled(c, cuda.Cover(n, n), fresh, x, 2, n))
	assert.Equal(t, []float32{2, 4, 6, 8, 10}, content(fresh))
	require.NoError(t, kernels.Scaled(c, cuda.Cover(n, n), fresh, cuda.Buffer{}, 2, n))
	assert.Equal(t, []float32{2, 2, 2, 2, 2}, content(fresh))
	require.ErrorIs(t, kernels.Scaled(c, cuda.Cover(n, n), cuda.Buffer{}, x, 2, n), cuda.ErrNotLive, "the kernel does not test this one")

	var pair golden.LoadPair
	binary.LittleEndian.PutUint64(pair.Bytes[:], uint64(small.Ptr()))
	binary.LittleEndian.PutUint32(pair.Bytes[16:], 44)
	require.NoError(t, cuda.CopyIn(c, small, []uint32{100, 0, 0, 0}))
	require.NoError(t, kernels.Load(c, cuda.Cover(1, 1), pair, x))
	assert.Equal(t, uint32(144), math.Float32bits(content(x)[0]))

	assert.Equal(t, "saxpy", kernels.Function("saxpy").Name())
	assert.Nil(t, kernels.Function("other"))
	require.NoError(t, c.Synchronize(t.Context()))
	require.NoError(t, kernels.Close())
	require.NoError(t, kernels.Close())
	require.ErrorIs(t, kernels.Nothing(c, cuda.Cover(1, 1)), cuda.ErrUnloaded)
	for _, b := range []cuda.Buffer{x, y, fresh, small} {
		require.NoError(t, b.Free())
	}
	require.NoError(t, c.Close())
}

// Kernels that are not there are an error, and no panic.
func TestKernelsThatAreNotLoaded(t *testing.T) {
	var none *golden.Kernels
	require.ErrorIs(t, none.Nothing(nil, cuda.Geometry{}), cuda.ErrNotOpen)
	require.NoError(t, none.Close())
	assert.Nil(t, none.Function("saxpy"))
	require.ErrorIs(t, new(golden.Kernels).Nothing(nil, cuda.Geometry{}), cuda.ErrNotOpen)
	_, err := golden.Load(nil)
	require.ErrorIs(t, err, cuda.ErrNotOpen)
}
