package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/sim/ptxrun"
	"github.com/go-vram/vram/internal/kept"
	"github.com/go-vram/vram/internal/launchlog"
	"github.com/go-vram/vram/internal/recoveredtest"
)

var update = flag.Bool("update", false, "write testdata/list.txt again")

// runs says that the process is the command.
const runs = "VRAM_MEASURE"

func TestMain(m *testing.M) {
	if os.Getenv(runs) != "" {
		main()
		return
	}
	recoveredtest.Main(m)
}

func newMeasurer(t *testing.T, with ...kernel.Option) *measurer {
	t.Helper()
	return newMeasurerOn(t, sim.New(sim.Config{Bytes: true, Executor: ptxrun.New(ptxrun.Config{})}), with...)
}

func newMeasurerOn(t *testing.T, driver cudadrv.Driver, with ...kernel.Option) *measurer {
	t.Helper()
	dev, err := vram.Open(vram.Config{Driver: driver})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	stream, err := dev.NewStream()
	require.NoError(t, err)
	c, err := cuda.NewContext(stream)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	o, err := ops.New(c, with...)
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, c.Synchronize(context.Background()))
		assert.NoError(t, o.Close())
	})
	return &measurer{c: c, o: o, begin: time.Now(), limit: time.Hour}
}

// The list has these operations on these shapes; testdata has each, with its launches on a small shape.
func TestTheList(t *testing.T) {
	const file = "testdata/list.txt"
	driver, log := launchlog.New()
	m := newMeasurerOn(t, driver)
	var text strings.Builder
	for _, part := range parts() {
		for _, op := range part.operations {
			small := []int{4, 8}[:len(part.shape)]
			require.NoError(t, m.one(op, part.of, small))
			require.NoError(t, m.c.Synchronize(t.Context()))
			fmt.Fprintf(&text, "%s %v %v: %s\n", op.name, part.of, part.shape, log.Take())
		}
	}
	kept.Text(t, *update, file, text.String())
}

// Whichever launch or allocation of a measured operation fails is an error of the command, with the name.
func TestFailuresAreErrors(t *testing.T) {
	driver, _ := launchlog.New()
	faults := fault.Wrap(driver)
	m := newMeasurerOn(t, faults)
	failed := 0
	for _, op := range append(append(elementwise(), rows()...), whole()...) {
		require.NoError(t, m.one(op, tensor.Float32, []int{4, 8}), op.name)
		for n, fails := uint64(1), true; fails; n++ {
			before := faults.Injected()
			require.NoError(t, faults.Add(fault.Rule{Func: "cuLaunchKernel", First: n, Result: cudadrv.Unknown}))
			err := m.one(op, tensor.Float32, []int{4, 8})
			faults.Clear()
			if fails = faults.Injected() > before; fails {
				require.ErrorIs(t, err, cudadrv.Unknown, "%s: launch %d", op.name, n)
				failed++
			}
		}
	}
	assert.GreaterOrEqual(t, failed, 25)
	require.NoError(t, faults.Add(fault.Rule{Func: "cuLaunchKernel", Result: cudadrv.Unknown}))
	err := m.all()
	faults.Clear()
	require.ErrorContains(t, err, "add float32 [1000000]: ")
}

// Whichever call of the driver fails, the command fails by it, or goes without.
func TestRunFails(t *testing.T) {
	failed := 0
	for n, fails := uint64(1), true; fails; n++ {
		driver, _ := launchlog.New()
		faults := fault.Wrap(driver)
		require.NoError(t, faults.Add(fault.Rule{First: n, Result: cudadrv.Unknown}))
		err := run(faults, -time.Second)
		if fails = faults.Injected() > 0; err != nil {
			require.True(t, fails)
			require.ErrorIs(t, err, cudadrv.Unknown)
			failed++
		}
	}
	assert.Greater(t, failed, 3)
	driver, _ := launchlog.New()
	faults := fault.Wrap(driver)
	require.NoError(t, faults.Add(fault.Rule{Func: "cuLaunchKernel", Result: cudadrv.Unknown}))
	require.ErrorContains(t, run(faults, time.Hour), "add float32 [1000000]: ")
	m := newMeasurerOn(t, driver)
	var none *vram.SizeError
	require.ErrorAs(t, m.one(elementwise()[0], tensor.Float32, []int{1 << 38}), &none)
}

// The rule's variant is the one that is the reference; the best is the first in rank, or the rule's where none is.
func TestRuleAndBest(t *testing.T) {
	slow := tune.Row{Variant: "slow", Reference: true, State: tune.Verified, Median: 30, Rounds: 3}
	fast := tune.Row{Variant: "fast", State: tune.Verified, Median: 10, Rounds: 3}
	for _, rows := range [][]tune.Row{{slow, fast}, {fast, slow}} {
		rule, best := ruleAndBest(rows)
		assert.Equal(t, "slow", rule.Variant)
		assert.Equal(t, "fast", best.Variant)
	}
	rule, best := ruleAndBest([]tune.Row{slow})
	assert.Equal(t, []string{"slow", "slow"}, []string{rule.Variant, best.Variant})
	rule, best = ruleAndBest(nil)
	assert.Equal(t, []string{"", ""}, []string{rule.Variant, best.Variant})
}

// Every operation of the list runs, on both types.
func TestTheListRuns(t *testing.T) {
	m := newMeasurer(t)
	for _, of := range []tensor.Type{tensor.Float32, tensor.BFloat16} {
		for _, op := range append(append(elementwise(), rows()...), whole()...) {
			require.NoError(t, m.one(op, of, []int{4, 8}), op.name)
		}
	}
	assert.Empty(t, m.o.Kernels().Tuned().Devices())
}

func TestWhatIsMeasuredIsReportedOnce(t *testing.T) {
	m := newMeasurer(t, kernel.WithTuning(kernel.Tuning{Mode: kernel.TuneNow, Rounds: 1, RotateBytes: 1 << 12, Limit: time.Hour}))
	for range 2 {
		require.NoError(t, m.one(elementwise()[0], tensor.Float32, []int{40}))
		m.report("add")
	}
	assert.Equal(t, 1, m.measured)
	read, err := tune.Parse(m.o.Kernels().Tuned().String())
	require.NoError(t, err)
	assert.Len(t, read.Devices(), 1)
	m.limit = 0
	require.NoError(t, m.all())
	assert.Greater(t, m.left, 50)
}
