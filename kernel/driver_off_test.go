//go:build !gpu

package kernel_test

import (
	"testing"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// computes says whether kernels change bytes here.
const computes = false

// library is the simulated driver.
func library(testing.TB) cudadrv.Driver { return sim.New(sim.Config{Bytes: true}) }
