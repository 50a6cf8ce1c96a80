package vramtest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/vramtest"
)

// A graph keeps the memory of buffers that the caller frees after the capture: its kernels read it, also long after, and after SetArg has
// replaced another argument.
func TestAGraphReadsBuffersThatWereFreed(t *testing.T) {
	c, err := cuda.NewContext(vramtest.Open(t, vramtest.Kernels()).Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(ptxOfCopy))
	require.NoError(t, err)
	f, err := m.Function("copy")
	require.NoError(t, err)
	from, err := cuda.From(c, []uint32{1, 2, 3, 4})
	require.NoError(t, err)
	first, err := c.AllocZeroed(16)
	require.NoError(t, err)
	second, err := c.AllocZeroed(16)
	require.NoError(t, err)
	g, err := c.Capture(func() error {
		return c.Launch(f, cuda.Cover(4), cuda.Out(first), cuda.In(from), cuda.Value(uint32(4)))
	})
	require.NoError(t, err)
	require.NoError(t, from.Free())
	values := func(b cuda.Buffer) []uint32 {
		all, err := cuda.Load[uint32](c, cuda.Whole(b), 4)
		require.NoError(t, err)
		return all
	}
	require.NoError(t, g.Launch(c))
	assert.Equal(t, []uint32{6, 7, 8, 9}, values(first))
	require.NoError(t, g.SetArg(0, 0, cuda.Out(second)))
	require.NoError(t, first.Free())
	for range 9000 { // a list of freed buffers forgets the older ones
		b, err := c.Alloc(16)
		require.NoError(t, err)
		require.NoError(t, b.Free())
	}
	require.NoError(t, g.Launch(c))
	assert.Equal(t, []uint32{6, 7, 8, 9}, values(second))
	require.NoError(t, g.Close())
	require.NoError(t, second.Free())
	require.NoError(t, m.Unload())
	require.NoError(t, c.Close())
}
