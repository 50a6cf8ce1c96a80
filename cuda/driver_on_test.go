//go:build gpu

package cuda_test

import (
	"testing"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
)

// captures is how many graphs a test makes.
const captures = 1000

// library returns the driver of a GPU.
func library(testing.TB) cudadrv.Driver { return dynamic.New(dynamic.Config{}) }

// machine is library: with all devices that there are.
func machine(tb testing.TB) cudadrv.Driver {
	tb.Helper()
	return library(tb)
}

// players returns the drivers on which random programs are played.
func players(tb testing.TB) map[string]cudadrv.Driver {
	tb.Helper()
	return map[string]cudadrv.Driver{"GPU": library(tb)}
}

// gpuOrNil is library, where there is a GPU.
func gpuOrNil(tb testing.TB) cudadrv.Driver {
	tb.Helper()
	return library(tb)
}
