package cuda_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// A geometry has a thread for each element, and less than a block too many in each direction.
func TestCover(t *testing.T) {
	one := cuda.Dim3{X: 1, Y: 1, Z: 1}
	for _, c := range []struct {
		got         cuda.Geometry
		grid, block cuda.Dim3
	}{
		{cuda.Cover(0), one, cuda.Dim3{X: 256, Y: 1, Z: 1}},
		{cuda.Cover(-1), one, cuda.Dim3{X: 256, Y: 1, Z: 1}},
		{cuda.Cover(256), one, cuda.Dim3{X: 256, Y: 1, Z: 1}},
		{cuda.Cover(257), cuda.Dim3{X: 2, Y: 1, Z: 1}, cuda.Dim3{X: 256, Y: 1, Z: 1}},
		{cuda.Cover(1000, 64), cuda.Dim3{X: 16, Y: 1, Z: 1}, cuda.Dim3{X: 64, Y: 1, Z: 1}},
		{cuda.Cover(3, 0), cuda.Dim3{X: 3, Y: 1, Z: 1}, one},
		{cuda.Cover2D(33, 8), cuda.Dim3{X: 2, Y: 1, Z: 1}, cuda.Dim3{X: 32, Y: 8, Z: 1}},
		{cuda.Cover2D(1, 9), cuda.Dim3{X: 1, Y: 2, Z: 1}, cuda.Dim3{X: 32, Y: 8, Z: 1}},
		{cuda.Cover3D(64, 5, 3), cuda.Dim3{X: 2, Y: 2, Z: 2}, cuda.Dim3{X: 32, Y: 4, Z: 2}},
		{cuda.Cover3D(0, -5, 1), one, cuda.Dim3{X: 32, Y: 4, Z: 2}},
	} {
		assert.Equal(t, cuda.Geometry{Grid: c.grid, Block: c.block}, c.got)
	}
}

// More elements than a grid has threads are refused by the driver: a number that is cut would cover fewer.
func TestCoverOfTooMany(t *testing.T) {
	r, c := newRig(t)
	x := r.alloc(c, mib)
	for _, g := range []cuda.Geometry{
		cuda.Cover(math.MaxInt), cuda.Cover(1<<40, 256), cuda.Cover(1<<32, 1), cuda.Cover(1, 1<<32+1), cuda.Cover2D(1, math.MaxInt), cuda.Cover3D(1, 1, 1<<33),
	} {
		err := c.Launch(r.touch, g, cuda.InOut(x))
		require.ErrorIs(t, err, cudadrv.InvalidValue, "%v %v", g.Grid, g.Block)
	}
	r.free(x)
}

// A geometry is not allocated.
func TestCoverAllocatesNothing(t *testing.T) {
	n := 1000
	var sum uint32
	assert.Zero(t, testing.AllocsPerRun(100, func() { sum += cuda.Cover(n).Grid.X + cuda.Cover(n, 64).Grid.X + cuda.Cover2D(n, n).Grid.X }))
	assert.NotZero(t, sum)
}
