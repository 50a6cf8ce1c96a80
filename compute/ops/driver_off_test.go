//go:build !gpu

package ops_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// open opens a simulated device that executes kernels and looks for their mistakes: also for reads of memory that nobody has
// written, and for accesses that a launch does not declare.
func open(tb testing.TB) *vram.Device {
	tb.Helper()
	return vramtest.Open(tb, vramtest.Kernels()).Device
}

// launching is the simulated driver, whose kernels do nothing.
func launching(testing.TB) cudadrv.Driver {
	return sim.New(sim.Config{Bytes: true, TimedKernels: true})
}

// Where the bytes of a simulated device would stay as they are, no operation says that it was done.
func TestAnOperationWithoutAnExecutorFails(t *testing.T) {
	r := newRigOn(t, sim.New(sim.Config{Bytes: true}))
	x, err := tensor.Zeros(r.s, tensor.Float32, 3)
	require.NoError(t, err)
	_, err = r.o.Exp(r.s, x)
	require.ErrorIs(t, err, sim.ErrNoExecutor)
}

// bookkeeping is the simulated driver without bytes: it makes no note of fills and copies, so that all allocations are the
// program's.
func bookkeeping(testing.TB) cudadrv.Driver { return sim.New(sim.Config{}) }
