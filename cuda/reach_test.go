package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/drivertest"
)

// twoGPUs are contexts of two devices, the first of which reaches the memory of the second, with kernels of the first.
type twoGPUs struct {
	testing.TB
	devices   [2]*vram.Device
	c, home   *cuda.Context
	fill, sum *cuda.Function // see gpu
}

// openTwo skips the test where the driver has one device.
func openTwo(tb testing.TB) *twoGPUs {
	tb.Helper()
	driver := machine(tb)
	count, err := driver.DeviceCount()
	require.NoError(tb, err)
	if count < 2 {
		tb.Skip("one device") //nolint:forbidigo // there is no other
	}
	g := &twoGPUs{TB: tb}
	for ordinal, c := range []**cuda.Context{&g.c, &g.home} {
		dev, err := vram.Open(vram.Config{Driver: driver, Ordinal: ordinal})
		require.NoError(tb, err)
		tb.Cleanup(func() { assert.NoError(tb, dev.Close()) })
		g.devices[ordinal] = dev
		s, err := dev.NewStream()
		require.NoError(tb, err)
		*c, err = cuda.NewContext(s)
		require.NoError(tb, err)
	}
	m, err := g.c.LoadModule([]byte(drivertest.PTX))
	require.NoError(tb, err)
	for name, f := range map[string]**cuda.Function{"vram_fill32": &g.fill, "vram_add32": &g.sum} {
		*f, err = m.Function(name)
		require.NoError(tb, err)
	}
	return g
}

// reach gives the first device access, or skips the test where the hardware has none.
func (g *twoGPUs) reach() {
	g.Helper()
	can, err := g.devices[0].CanAccessPeer(g.devices[1])
	require.NoError(g, err)
	if !can {
		g.Skip("no access")
	}
	require.NoError(g, g.devices[0].EnablePeerAccess(g.devices[1]))
}

// Kernels of one device read and write the memory of another one: that was mapped before it was given access, and that is
// mapped later.
func TestKernelsReachAnotherDevice(t *testing.T) {
	g := openTwo(t)
	const count, large = 1 << 10, 256 * mib
	alloc := func(c *cuda.Context, bytes int64) cuda.Buffer {
		b, err := c.Alloc(bytes)
		require.NoError(t, err)
		return b
	}
	own, before := alloc(g.c, 4*count), alloc(g.home, 4*count)
	shape := cuda.Cover(count, 256)
	fill := func(b cuda.Buffer, value uint32) error {
		return g.c.Launch(g.fill, shape, cuda.Out(b), cuda.Value(value), cuda.Value(uint32(count)))
	}
	require.ErrorIs(t, fill(before, 1), cuda.ErrForeign)
	g.reach()
	after := alloc(g.home, large)
	got := make([]uint32, count)
	for i, b := range []cuda.Buffer{before, after} {
		require.NoError(t, g.home.Fill32(cuda.Part(b, 0, 4*count), 100))
		require.NoError(t, fill(own, uint32(i)))
		require.NoError(t, g.c.Launch(g.sum, shape, cuda.InOut(own), cuda.In(b).Of(0, 4*count), cuda.Value(uint32(count)))) // reads it
		require.NoError(t, cuda.CopyOut(g.c, got, own))
		assert.Equal(t, uint32(100+i), got[count-1])
		require.NoError(t, fill(b, 7))
		require.NoError(t, g.home.Copy(cuda.Part(b, 2*count, 2*count), cuda.Part(b, 0, 2*count)))
		require.NoError(t, cuda.CopyOut(g.home, got, b))
		assert.Equal(t, []uint32{7, 7}, []uint32{got[0], got[count-1]})
	}
	for _, b := range []cuda.Buffer{own, before, after} {
		require.NoError(t, b.Free())
	}
}
