//go:build !gpu

package kernel_test

import (
	"testing"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/vramtest"
)

// open opens a simulated device that executes kernels and looks for their mistakes: also for reads of memory that nobody has written,
// and for accesses that a launch does not declare.
func open(tb testing.TB) *vram.Device {
	tb.Helper()
	return vramtest.Open(tb, vramtest.Kernels()).Device
}

// launching is the simulated driver, whose kernels do nothing.
func launching(testing.TB) cudadrv.Driver {
	return sim.New(sim.Config{Bytes: true, TimedKernels: true})
}
