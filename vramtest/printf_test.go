package vramtest_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/vramtest"
)

// logged is a sheet with a log.
type logged struct {
	sheet
	lines []string
}

func (l *logged) Logf(format string, args ...any) {
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// function loads a kernel of the interpreter's test data.
func function(t *testing.T, c *cuda.Context, file, name string) *cuda.Function {
	t.Helper()
	text, err := os.ReadFile("../compute/ptx/interp/testdata/" + file)
	require.NoError(t, err)
	m, err := c.LoadModule(text)
	require.NoError(t, err)
	f, err := m.Function(name)
	require.NoError(t, err)
	return f
}

// The output of kernels' printf is in the test's log, or in the writer of Kernels.Output.
func TestKernelsPrint(t *testing.T) {
	var printed bytes.Buffer
	for _, config := range []vramtest.KernelConfig{{Ignore: []interp.Kind{interp.GlobalRace}}, {Ignore: []interp.Kind{interp.GlobalRace}, Output: &printed}} {
		log := &logged{}
		dev := vramtest.Open(log, vramtest.Kernels(config))
		c, err := cuda.NewContext(dev.Stream())
		require.NoError(t, err)
		x := buffer(t, c, 4)
		require.NoError(t, c.Launch(function(t, c, "vprintf.ptx", "hello"), cuda.Cover(2, 2), cuda.Out(x)))
		require.NoError(t, c.Synchronize(t.Context()))
		require.NoError(t, x.Free())
		require.NoError(t, c.Close())
		log.end()
		assert.Empty(t, log.failures)
		if config.Output == nil {
			assert.Equal(t, []string{"kernel: 0", "kernel: 1"}, log.lines)
		} else {
			assert.Empty(t, log.lines)
		}
	}
	assert.Equal(t, "0\n1\n", printed.String())
}

// An assertion that does not hold fails the device with CUDA's code for it.
func TestAssertionsOfKernels(t *testing.T) {
	dev, c, _ := kernels(t, vramtest.Kernels())
	x := buffer(t, c, 4)
	require.NoError(t, c.Launch(function(t, c, "assertfail.ptx", "guarded"), cuda.Cover(1, 1), cuda.Out(x), cuda.Value(uint32(0))))
	err := c.Synchronize(t.Context())
	var failed *cudadrv.CallError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, cudadrv.AssertionFailed, failed.Result)
	assert.Equal(t, "CUDA_ERROR_ASSERT", failed.Result.String())
	require.Len(t, dev.Faults(), 1)
	require.ErrorIs(t, dev.Faults()[0], interp.Assertion)
}

// The output of kernels is in the test's log to its last byte, if the last line has no end, too.
func TestTheLastLineOfAKernelHasNoEnd(t *testing.T) {
	text, err := os.ReadFile("../compute/ptx/interp/testdata/vprintf.ptx")
	require.NoError(t, err)
	for end, want := range map[string][]string{"10": {"kernel: 0", "kernel: 1", "kernel: 2"}, "32": {"kernel: 0 1 2 "}} {
		for _, waits := range []bool{true, false} { // else the kernel runs as the end of the test closes the device
			log := &logged{}
			dev := vramtest.Open(log, vramtest.Kernels(vramtest.KernelConfig{Ignore: []interp.Kind{interp.GlobalRace}}))
			c, err := cuda.NewContext(dev.Stream())
			require.NoError(t, err)
			m, err := c.LoadModule(bytes.Replace(text, []byte("{37, 100, 10, 0}"), []byte("{37, 100, "+end+", 0}"), 1))
			require.NoError(t, err)
			f, err := m.Function("hello")
			require.NoError(t, err)
			x := buffer(t, c, 4)
			require.NoError(t, c.Launch(f, cuda.Cover(3, 3), cuda.Out(x)))
			if waits {
				require.NoError(t, c.Synchronize(t.Context()))
			}
			require.NoError(t, x.Free())
			if waits {
				require.NoError(t, c.Close())
			}
			log.end()
			assert.Empty(t, log.failures)
			assert.Equal(t, want, log.lines, "waits: %t", waits)
		}
	}
}
