//go:build gpu

package kernel_test

import (
	"testing"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// computes says whether kernels change bytes here.
const computes = true

// library is the driver of a GPU.
func library(testing.TB) cudadrv.Driver { return dynamic.New(dynamic.Config{}) }
