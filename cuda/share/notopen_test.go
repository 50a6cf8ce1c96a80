package share_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cuda/share"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/eachcall"
)

// Each method of a value that is nil or zero refuses the call: three of them for the connection that it lacks.
func TestValuesThatAreNotOpenRefuse(t *testing.T) {
	eachcall.NotOpen(t, cuda.ErrNotOpen, []string{"Memory.Export", "Memory.Await", "Memory.Publish"}, (*share.Memory)(nil), new(share.Memory))
}

// So it is with the context of a device.
func TestMemoryThatIsNotOpenRefusesContexts(t *testing.T) {
	c, err := cuda.Open(vram.Config{Driver: sim.New(sim.Config{})})
	require.NoError(t, err)
	x, err := c.Alloc(512)
	require.NoError(t, err)
	for name, m := range map[string]*share.Memory{"nil": nil, "zero": new(share.Memory)} {
		require.ErrorIs(t, m.CopyFrom(c, 0, cuda.Whole(x)), cuda.ErrNotOpen, name)
		require.ErrorIs(t, m.CopyTo(c, 0, cuda.Whole(x)), cuda.ErrNotOpen, name)
		require.Error(t, m.Publish(c), name)
		require.Error(t, m.Await(t.Context(), c), name)
	}
	require.NoError(t, x.Free())
	require.NoError(t, c.Close())
}
