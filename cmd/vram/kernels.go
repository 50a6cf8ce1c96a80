package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/cpu"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/lab/kernelbench"
)

// scenarioKernels is measured alone, and has rows of its own. It is not part of all.
const scenarioKernels = "kernels"

// errAlone refuses the scenario kernels together with others.
var errAlone = errors.New("the scenario kernels is measured by itself")

// asksForKernels reports whether the flags name the scenario kernels.
func (c *benchCmd) asksForKernels() (bool, error) {
	if !slices.Contains(c.Scenario, scenarioKernels) {
		if len(c.Rows) > 0 {
			return false, fmt.Errorf("--rows %s: only with --scenario kernels", strings.Join(c.Rows, ","))
		}
		return false, nil
	}
	if len(c.Scenario) > 1 {
		return true, errAlone
	}
	return true, nil
}

// runKernels measures launches, operations on tensors, and starts.
func (c *benchCmd) runKernels(p *program) error {
	options := kernelbench.Options{Rows: c.Rows, Repetitions: c.Repetitions, RepetitionTime: c.Time}
	if err := options.Check(); err != nil {
		return &usageError{err}
	}
	cfg, newDriver, err := c.device(p)
	if err != nil {
		return err
	}
	options.Config, options.NewDriver, options.Start = cfg, executing(newDriver), c.startProcess
	rows, err := kernelbench.Run(p.ctx, options)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, rows)
	}
	return printKernels(p, rows)
}

// executing returns a driver that executes kernels: a simulated one needs bytes for that, and package cpu's is such a one.
func executing(newDriver func() cudadrv.Driver) func() cudadrv.Driver {
	return func() cudadrv.Driver {
		driver := newDriver()
		switch driver.(type) {
		case *sim.Driver, *cpu.Driver: // small shapes, and results are compared
			return kernelbench.SimulatedDriver()
		}
		return driver
	}
}

// startProcess runs this program's command start in a new process, without the driver's own cache.
func (c *benchCmd) startProcess(ctx context.Context, o kernelbench.StartOptions) (took kernelbench.Start, err error) {
	path, err := os.Executable()
	if err != nil {
		return took, err
	}
	args := []string{"start", "--kernels", strconv.Itoa(o.Kernels), "--threads", strconv.Itoa(o.Threads), "--store", o.Folder}
	if c.Driver != "" { // else the new process reads the environment, too
		args = append(args, "--driver", string(c.Driver))
	}
	command := exec.CommandContext(ctx, path, args...) //nolint:gosec // this program
	command.Env = append(os.Environ(), "CUDA_CACHE_DISABLE=1", "VRAM_KERNEL_STORE="+o.Folder)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	if err := command.Run(); err != nil {
		return took, fmt.Errorf("a start of %s: %w: %s", path, err, errs.String())
	}
	return took, json.Unmarshal(out.Bytes(), &took)
}

// startCmd implements the command start, which the scenario kernels runs in a new process.
type startCmd struct {
	deviceFlags

	Kernels int    `default:"50" help:"How many kernels it makes ready."`
	Threads int    `default:"1" help:"How many threads compile."`
	Store   string `help:"The folder of the store; without it, nothing is kept."`
}

// Run compiles the kernels and prints the time.
func (c *startCmd) Run(p *program) error {
	cfg, newDriver, err := c.device(p)
	if err != nil {
		return err
	}
	took, err := kernelbench.StartHere(p.ctx, cfg, executing(newDriver)(), kernelbench.StartOptions{Kernels: c.Kernels, Threads: c.Threads, Folder: c.Store})
	if err != nil {
		return err
	}
	return printJSON(p.stdout, took)
}

func printKernels(p *program, rows []kernelbench.Row) error {
	t := newTable(2, "row", "path", "µs", "p10..p90", "target µs", "verdict", "GB/s", "TFLOP/s", "clock", "allocs/op", "by")
	var reasons []string
	missing := map[string][]string{}
	for _, r := range rows {
		if r.Missing != "" {
			t.add(table.Row{r.Row, r.Path, "", "", above0(r.TargetMicros, 2), "missing", "", "", "", "", ""})
			if missing[r.Missing] == nil {
				reasons = append(reasons, r.Missing)
			}
			missing[r.Missing] = append(missing[r.Missing], r.Row+", "+r.Path)
			continue
		}
		t.add(table.Row{
			r.Row, r.Path, decimals(r.Micros, 2), decimals(r.P10, 2) + ".." + decimals(r.P90, 2), above0(r.TargetMicros, 2), r.Verdict,
			above0(r.GBPerSecond, 0), above0(r.TFlops, 1), r.Clock, decimals(r.AllocsPerOp, 2), r.By,
		})
	}
	text := "launched: one after the other; graph: a node of a graph. wall: the host's clock, event: the device's.\n" +
		"rotated: operands are not in the device's cache. start: from the open device to the loaded kernels, without the driver's cache."
	if len(rows) > 0 && rows[0].Simulated {
		text = "Simulated device: small shapes, and results were compared. Times are of the interpreter, and no claim.\n" + text
	}
	for _, reason := range reasons {
		text += "\nmissing: " + strings.Join(missing[reason], "; ") + ": " + strings.ReplaceAll(reason, "\n", " ")
	}
	t.caption("%s", text)
	return t.print(p.stdout)
}

// above0 formats a figure; 0 is a row without it, and empty.
func above0(value float64, digits int) string {
	if value == 0 {
		return ""
	}
	return decimals(value, digits)
}
