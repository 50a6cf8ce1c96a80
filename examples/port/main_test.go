package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
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

// The generated package has the kernels of the text, with the names of parameters that the source has.
func TestTheGeneratedPackageIsThatOfTheText(t *testing.T) {
	source, err := os.ReadFile("kern/kernels.go")
	require.NoError(t, err)
	declared := regexp.MustCompile(`\.param \.\w+ (\w+)`)
	numbered, named := declared.FindAllStringSubmatch(heat.PTX, -1), declared.FindAllSubmatch(source, -1)
	require.Len(t, named, len(numbered))
	var names []string
	for i := range named {
		names = append(names, numbered[i][1], string(named[i][1]))
	}
	assert.Equal(t, []string{"rate_param_0", "dst", "rate_param_1", "u"}, names[:4])
	text := "`" + strings.NewReplacer(names...).Replace(heat.PTX) + "`"
	assert.True(t, bytes.Contains(source, []byte(text)), "go generate ./examples/port")
}
