package cuda_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/drivertest"
)

// gpu is a device with a context and kernels.
type gpu struct {
	testing.TB
	dev   *vram.Device
	fill  *cuda.Function // (p, value, count): writes words
	sum   *cuda.Function // (to, from, count): adds words
	empty *cuda.Function
	sixth *cuda.Function // 16 parameters
}

const sixteen = `.version 7.0
.target sm_70
.address_size 64
.visible .entry sixteen(.param .u64 a0, .param .u64 a1, .param .u64 a2, .param .u64 a3, .param .u64 a4, .param .u64 a5,
	.param .u64 a6, .param .u64 a7, .param .u32 a8, .param .u32 a9, .param .u32 a10, .param .u32 a11, .param .f32 a12,
	.param .f32 a13, .param .f32 a14, .param .f32 a15) { ret; }
`

func openGPU(tb testing.TB) (*gpu, *cuda.Context) {
	tb.Helper()
	dev, err := vram.Open(vram.Config{Driver: library(tb)})
	require.NoError(tb, err)
	tb.Cleanup(func() { assert.NoError(tb, dev.Close()) })
	g := &gpu{TB: tb, dev: dev}
	c := g.context()
	m, err := c.LoadModule([]byte(drivertest.PTX))
	require.NoError(tb, err)
	more, err := c.LoadModule([]byte(sixteen))
	require.NoError(tb, err)
	for name, f := range map[string]**cuda.Function{"vram_fill32": &g.fill, "vram_add32": &g.sum, "vram_nothing": &g.empty} {
		*f, err = m.Function(name)
		require.NoError(tb, err)
	}
	g.sixth, err = more.Function("sixteen")
	require.NoError(tb, err)
	return g, c
}

func (g *gpu) context() *cuda.Context {
	g.Helper()
	s, err := g.dev.NewStream()
	require.NoError(g, err)
	c, err := cuda.NewContext(s)
	require.NoError(g, err)
	return c
}

func (g *gpu) alloc(c *cuda.Context, bytes int64) cuda.Buffer {
	g.Helper()
	b, err := c.Alloc(bytes)
	require.NoError(g, err)
	return b
}

func fillArgs(b cuda.Buffer, value uint32) []cuda.Arg {
	return []cuda.Arg{cuda.Out(b), cuda.Value(value), cuda.Value(uint32(b.Bytes() / 4))}
}

func sumArgs(to, from cuda.Buffer) []cuda.Arg {
	return []cuda.Arg{cuda.InOut(to), cuda.In(from), cuda.Value(uint32(to.Bytes() / 4))}
}

func words(c *cuda.Context, b cuda.Buffer) ([]uint32, error) {
	all := make([]uint32, b.Bytes()/4)
	return all, cuda.CopyOut(c, all, b)
}

func TestKernelsRun(t *testing.T) {
	g, c := openGPU(t)
	d := g.context()
	const n = 1 << 20
	x, y := g.alloc(c, 4*n), g.alloc(d, 4*n)
	in := make([]uint32, n)
	for i := range in {
		in[i] = uint32(i)
	}
	require.NoError(t, cuda.CopyIn(c, x, in))
	require.NoError(t, d.Launch(g.fill, cuda.Cover(n, 256), fillArgs(y, 7)...))
	for range 3 { // on alternating streams
		require.NoError(t, c.Launch(g.sum, cuda.Cover(n, 256), sumArgs(x, y)...))
		require.NoError(t, d.Launch(g.sum, cuda.Cover(n, 256), sumArgs(y, x)...))
	}
	got, err := words(d, y)
	require.NoError(t, err)
	for _, i := range []int{0, 1, 4711, n - 1} {
		a, b := uint32(i), uint32(7)
		for range 3 {
			a += b
			b += a
		}
		assert.Equal(t, b, got[i])
	}
	require.NoError(t, x.Free())
	require.NoError(t, y.Free())
}

// A graph is launched again after its buffer was freed and other streams have allocated all there is: it changes nothing of
// theirs.
func TestAGraphChangesNothingOfOthers(t *testing.T) {
	g, c := openGPU(t)
	d := g.context()
	const n = 1 << 20
	count := 64
	if testing.Short() {
		count = 16
	}
	x, out := g.alloc(c, 4*n), g.alloc(c, 4*n)
	graph, err := c.Capture(func() error {
		if err := c.Launch(g.fill, cuda.Cover(n, 256), fillArgs(x, 0xdead)...); err != nil {
			return err
		}
		return c.Copy(cuda.Whole(out), cuda.Whole(x))
	})
	require.NoError(t, err)
	require.NoError(t, graph.Launch(c))
	at := x.Ptr()
	require.NoError(t, x.Free())
	require.NoError(t, c.Synchronize(context.Background()))
	_, err = g.dev.Trim(context.Background(), 0)
	require.NoError(t, err)
	var all []cuda.Buffer
	for i := range count {
		on := []*cuda.Context{c, d}[i%2]
		b := g.alloc(on, 4*n)
		assert.NotEqual(t, at, b.Ptr())
		require.NoError(t, on.Launch(g.fill, cuda.Cover(n, 256), fillArgs(b, uint32(i))...))
		all = append(all, b)
	}
	require.NoError(t, graph.Launch(d))
	require.NoError(t, graph.Launch(c))
	for i, b := range all {
		got, err := words(c, b)
		require.NoError(t, err)
		for _, at := range []int{0, n / 2, n - 1} {
			require.Equal(t, uint32(i), got[at])
		}
		require.NoError(t, b.Free())
	}
	got, err := words(c, out)
	require.NoError(t, err)
	assert.Equal(t, uint32(0xdead), got[n-1])
	require.NoError(t, graph.Close())
	require.NoError(t, out.Free())
}

// Captures and closes, in all modes, leave the GPU's free memory where it was.
func TestCapturesLeaveNothingOnTheDevice(t *testing.T) {
	g, c := openGPU(t)
	const n = 1 << 20
	once := func(mode cuda.CaptureMode) {
		graph, err := c.Capture(func() error {
			b, err := c.Alloc(4 * n)
			if err != nil {
				return err
			}
			if err := c.Launch(g.fill, cuda.Cover(n, 256), fillArgs(b, 1)...); err != nil {
				return err
			}
			return b.Free()
		}, cuda.Mode(mode))
		require.NoError(t, err)
		require.NoError(t, graph.Launch(c))
		require.NoError(t, graph.Close())
	}
	free := func() int64 {
		require.NoError(t, c.Synchronize(context.Background()))
		_, err := g.dev.Trim(context.Background(), 0)
		require.NoError(t, err)
		freeBytes, _, err := cuda.MemGetInfo(c)
		require.NoError(t, err)
		return freeBytes
	}
	for _, mode := range []cuda.CaptureMode{cuda.Relaxed, cuda.ThreadLocal, cuda.Global} {
		once(mode)
	}
	before := free()
	for i := range captures {
		once(cuda.CaptureMode(i % 3))
	}
	assert.InDelta(t, before, free(), float64(4<<20))
}
