package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/hazard"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/examples/internal/command"
	"github.com/go-vram/vram/internal/recoveredtest"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/vramtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// withoutVariables empties the variables that the test was started with.
func withoutVariables(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "VRAM_") {
			t.Setenv(name, "")
		}
	}
}

// The program from its command line to its exit code, where there is no terminal.
func TestProgram(t *testing.T) {
	withoutVariables(t)
	t.Setenv("VRAM_DRIVER", "sim") // also where there is a GPU
	for name, c := range map[string]struct {
		args   []string
		env    string // of VRAM_FOOTPRINT
		code   int
		stdout []string
		stderr string
	}{
		"a run": {
			args: []string{"-steps", "2", "-speed", "8"}, code: command.OK,
			stdout: []string{
				"simulated GPU, driver sim\n", "4 stages, 8 micro-batches, 2 steps, speed 8\n", "\nstep 2/2  ", "\n2 steps in ",
				"\nAllocator\n", "\nMemory when the stages had stopped\n", "\nWaiting\n",
			},
		},
		"variables":     {args: []string{"-steps", "1", "-speed", "20"}, env: "fast", code: command.OK, stdout: []string{"footprint fast\n"}},
		"flag over env": {args: []string{"-steps", "1", "-speed", "20", "-footprint", "balanced"}, env: "fast", code: command.OK, stdout: []string{"footprint balanced\n"}},
		"two devices": {
			args: []string{"-steps", "2", "-speed", "20", "-devices", "2"}, code: command.OK,
			stdout: []string{"simulated GPU, driver sim\n", "\n2 steps in "},
		},
		"no devices":     {args: []string{"-devices", "0"}, code: command.Misused, stderr: "pipeline: -devices is 0, want 1 to 4\n"},
		"help":           {args: []string{"-h"}, code: command.OK, stderr: "-limit"},
		"unknown flag":   {args: []string{"-nothing"}, code: command.Misused, stderr: "pipeline: flag provided but not defined: -nothing\n"},
		"argument":       {args: []string{"trace"}, code: command.Misused, stderr: `pipeline: "trace": there are no arguments, only flags` + "\n"},
		"no steps":       {args: []string{"-steps", "0"}, code: command.Misused, stderr: "pipeline: -steps is 0, want 1 to 100000\n"},
		"no speed":       {args: []string{"-speed", "NaN"}, code: command.Misused, stderr: "pipeline: -speed is NaN, want 0.01 to 1000\n"},
		"variable":       {env: "tiny", code: command.Misused, stderr: `VRAM_FOOTPRINT is "tiny", want balanced, lean or fast`},
		"footprint":      {args: []string{"-footprint", "tiny"}, code: command.Misused, stderr: "-footprint: "},
		"driver":         {args: []string{"-driver", "none"}, code: command.Misused, stderr: "-driver: "},
		"limit":          {args: []string{"-limit", "much"}, code: command.Misused, stderr: "-limit: "},
		"no such device": {args: []string{"-device", "7"}, code: command.Failed, stderr: "Ordinal is 7, the driver has 1"},
		"no forwards":    {args: []string{"-ahead", "-1"}, code: command.Misused, stderr: "pipeline: -ahead is -1, want 0 or more\n"},
		"patience": {
			args: []string{"-steps", "2", "-speed", "20", "-wait", "-ahead", "0", "-limit", "0.86x"}, code: command.OK,
			stdout: []string{"\nlimit 8.33 GiB, ", "\n2 steps in ", "\nfor what others had: "},
		},
		"nobody to wait for": {
			args: []string{"-steps", "3", "-speed", "20", "-wait", "-ahead", "0", "-limit", "0.75x"}, code: command.Failed,
			stderr: " would be a deadlock: no holder of memory can proceed: stream ",
		},
		"too little for the parameters": {
			args: []string{"-limit", "1GB"}, code: command.Failed, stderr: "parameters: vram: out of memory",
		},
		"too little for a step": {
			args: []string{"-limit", "6GB", "-speed", "20"}, code: command.Failed, stderr: "step 1, ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("VRAM_FOOTPRINT", c.env)
			var stdout, stderr bytes.Buffer
			code := run(t.Context(), c.args, &stdout, &stderr)
			assert.Equal(t, c.code, code, "%s%s", &stdout, &stderr)
			for _, text := range c.stdout {
				assert.Contains(t, stdout.String(), text)
			}
			assert.Contains(t, stderr.String(), c.stderr)
			if c.code == command.OK && c.stderr == "" {
				assert.Empty(t, stderr.String())
			}
			for line := range strings.Lines(stdout.String()) {
				if !strings.HasPrefix(line, "step ") { // of the display without a terminal
					assert.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), 60, "a line that a narrow terminal breaks: %s", line)
				}
			}
		})
	}
}

// An interrupt ends the run between two operations: it prints the figures so far and returns all memory.
func TestInterrupt(t *testing.T) {
	withoutVariables(t)
	ctx, interrupt := context.WithCancel(t.Context())
	out := &watcher{text: "step ", seen: interrupt}
	var stderr bytes.Buffer
	code := run(ctx, []string{"-steps", "100000", "-driver", "sim"}, out, &stderr)
	assert.Equal(t, command.Interrupted, code)
	assert.Equal(t, "pipeline: interrupted; all memory is given back\n", stderr.String())
	assert.Contains(t, out.String(), "\nAllocator\n")
}

// watcher is a writer that reports when a text is written.
type watcher struct {
	bytes.Buffer
	text string
	seen func()
}

func (w *watcher) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(w.text)) {
		w.seen()
	}
	return w.Buffer.Write(p)
}

// steppedTraining opens a training under the hazard checker, on a device whose time only advances by waiting.
func steppedTraining(t *testing.T, stepCount int) (*training, *sim.Device) {
	t.Helper()
	return steppedWith(t, options{stepCount: stepCount, mostAhead: fullAhead})
}

// steppedWith is steppedTraining with options.
func steppedWith(t *testing.T, o options) (*training, *sim.Device) {
	t.Helper()
	driver := sim.New(sim.Config{})
	config, checked := vramtest.Watch(vram.Config{Driver: driver})
	config.Driver = checked // the program opens one driver for all
	t.Cleanup(func() { assert.NoError(t, checked.Checker(0).Err()) })
	o.speed, o.config = 1, config
	tr, err := open(t.Context(), o)
	require.NoError(t, err)
	return tr, driver.Device(0)
}

// forgetful is a driver whose streams do not wait for events.
type forgetful struct{ *hazard.Driver }

func (f forgetful) Open(ordinal int) (cudadrv.Device, error) {
	device, err := f.View(ordinal)
	return &forgetfulDevice{device}, err
}

type forgetfulDevice struct{ *hazard.Device }

func (*forgetfulDevice) StreamWaitEvent(cudadrv.Stream, cudadrv.Event) error { return nil }

// The checker reports a stage that copies its neighbour's parcel without waiting for it.
func TestAMissingWaitIsAHazard(t *testing.T) {
	t.Parallel()
	config, checked := vramtest.Watch(vram.Config{Driver: sim.New(sim.Config{})})
	config.Driver = forgetful{checked}
	tr, err := open(t.Context(), options{stepCount: 1, speed: 1, mostAhead: fullAhead, config: config})
	require.NoError(t, err)
	require.NoError(t, tr.run(t.Context()))
	require.NoError(t, tr.close())
	reports, _ := checked.Checker(0).Reports()
	require.NotEmpty(t, reports)
	assert.Equal(t, hazard.Race, reports[0].Kind)
	assert.Contains(t, reports[0].Now.Place.Trace(""), "inlet).receive")
	assert.Contains(t, reports[0].Before.Place.Trace(""), "stage).play")
}

// The table has the recording's counts, and nothing is live when the training is closed.
func TestTrainingCountsWhatTheRecordingAsks(t *testing.T) {
	t.Parallel()
	const steps = 4
	tr, _ := steppedTraining(t, steps)
	var perStep [3]int // allocations of a recorded step
	r := tr.stages[0].recording
	for n := range r.steps {
		for s := range stageCount {
			for _, o := range r.steps[n][s].operations {
				perStep[n] += len(o.batchBytes)
				for _, c := range o.chunks {
					perStep[n] += len(c.allocs)
				}
			}
		}
		perStep[n] += microBatchCount + 2*(stageCount-1)*microBatchCount // received buffers
	}
	require.NoError(t, tr.run(t.Context()))
	stats := tr.device.Stats()
	params, states := 96, 192
	assert.Equal(t, params+states+perStep[0]+perStep[1]+perStep[2]+perStep[0], int(stats.AllocCount))
	assert.Equal(t, params+states, int(stats.AllocCount-stats.FreeCount), "parameters and the optimizer's state stay")
	assert.Equal(t, steps, tr.stepCount())
	assert.Positive(t, tr.firstStep.DriverCalls)
	assert.LessOrEqual(t, tr.firstStep.AllocCount, stats.AllocCount)
	for s, st := range tr.stages {
		var compute time.Duration
		for n := range steps {
			for _, o := range r.steps[n%3][s].operations {
				compute += o.compute()
			}
		}
		assert.LessOrEqual(t, time.Duration(st.computed.Load()), compute)
		assert.Greater(t, time.Duration(st.computed.Load()), compute*9/10, "all but rounding and gaps without a kernel")
		assert.Equal(t, int64(steps*(2*microBatchCount+1)), st.begunCount.Load())
	}
	assert.GreaterOrEqual(t, tr.elapsed, 11*steps*2*time.Millisecond, "the pipeline takes 11 slots of a forward and a backward")
	require.NoError(t, tr.close(), "no buffer is left")
}

// Patient stages wait for memory of another stream, and continue when it is freed.
func TestStagesWaitForMemory(t *testing.T) {
	t.Parallel()
	tr, _ := steppedWith(t, options{stepCount: 2, patient: true, limit: replay.Limit{TimesPeak: 1}})
	other, err := tr.device.NewStream()
	require.NoError(t, err)
	before := tr.device.Stats()
	ballast, err := other.Alloc(before.LimitBytes - before.ReservedBytes - 200<<20) // a forward has more
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- tr.run(t.Context()) }()
	for tr.device.Stats().Waits.Waiting == 0 {
		select {
		case err := <-ended:
			require.Fail(t, "nobody waited", "%v", err)
		default:
			runtime.Gosched()
		}
	}
	assert.Zero(t, tr.stepCount())
	require.NoError(t, ballast.Free())
	require.NoError(t, other.Trim(t.Context()))
	require.NoError(t, <-ended)
	assert.Equal(t, 2, tr.stepCount())
	waits := tr.device.Stats().Waits
	assert.Positive(t, waits.Count)
	assert.Contains(t, tr.report(), fmt.Sprintf("\nfor what others had: %d waits, longest ", waits.Count))
	require.NoError(t, tr.close(), "no buffer is left")
}

// A failing stage stops the others, and the run returns its error.
func TestOneFailureStopsAll(t *testing.T) {
	t.Parallel()
	tr, _ := steppedTraining(t, 50)
	broken := &tr.stages[2].recording.steps[1][2]
	at := turn{Kind: forward, MicroBatch: 5}
	o := broken.operations[at]
	o.chunks = append([]chunk{{allocs: []request{{buffer: 0, bytes: -1}}}}, o.chunks...)
	broken.operations[at] = o
	err := tr.run(t.Context())
	require.ErrorIs(t, err, vram.ErrNegative)
	require.ErrorContains(t, err, "stage 2, step 2, F5: ")
	require.NoError(t, tr.close(), "no buffer is left")
}

// The bars of a stopped run keep their lengths; the bars of a finished run are full.
func TestBars(t *testing.T) {
	t.Parallel()
	tr, _ := steppedTraining(t, 1)
	draw := func(colored bool) string {
		var out bytes.Buffer
		d := &display{training: tr, out: &out, stop: make(chan struct{}), stopped: make(chan struct{})}
		go d.bars(colored)
		d.end()
		return out.String()
	}
	assert.Contains(t, draw(false), "stage 0 ")
	require.NoError(t, tr.run(t.Context()))
	plain := draw(false)
	assert.NotContains(t, plain, "\x1b[3", "no color")
	for s := range stageCount {
		assert.Contains(t, plain, fmt.Sprintf("stage %d  %s  100%% opt busy ", s, strings.Repeat("█", mostBarColumns)))
	}
	assert.Contains(t, plain, "memory  live 4.50 GiB, reserved ")
	assert.Contains(t, plain, "step 1/1  ")
	assert.Contains(t, draw(true), "\x1b[36m")
	require.NoError(t, tr.close())
}
