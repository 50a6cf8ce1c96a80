package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv/sim"
)

// NewStream gives a context of another stream of the device, whose Close waits for its work and closes the stream alone.
func TestNewStream(t *testing.T) {
	machine := sim.New(sim.Config{TimedKernels: true})
	c, err := cuda.Open(vram.Config{Driver: machine})
	require.NoError(t, err)
	streams := machine.Device(0).Objects()["stream"]
	d, err := c.NewStream()
	require.NoError(t, err)
	assert.NotSame(t, c.Stream(), d.Stream())
	assert.Same(t, c.Device(), d.Device())
	assert.Equal(t, streams+1, machine.Device(0).Objects()["stream"])
	x, err := c.AllocZeroed(mib)
	require.NoError(t, err)
	touch, err := c.Kernel(ptx, "touch")
	require.NoError(t, err)
	require.NoError(t, d.Launch(touch, oneThread, cuda.InOut(x)))
	third, err := d.NewStream()
	require.NoError(t, err)
	assert.Same(t, c.Device(), third.Device())
	require.NoError(t, third.Close())
	require.NoError(t, d.Close())
	require.NoError(t, d.Close(), "idempotent")
	assert.Equal(t, streams, machine.Device(0).Objects()["stream"])
	_, err = d.NewStream()
	require.ErrorIs(t, err, cuda.ErrNotOpen)
	_, err = (*cuda.Context)(nil).NewStream()
	require.ErrorIs(t, err, cuda.ErrNotOpen)

	plain := must(cuda.NewContext(c.Stream()))
	other, err := plain.NewStream()
	require.NoError(t, err)
	assert.Nil(t, other.Device(), "as of its parent")
	require.NoError(t, plain.Close())
	second, err := other.NewStream()
	require.NoError(t, err)
	require.NoError(t, c.Launch(touch, oneThread, cuda.InOut(x)))
	require.NoError(t, x.Free())
	require.NoError(t, c.Close(), "the device closes their streams")
	require.NoError(t, second.Close())
	require.NoError(t, other.Close())
	assert.Empty(t, machine.Device(0).Objects())
}

// A stream that is being captured stays open; a further Close closes it.
func TestCloseOfACapturedNewStream(t *testing.T) {
	_, c := newRig(t)
	d, err := c.NewStream()
	require.NoError(t, err)
	_, err = d.Capture(func() error { return d.Close() })
	require.ErrorIs(t, err, cuda.ErrCapturing)
	b, err := d.Stream().Alloc(mib)
	require.NoError(t, err, "it is open")
	require.NoError(t, b.Free())
	require.NoError(t, d.Close())
	_, err = d.Stream().Alloc(mib)
	require.ErrorIs(t, err, vram.ErrClosed)
}
