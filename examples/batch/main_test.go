package main

import (
	"bytes"
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/examples/internal/kernels"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/vramtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// The program from its command line to its exit code.
func TestProgram(t *testing.T) {
	t.Setenv("VRAM_MEMORY_LIMIT", "")
	t.Setenv("VRAM_DRIVER", "sim") // also where there is a GPU
	small := []string{"-steps", "3"}
	for name, c := range map[string]struct {
		args   []string
		env    string // of VRAM_MEMORY_LIMIT
		code   int
		stdout []string
		stderr string
	}{
		"a run": {
			args: small, code: command.OK,
			stdout: []string{
				"simulated GPU, driver sim\n148 parameters of 475 MiB in all, 3 steps in each manner\n", "│ one by one │     1 │     148 │     148 │",
				"│ in batches │     1 │", "\npeaks: ",
			},
		},
		"little memory":         {args: append(small, "-limit", "2GB"), code: command.OK, stdout: []string{"in batches"}},
		"variables":             {args: small, env: "1MB", code: command.Failed, stderr: "batch: vram: "},
		"flag over env":         {args: append(small, "-limit", "3GB"), env: "1MB", code: command.OK},
		"help":                  {args: []string{"-h"}, code: command.OK, stderr: "-limit"},
		"unknown flag":          {args: []string{"-nothing"}, code: command.Misused, stderr: "batch: flag provided but not defined: -nothing\n"},
		"argument":              {args: []string{"gpt2"}, code: command.Misused, stderr: `batch: "gpt2": there are no arguments, only flags` + "\n"},
		"no steps":              {args: []string{"-steps", "0"}, code: command.Misused, stderr: "batch: -steps is 0, want 1 or more\n"},
		"variable":              {env: "much", code: command.Misused, stderr: `VRAM_MEMORY_LIMIT is "much"`},
		"driver":                {args: []string{"-driver", "none"}, code: command.Misused, stderr: "-driver: "},
		"limit":                 {args: []string{"-limit", "much"}, code: command.Misused, stderr: "-limit: "},
		"no such device":        {args: []string{"-device", "7"}, code: command.Failed, stderr: "Ordinal is 7, the driver has 1"},
		"too little for a step": {args: append(small, "-limit", "1.8GB"), code: command.Failed, stderr: "step 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("VRAM_MEMORY_LIMIT", c.env)
			var stdout, stderr bytes.Buffer
			assert.Equal(t, c.code, run(t.Context(), c.args, &stdout, &stderr), "%s%s", &stdout, &stderr)
			for _, text := range c.stdout {
				assert.Contains(t, stdout.String(), text)
			}
			assert.Contains(t, stderr.String(), c.stderr)
			if c.code == command.OK && c.stderr == "" {
				assert.Empty(t, stderr.String())
			}
		})
	}
}

// An interrupt ends the run between two parts of a step, and all memory is returned.
func TestInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout, stderr bytes.Buffer
	assert.Equal(t, command.Interrupted, run(ctx, []string{"-driver", "sim"}, &stdout, &stderr))
	assert.Equal(t, "batch: interrupted; all memory is given back\n", stderr.String())
}

// rig is an optimizer on a device under the hazard checker, with a limit of limitBytes; 0: none.
type rig struct {
	*optimizer
	device  *vram.Device
	checker *hazard.Driver
}

func newRig(t *testing.T, together bool, limitBytes int64) *rig {
	t.Helper()
	config, checked := vramtest.Watch(vram.Config{Driver: sim.New(sim.Config{}), LimitBytes: limitBytes})
	config.Driver = checked // the program opens one driver for all
	device, err := vram.Open(config)
	require.NoError(t, err)
	view, err := kernels.OpenView(checked, 0)
	require.NoError(t, err)
	s, err := device.NewStream()
	require.NoError(t, err)
	o, err := newOptimizer(view, s, together, model{layers: 4, hidden: 256, vocabulary: 5000, tokens: 128}.parameters())
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, o.close())
		require.NoError(t, device.Close(), "no buffer is left")
		require.NoError(t, view.Close())
	})
	return &rig{o, device, checked}
}

// In a batch tensors of equal size are neighbours: in every step there are fewer memsets and kernels than sizes of spans and
// tensors, and no kernel is a hazard.
func TestABatchLiesSideBySide(t *testing.T) {
	for _, together := range []bool{false, true} {
		r := newRig(t, together, 0)
		for range 5 {
			require.NoError(t, r.step(t.Context()))
			assert.Equal(t, 1, r.figures.partCount)
			if together {
				assert.Less(t, r.figures.memsetCount, len(r.tensors)/3)
				assert.Less(t, r.figures.kernelCount, len(r.tensors)/2)
			} else {
				assert.Equal(t, len(r.tensors), r.figures.memsetCount)
			}
		}
		require.NoError(t, r.checker.Checker(0).Err())
	}
}

// Without room for all gradients at once a step runs in parts, and is complete.
func TestWhereMemoryIsShort(t *testing.T) {
	for _, together := range []bool{false, true} {
		r := newRig(t, together, 0)
		live, stepBytes := r.device.Stats().LiveBytes, int64(0)
		for _, p := range r.tensors {
			stepBytes += p.activationBytes + p.bytes/2
		}
		limited := newRig(t, together, live+stepBytes)
		for range 3 {
			require.NoError(t, limited.step(t.Context()))
			assert.Greater(t, limited.figures.partCount, 1)
			assert.Equal(t, live, limited.device.Stats().LiveBytes, "parameters and moments")
		}
		require.NoError(t, limited.checker.Checker(0).Err())
	}
}

// The checker reports an update that is submitted after its gradients were freed.
func TestAnUpdateBehindTheFreeIsAHazard(t *testing.T) {
	r := newRig(t, true, 0)
	last := len(r.tensors)
	require.NoError(t, r.forward(last))
	require.NoError(t, r.stream.AllocBatch(r.gradients, r.bytes))
	kept := append([]vram.Buffer(nil), r.gradients...)
	require.NoError(t, r.backward(0, last))
	require.NoError(t, r.release(r.gradients))
	copy(r.gradients, kept)
	require.NoError(t, r.update(0, last))
	clear(r.gradients)
	reports, _ := r.checker.Checker(0).Reports()
	require.NotEmpty(t, reports)
	assert.Equal(t, hazard.UseAfterFree, reports[0].Kind)
	assert.Contains(t, reports[0].Now.Place.Trace(""), "optimizer).update")
}

// A step that a context ends leaves only parameters and moments live.
func TestAStepThatIsCutShort(t *testing.T) {
	r := newRig(t, true, 0)
	live := r.device.Stats().LiveBytes
	ctx, end := context.WithCancel(t.Context())
	end()
	require.ErrorIs(t, r.step(ctx), context.Canceled)
	assert.Equal(t, live, r.device.Stats().LiveBytes)
}
