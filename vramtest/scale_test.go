package vramtest_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/vramtest"
)

// The test of docs/kernels-in-tests.md.
func TestScale(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels()) // a fault or a leak fails t when the device is closed, at the end of the test
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(ptxOfScale))
	require.NoError(t, err)
	scale, err := m.Function("scale") // (float *x, float by, unsigned n)
	require.NoError(t, err)

	values := []float32{1, 2, 3}
	x, err := c.Alloc(int64(4 * len(values)))
	require.NoError(t, err)
	require.NoError(t, cuda.CopyIn(c, x, values))
	require.NoError(t, c.Launch(scale, cuda.Cover(len(values), 256), cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(len(values)))))
	require.NoError(t, cuda.CopyOut(c, values, x))
	assert.Equal(t, []float32{2, 4, 6}, values)
	require.NoError(t, x.Free())
	require.NoError(t, c.Close())
}

// The failure that docs/kernels-in-tests.md shows: with > instead of >= in its guard the kernel takes one element too many.
func TestScaleTakesOneElementTooMany(t *testing.T) {
	other := &sheet{}
	dev := vramtest.Open(other, vramtest.Kernels())
	c := must(cuda.NewContext(dev.Stream()))
	scale := must(must(c.LoadModule([]byte(strings.Replace(ptxOfScale, "setp.ge", "setp.gt", 1)))).Function("scale"))
	x := must(c.Alloc(12))
	require.NoError(t, cuda.CopyIn(c, x, []float32{1, 2, 3}))
	require.NoError(t, c.Launch(scale, cuda.Cover(3, 256), cuda.InOut(x), cuda.Value(float32(2)), cuda.Value(uint32(3))))
	require.Error(t, c.Synchronize(t.Context()))
	other.end()
	require.Len(t, other.failures, 1)
	const want = `ptx: kernel scale: out of bounds: line 13, block (0,0,0), thread (3,0,0): ld.global.f32 %f2, [%d1]: 4 bytes at 0x30000000c of .global: no buffer has the address; it is 0 bytes past the end of the buffer of 12 bytes`
	assert.Contains(t, other.failures[0], want)
}
