package main

import (
	"errors"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/internal/fakecuda"
	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-second" {
		os.Exit(command.Interruptible(run))
	}
	recoveredtest.Main(m)
}

// output is the output of both processes.
type output struct {
	sync.Mutex
	strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.Lock()
	defer o.Unlock()
	return o.Builder.Write(b)
}

// The two processes run on the fake library, which moves real bytes.
func TestBytesOfTheSecondProcess(t *testing.T) {
	library, err := fakecuda.Build(t.TempDir())
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err) //nolint:forbidigo // the fake is C, and there is nothing to run on without a compiler
	}
	require.NoError(t, err)
	var stdout, stderr output
	code := run(t.Context(), []string{"-library", library}, &stdout, &stderr)
	assert.Equal(t, command.OK, code, "%s", stderr.String())
	assert.Empty(t, stderr.String())
	for _, line := range []string{
		"are shared, with fences by event\n", "second process: the fill is submitted, and published\n", "first process: all 16777216 words are 42\n",
	} {
		assert.Contains(t, stdout.String(), line)
	}
}

// Without a driver the program prints its requirements.
func TestAMachineWithoutAGPU(t *testing.T) {
	var stdout, stderr output
	code := run(t.Context(), []string{"-library", t.TempDir() + "/none"}, &stdout, &stderr)
	assert.Equal(t, command.OK, code)
	assert.Empty(t, stderr.String())
	assert.Contains(t, stdout.String(), "share needs Linux, and an NVIDIA GPU")
}

func TestFlagsThatCannotBe(t *testing.T) {
	var stdout, stderr output
	assert.Equal(t, command.Misused, run(t.Context(), []string{"-fly"}, &stdout, &stderr))
	assert.Equal(t, command.OK, run(t.Context(), []string{"-h"}, &stdout, &stderr))
}
