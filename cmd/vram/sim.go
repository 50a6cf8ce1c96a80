package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/simulation"
)

// simCmd implements the command sim.
type simCmd struct {
	Seed  uint64 `default:"0" placeholder:"N" help:"The first seed (default 0)."`
	Seeds uint64 `default:"100" placeholder:"N" help:"How many seeds are played, one after the other (default 100)."`
	Steps int    `default:"3000" placeholder:"N" help:"Of each seed (default 3000)."`
}

// Validate reports invalid flags.
func (c *simCmd) Validate() error {
	if c.Seeds < 1 {
		return fmt.Errorf("--seeds %d: want at least 1", c.Seeds)
	}
	if c.Steps < 1 {
		return fmt.Errorf("--steps %d: want at least 1", c.Steps)
	}
	return nil
}

// progressInterval is the interval of progress lines. Not shorter: nobody reads them. Not longer: the command looks stuck.
const progressInterval = 10 * time.Second

// Run plays the seeds until one breaks a promise, and prints the history of that seed.
func (c *simCmd) Run(p *program) error {
	var met simulation.Report
	begin := time.Now()
	said := begin
	rate := func() float64 { return float64(met.Steps) / time.Since(begin).Seconds() }
	for n := range c.Seeds {
		if err := p.ctx.Err(); err != nil {
			return err
		}
		report, err := simulation.Run(simulation.Options{Seed: c.Seed + n, Steps: c.Steps})
		met.Add(report)
		if failure, ok := errors.AsType[*simulation.BreachError](err); ok {
			if _, err := fmt.Fprintln(p.stdout, failure); err != nil {
				return err
			}
			return fmt.Errorf("seed %d breaks a promise: %s", failure.Seed, failure.Class)
		}
		if n == 0 || time.Since(said) >= progressInterval {
			said = time.Now()
			if _, err := fmt.Fprintf(p.stderr, "sim: %d of %s, %s, %.0f steps/s\n",
				n+1, units.Count(c.Seeds, "seed"), units.Count(met.Steps, "step"), rate()); err != nil {
				return err
			}
		}
	}
	_, err := fmt.Fprintf(p.stdout, "%s of %s from %d on in %v, %.0f steps/s: no promise broken\n%s\n",
		units.Count(met.Steps, "step"), units.Count(c.Seeds, "seed"), c.Seed, time.Since(begin).Round(time.Millisecond), rate(),
		wrapped(met.String()))
	return err
}
