//go:build !gpu

package cuda_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/dynamic"
	loader "github.com/go-vram/vram/cudadrv/dynamic/library"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/fakecuda"
)

// captures is how many graphs a test makes; with a GPU more.
const captures = 60

// library returns the driver of a fake of libcuda, which runs the kernels of drivertest.PTX on the host's memory.
func library(tb testing.TB) cudadrv.Driver {
	tb.Helper()
	return dynamic.New(dynamic.Config{Library: builtFake(tb)})
}

// machine is library with two devices.
func machine(tb testing.TB) cudadrv.Driver {
	tb.Helper()
	path := builtFake(tb)
	fake, err := loader.Open(path)
	require.NoError(tb, err)
	setDevices, err := fake.Function("fakecuda_set_devices")
	require.NoError(tb, err)
	setDevices.Call([]uintptr{2})
	return dynamic.New(dynamic.Config{Library: path})
}

// builtFake returns the path of the fake.
func builtFake(tb testing.TB) string {
	tb.Helper()
	path, err := fakecuda.Build(tb.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		tb.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(tb, err)
	return path
}

// players returns the drivers on which random programs are played.
func players(tb testing.TB) map[string]cudadrv.Driver {
	tb.Helper()
	return map[string]cudadrv.Driver{"simulated": sim.New(sim.Config{Bytes: true}), "fake": library(tb)}
}

// gpuOrNil returns nil: there is none.
func gpuOrNil(testing.TB) cudadrv.Driver { return nil }
