package main

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/examples/port/heat"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// The program runs on the device that there is.
func TestPort(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), vram.Config{DriverName: "gpu-or-cpu"}, &out))
	assert.Contains(t, out.String(), "step 40: largest change 0.0738, mean 0.0698\n")
}

// Each call of the driver fails once. The program returns the error, and frees its memory: Close of the device reports leaks.
func TestFailures(t *testing.T) {
	for _, function := range []string{"cuModuleLoadData", "cuMemcpyHtoDAsync", "cuStreamCreate", "cuLaunchKernel", "cuGraphLaunch"} {
		t.Run(function, func(t *testing.T) {
			driver := fault.Wrap(cpu.New(cpu.Config{}))
			require.NoError(t, driver.Add(fault.Rule{Func: function, Count: 1, Result: cudadrv.InvalidValue}))
			err := run(t.Context(), vram.Config{Driver: driver}, io.Discard)
			require.ErrorIs(t, err, cudadrv.InvalidValue)
			var leaked *vram.InUseError
			require.NotErrorAs(t, err, &leaked)
		})
	}
}

// The generated package has the kernels of the text.
func TestTheGeneratedPackageIsThatOfTheText(t *testing.T) {
	source, err := os.ReadFile("kern/kernels.go")
	require.NoError(t, err)
	assert.True(t, bytes.Contains(source, []byte("`"+heat.PTX+"`")), "go generate ./examples/port")
}
