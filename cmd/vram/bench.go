package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/lab/bench"
)

// benchCmd implements the command bench.
type benchCmd struct {
	deviceFlags
	Scenario     []string      `default:"all" placeholder:"NAME" help:"all, or some of ${scenarios} (default all); or kernels."`
	Rows         []string      `placeholder:"NAME" help:"Of kernels: the prefix of the rows' names (default all)."`
	Impl         []string      `default:"all" placeholder:"NAME" help:"all, or some of vram, mutex (default all)."`
	Repetitions  int           `default:"${repetitions}" placeholder:"N" help:"Of each measurement; its figure is their median (default ${repetitions})."`
	Time         time.Duration `default:"${time}" placeholder:"DURATION" help:"Of each repetition (default ${time})."`
	Samples      int           `default:"${samples}" placeholder:"N" help:"Of each latency pass (default ${samples})."`
	CPUProfile   string        `name:"cpuprofile" placeholder:"FILE" help:"Write a CPU profile."`
	MutexProfile string        `name:"mutexprofile" placeholder:"FILE" help:"Write a profile of contended mutexes during the measurements."`
	BlockProfile string        `name:"blockprofile" placeholder:"FILE" help:"Write a profile of blocked goroutines during the measurements."`
	JSON         bool          `name:"json" help:"Print an array of rows."`
}

// Validate reports invalid flags.
func (c *benchCmd) Validate() error {
	if c.Repetitions < 1 {
		return fmt.Errorf("--repetitions %d: want at least 1", c.Repetitions)
	}
	if c.Samples < 1 {
		return fmt.Errorf("--samples %d: want at least 1", c.Samples)
	}
	if c.Time <= 0 {
		return fmt.Errorf("--time %v: want more than 0", c.Time)
	}
	_, err := c.asksForKernels()
	return err
}

// Run measures, with the profiles around it.
func (c *benchCmd) Run(p *program) error {
	if kernels, _ := c.asksForKernels(); kernels {
		return c.runKernels(p)
	}
	options := bench.Options{
		Scenarios: c.Scenario, Impls: c.Impl, Repetitions: c.Repetitions, RepetitionTime: c.Time, Samples: c.Samples,
	}
	if err := options.Check(); err != nil {
		return &usageError{err}
	}
	cfg, newDriver, err := c.device(p)
	if err != nil {
		return err
	}
	options.Config, options.NewDriver = cfg, newDriver
	profiles, err := startProfiles(c.CPUProfile, c.MutexProfile, c.BlockProfile)
	if err != nil {
		return &usageError{err}
	}
	options.Begin, options.End = profiles.begin, profiles.end
	rows, err := bench.Run(p.ctx, options)
	if err := errors.Join(err, profiles.stop()); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.stdout, rows)
	}
	_, modelled := newDriver().(*sim.Driver)
	return printRows(p, rows, modelled)
}

func printRows(p *program, rows []bench.Row, modelled bool) error {
	calibration := bench.Calibration(rows)
	t := newTable(5, "scenario", "impl", "size", "n", "goroutines", "ns/op", "× calibration", "allocs/op",
		"p50 ns", "p99 ns", "p99.9 ns", "node visits/op", driverTime("driver ns/op", modelled), "driver calls/op")
	for _, r := range rows {
		size := ""
		if r.SizeBytes > 0 {
			size = bytesText(r.SizeBytes)
		}
		t.add(table.Row{
			r.Scenario, r.Impl, size, r.Count, r.Goroutines, decimals(r.NsPerOp, 1), decimals(r.NsPerOp/calibration, 2),
			decimals(r.AllocsPerOp, 4), decimals(r.P50Nanos, 0), decimals(r.P99Nanos, 0), decimals(r.P999Nanos, 0),
			optional(r.NodeVisitsPerOp, 1), optional(r.DriverNsPerOp, 0), optional(r.DriverCallsPerOp, 3),
		})
	}
	t.caption("An op is an allocation and a free (warmup: an allocation), wall time over all goroutines.\n"+
		"batch: of one buffer; its percentiles are of the allocation alone, over the buffers of a batch.\n"+
		"paced: without the work; its percentiles are of one request, an allocation or a free.%s", timesNote(modelled))
	return t.print(p.stdout)
}
