package sleep_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/sleep"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/drivertest"
	"github.com/go-vram/vram/host"
)

// TestAModelOnALibrary has the weights of a model sleep and wake on the driver's library: with the tag gpu, and -v, it logs the
// time on hardware.
func TestAModelOnALibrary(t *testing.T) {
	ctx := t.Context()
	dev, err := vram.Open(vram.Config{Driver: library(t)})
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	s, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(s)
	require.NoError(t, err)
	m, err := c.LoadModule([]byte(drivertest.PTX))
	require.NoError(t, err)
	fill, err := m.Function("vram_fill32")
	require.NoError(t, err)
	var device cudadrv.Device // the program's device, which reports the driver's memory
	require.NoError(t, c.Submit(func(d cudadrv.Device, _ cudadrv.Stream) error { device = d; return nil }))
	cached, err := host.NewPageLocked(device, host.PoolConfig{KeepBytes: 2 * modelBytes})
	require.NoError(t, err)
	defer func() { require.NoError(t, cached.Close(ctx)) }()

	for name, o := range map[string]sleep.Options{"new host memory": {}, "cached host memory": {Host: cached}} {
		t.Run(name, func(t *testing.T) {
			a, err := sleep.New(c, o)
			require.NoError(t, err)
			model := newModel(t, a, c, fill)
			for _, contents := range []sleep.Contents{sleep.Save, sleep.Save, sleep.Drop} {
				before := freeBytes(t, device)
				began := time.Now()
				require.NoError(t, a.Sleep(ctx, contents))
				slept := time.Since(began)
				given := freeBytes(t, device) - before
				assert.GreaterOrEqual(t, given, model.sum*95/100, "95 % of the bytes are given back")
				require.ErrorIs(t, c.Fill8(cuda.Whole(model.buffers[0]), 0), cuda.ErrAsleep)
				began = time.Now()
				require.NoError(t, a.Wake(ctx))
				woken := time.Since(began)
				t.Logf("contents %d: %d buffers of %.3f GiB: %.1f %% given back; asleep in %.4f s/GiB, awake in %.4f s/GiB", contents,
					len(model.buffers), gib(model.sum), 100*float64(given)/float64(model.sum), slept.Seconds()/gib(model.sum), woken.Seconds()/gib(model.sum))
				if contents == sleep.Save {
					model.check(t, c)
				}
			}
			model.write(t, c, fill)
			model.check(t, c)
			model.free(t)
			require.NoError(t, a.Close())
		})
	}
	require.NoError(t, c.Close())
}

func gib(byteCount int64) float64 { return float64(byteCount) / (1 << 30) }

func freeBytes(tb testing.TB, d cudadrv.Device) int64 {
	tb.Helper()
	free, _, err := d.MemGetInfo()
	require.NoError(tb, err)
	return free
}

// model is buffers as a model has them: hundreds from 4 KiB on, a few long ones, and blocks of a cache.
type model struct {
	buffers []cuda.Buffer
	sum     int64
}

func newModel(tb testing.TB, a *sleep.Arena, c *cuda.Context, fill *cuda.Function) *model {
	tb.Helper()
	var sizes []int64
	for i := range 300 {
		sizes = append(sizes, 4*kib<<(i%5))
	}
	for left := modelBytes; left > 0; {
		n := min(left, max(mib, modelBytes/24), 256*mib)
		sizes = append(sizes, n)
		left -= n
	}
	m := &model{}
	for _, n := range sizes {
		b, err := a.Alloc(n)
		require.NoError(tb, err)
		m.buffers, m.sum = append(m.buffers, b), m.sum+n
	}
	m.write(tb, c, fill)
	return m
}

// write gives each buffer a word of its own.
func (m *model) write(tb testing.TB, c *cuda.Context, fill *cuda.Function) {
	tb.Helper()
	for i, b := range m.buffers {
		count := uint32(b.Bytes() / 4)  //nolint:gosec // less than a GiB
		value := uint32(i) * 0x9e3779b1 //nolint:gosec // a number for each
		require.NoError(tb, c.Launch(fill, cuda.Cover(int(count), 256), cuda.Out(b), cuda.Value(value), cuda.Value(count)))
	}
}

// check compares every byte.
func (m *model) check(tb testing.TB, c *cuda.Context) {
	tb.Helper()
	longest := int64(0)
	for _, b := range m.buffers {
		longest = max(longest, b.Bytes())
	}
	got := make([]byte, longest)
	for i, b := range m.buffers {
		value := uint32(i) * 0x9e3779b1 //nolint:gosec // a number for each
		word := []byte{byte(value), byte(value >> 8), byte(value >> 16), byte(value >> 24)}
		part := got[:b.Bytes()]
		require.NoError(tb, cuda.CopyOut(c, part, b))
		require.Equal(tb, word, part[:4])
		require.True(tb, bytes.Equal(part[4:], part[:len(part)-4]), "buffer %d", i)
	}
}

func (m *model) free(tb testing.TB) {
	tb.Helper()
	for _, b := range m.buffers {
		require.NoError(tb, b.Free())
	}
}
