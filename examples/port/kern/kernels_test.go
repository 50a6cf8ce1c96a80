package kern_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/examples/port/kern"
	"github.com/go-vram/vram/vramtest"
)

const nx, ny, n = 37, 11, 37 * 11

// open loads the kernels on a device that checks their accesses.
func open(t *testing.T) (*kern.Kernels, *cuda.Queue) {
	t.Helper()
	c, err := cuda.NewContext(vramtest.Open(t, vramtest.Kernels()).Stream())
	require.NoError(t, err)
	kernels, err := kern.Load(c)
	require.NoError(t, err)
	q := c.NewQueue()
	t.Cleanup(func() {
		require.NoError(t, q.Close())
		require.NoError(t, c.Close())
	})
	return kernels, q
}

// field returns numbers that differ.
func field(seed float64) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = float32(math.Sin(seed + float64(i*i)))
	}
	return all
}

// materials returns all 3 of them.
func materials() []uint8 {
	all := make([]uint8, n)
	for i := range all {
		all[i] = uint8(i % 3)
	}
	return all
}

func read(q *cuda.Queue, b cuda.Buffer, count int) []float32 {
	values := make([]float32, count)
	cuda.Read(q, values, cuda.Whole(b))
	return values
}

// Each cell has the rate that Go computes, with sources and without.
func TestRate(t *testing.T) {
	kernels, q := open(t)
	u, source, material, conductivity := field(1), field(2), materials(), []float32{0.5, 1, 2}
	at := func(x, y int) float64 { return float64(u[min(max(y, 0), ny-1)*nx+min(max(x, 0), nx-1)]) }
	du, ds, dm, dc, dst := cuda.Push(q, u), cuda.Push(q, source), cuda.Push(q, material), cuda.Push(q, conductivity), q.Alloc(4*n)
	for _, from := range []cuda.Buffer{ds, {}} {
		q.Do("Rate", func(c *cuda.Context) error {
			return kernels.Rate(c, cuda.Cover2D(nx, ny), dst, du, dc, dm, from, 3, nx, ny)
		})
		got := read(q, dst, n)
		require.NoError(t, q.Err())
		for i := range n {
			x, y := i%nx, i/nx
			heat := 3.0
			if from == ds {
				heat *= float64(source[i])
			}
			want := float64(conductivity[material[i]])*(at(x-1, y)+at(x+1, y)+at(x, y-1)+at(x, y+1)-4*at(x, y)) + heat
			require.InDelta(t, want, got[i], 1e-5, "cell %d", i)
		}
	}
}

// The sum may replace a summand.
func TestMadd2(t *testing.T) {
	kernels, q := open(t)
	a, b := field(1), field(2)
	da, db := cuda.Push(q, a), cuda.Push(q, b)
	q.Do("Madd2", func(c *cuda.Context) error { return kernels.Madd2(c, cuda.Cover(n), da, da, 2, db, -0.5, n) })
	got := read(q, da, n)
	require.NoError(t, q.Err())
	for i := range n {
		require.InDelta(t, 2*a[i]-b[i]/2, got[i], 1e-6, "cell %d", i)
	}
}

func TestHold(t *testing.T) {
	kernels, q := open(t)
	want, material := field(1), materials()
	u, m := cuda.Push(q, want), cuda.Push(q, material)
	q.Do("Hold", func(c *cuda.Context) error { return kernels.Hold(c, cuda.Cover(n), u, m, 2, 7, n) })
	for i := range n {
		if material[i] == 2 {
			want[i] = 7
		}
	}
	assert.Equal(t, want, read(q, u, n))
	require.NoError(t, q.Err())
}

func TestReductions(t *testing.T) {
	kernels, q := open(t)
	a, b := field(1), field(2)
	da, db, most, sum := cuda.Push(q, a), cuda.Push(q, b), q.AllocZeroed(4), q.AllocZeroed(4)
	q.Do("Maxdiff", func(c *cuda.Context) error { return kernels.Maxdiff(c, cuda.Cover(n), most, da, db, n) })
	q.Do("Sum", func(c *cuda.Context) error { return kernels.Sum(c, cuda.Cover(n), sum, da, n) })
	var wantMost float32
	var wantSum float64
	for i := range n {
		wantMost = max(wantMost, a[i]-b[i], b[i]-a[i])
		wantSum += float64(a[i])
	}
	assert.Equal(t, []float32{wantMost}, read(q, most, 1))
	assert.InDelta(t, wantSum, read(q, sum, 1)[0], 1e-4)
	require.NoError(t, q.Err())
}
