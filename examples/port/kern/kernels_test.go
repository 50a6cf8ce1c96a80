package kern_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
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

// Parts of buffers are arguments, too, a queue launches without Do, and an error names the parameter as the source does, and the
// caller of the generated method.
func TestPartsAndQueues(t *testing.T) {
	kernels, q := open(t)
	a, b := field(1), field(2)
	both := cuda.Push(q, append(slices.Clone(a), b...))
	second := cuda.Elements[float32](both, n, n)
	kernels.On(q).Madd2(cuda.Cover(n), second, cuda.Elements[float32](both, 0, n), 2, second, -0.5, n)
	got := read(q, both, 2*n)
	require.NoError(t, q.Err())
	assert.Equal(t, a, got[:n])
	for i := range n {
		require.InDelta(t, 2*float64(a[i])-0.5*float64(b[i]), got[n+i], 1e-5)
	}
	var failing *cuda.Queue
	q.Do("a queue", func(c *cuda.Context) error {
		failing = c.NewQueue()
		return nil
	})
	kernels.On(failing).Madd2(cuda.Cover(n), cuda.Elements[float32](both, n, n+1), both, 2, both, -0.5, n)
	var refused *cuda.ArgumentError
	require.ErrorAs(t, failing.Close(), &refused)
	assert.Equal(t, "dst", refused.Parameter)
	var outside *cuda.RangeError
	require.ErrorAs(t, failing.Err(), &outside)
	var failed *cuda.QueueError
	require.ErrorAs(t, failing.Err(), &failed)
	assert.Contains(t, failed.Place.String(), "kern_test.TestPartsAndQueues (kernels_test.go:")
	assert.Equal(t, "Launch of kernel madd2", failed.Call)
}

// A fault of a kernel names the parameter as the source does, and the caller of the generated method.
func TestAFaultNamesTheParameterOfTheSource(t *testing.T) {
	dev := vramtest.Open(t, vramtest.Kernels(), vramtest.Expected())
	c, err := cuda.NewContext(dev.Stream())
	require.NoError(t, err)
	kernels, err := kern.Load(c)
	require.NoError(t, err)
	total, short := alloc(t, c, 4), alloc(t, c, 4*(n-1))
	require.NoError(t, kernels.Sum(c, cuda.Cover(n), total, short, n))
	require.Error(t, c.Synchronize(t.Context()))
	require.Len(t, dev.Faults(), 1)
	require.ErrorContains(t, dev.Faults()[0], "the buffer is parameter 1, a; launched at kern_test.TestAFaultNamesTheParameterOfTheSource (kernels_test.go:")
}

func alloc(t *testing.T, c *cuda.Context, bytes int64) cuda.Buffer {
	t.Helper()
	b, err := c.AllocZeroed(bytes)
	require.NoError(t, err)
	return b
}

// A launch of a generated method allocates nothing, with buffers and with parts.
func TestLaunchesAllocateNothing(t *testing.T) {
	c, err := cuda.Open(vram.Config{Driver: sim.New(sim.Config{TimedKernels: true})})
	require.NoError(t, err)
	kernels, err := kern.Load(c)
	require.NoError(t, err)
	q := c.NewQueue()
	x := q.Alloc(4 * 2 * n)
	part, on := cuda.Elements[float32](x, n, n), kernels.On(q)
	bare := testing.AllocsPerRun(100, func() {
		q.Launch(kernels.Function("sum"), cuda.Cover(n), cuda.InOut(x), cuda.In(x), cuda.Value(int32(n)))
	}) // the simulated device's
	assert.InDelta(t, bare, testing.AllocsPerRun(100, func() { on.Sum(cuda.Cover(n), x, part, n) }), 0.5)
	assert.InDelta(t, bare, testing.AllocsPerRun(100, func() { err = kernels.Sum(c, cuda.Cover(n), part, x, n) }), 0.5)
	require.NoError(t, err)
	require.NoError(t, errors.Join(q.Close(), c.Synchronize(t.Context()), kernels.Close(), c.Close()))
}
