package kernel_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A compiler that was closed gives no code out, not even code that the driver did not unload.
func TestAClosedCompilerGivesNoCode(t *testing.T) {
	faults := fault.Wrap(sim.New(sim.Config{}))
	r := newRigOn(t, faults)
	const text = ".version 7.0\n.target sm_50\n.address_size 64\n.visible .entry nothing() { ret; }\n"
	_, err := r.kernels.Function(text, "nothing")
	require.NoError(t, err)
	require.NoError(t, faults.Add(fault.Rule{Func: "cuModuleUnload", Result: cudadrv.Unknown}))
	require.ErrorIs(t, r.kernels.Close(), cudadrv.Unknown)
	faults.Clear()
	_, err = r.kernels.Function(text, "nothing")
	require.ErrorIs(t, err, kernel.ErrClosed)
}
