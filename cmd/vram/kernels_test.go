package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/lab/kernelbench"
)

func TestKernelsAreMeasured(t *testing.T) {
	t.Setenv(asProgram, "1")
	code, stdout, stderr := vramCommand(t, "bench", "-driver", "sim", "-scenario", "kernels", "-rows", "launch,add/n=10000,matmul/n=512/fp32,start", "-json")
	require.Equal(t, exitOK, code, stderr)
	var rows []kernelbench.Row
	require.NoError(t, json.Unmarshal([]byte(stdout), &rows))
	var names []string
	for _, r := range rows {
		assert.True(t, r.Simulated, "%+v", r)
		assert.Empty(t, r.Verdict, "the simulated device passes nothing")
		assert.Equal(t, r.Missing == "", r.Micros > 0, "%+v", r)
		names = append(names, r.Row+" "+r.Path)
	}
	for _, want := range []string{
		"launch raw", "launch launched", "add/n=10000 launched", "add/n=10000 graph", "matmul/n=512/fp32 own graph", "matmul/n=512/fp32 library launched",
		"start/kernels=50/threads=1 launched", "start/kernels=50/threads=4 launched", "start/kernels=50/stored launched",
	} {
		assert.Contains(t, names, want)
	}
}

func TestKernelsArePrinted(t *testing.T) {
	t.Setenv("VRAM_CUBLASLT", "off")
	code, stdout, stderr := vramCommand(t, "bench", "-driver", "sim", "-scenario", "kernels", "-rows", "sum/n=1000000,matmul/n=1024/bf16")
	require.Equal(t, exitOK, code, stderr)
	for _, want := range []string{"sum/n=1000000", "own graph", "tensor_bf16", "Times are of the interpreter", "missing: matmul/n=1024/bf16, library launched", "4.00"} {
		assert.Contains(t, stdout, want)
	}
	for line := range strings.Lines(stdout) {
		assert.LessOrEqual(t, len([]rune(strings.TrimRight(line, "\n"))), mostColumns)
	}
}

// The help does not list the command start.
func TestAStartIsHidden(t *testing.T) {
	_, help, _ := vramCommand(t, "-h")
	assert.NotContains(t, help, "Make kernels ready")
	code, stdout, stderr := vramCommand(t, "start", "-driver", "sim", "-kernels", "5", "-threads", "2")
	require.Equal(t, exitOK, code, stderr)
	assert.Contains(t, stdout, `"compiled": 5`)
}

func TestAStartThatFailsIsAnError(t *testing.T) {
	t.Setenv(asProgram, "1")
	_, err := (&benchCmd{}).startProcess(t.Context(), kernelbench.StartOptions{Threads: 1})
	require.ErrorContains(t, err, "at least one kernel")
	t.Setenv("VRAM_DRIVER", "nonsense")
	_, err = (&benchCmd{}).startProcess(t.Context(), kernelbench.StartOptions{Kernels: 1, Threads: 1})
	require.ErrorContains(t, err, "VRAM_DRIVER")
}
