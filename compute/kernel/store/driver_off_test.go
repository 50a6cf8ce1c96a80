//go:build !gpu

package store_test

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
)

// driver is simulated, and executes kernels.
func driver() cudadrv.Driver {
	return sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})})
}
