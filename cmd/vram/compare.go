package main

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/compare"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/internal/units"
)

// compareCmd is the command compare.
type compareCmd struct {
	deviceFlags
	A           string   `name:"a" short:"a" placeholder:"SETUP" help:"The first configuration: name=value, with commas, of ${setups}. What it does not set is as the environment has it."`
	B           string   `name:"b" short:"b" placeholder:"SETUP" help:"The second one."`
	Repetitions int      `default:"5" placeholder:"N" help:"How often each configuration is played, in turns, each time on a new device (default 5)."`
	Rounds      int      `default:"4" placeholder:"N" help:"Rounds of each repetition (default 4): the first is cold."`
	Parallel    bool     `help:"One goroutine for each stream."`
	Wait        bool     `help:"Allocations wait for the frees of other goroutines rather than fail. With --parallel."`
	JSON        bool     `name:"json" help:"Print an array of results."`
	Traces      []string `arg:"" name:"trace" help:"Files, or names of embedded traces."`
}

// Validate says which flags cannot be.
func (c *compareCmd) Validate() error {
	switch {
	case c.A == c.B:
		return errors.New("-a and -b are the same: want two configurations, as in -a footprint=lean,limit=8GB -b footprint=fast")
	case c.Repetitions < 1:
		return fmt.Errorf("--repetitions %d: want at least 1", c.Repetitions)
	case c.Rounds < 2:
		return fmt.Errorf("--rounds %d: want at least 2", c.Rounds)
	case c.Wait && !c.Parallel:
		return errors.New("--wait: want --parallel")
	}
	return nil
}

// Run compares trace by trace.
func (c *compareCmd) Run(p *program) error {
	var traces []*trace.Trace
	for _, name := range c.Traces {
		tr, err := trace.Open(name)
		if err != nil {
			return &usageError{err}
		}
		traces = append(traces, tr)
	}
	config, newDriver, err := c.device(p)
	if err != nil {
		return err
	}
	if config.Stats == vram.StatsOff {
		return &usageError{errors.New("VRAM_STATS is off: a comparison reads the statistics")}
	}
	var setups [2]compare.Setup
	for i, text := range []string{c.A, c.B} {
		if setups[i], err = compare.ParseSetup(text, config); err != nil {
			return &usageError{fmt.Errorf("-%c: %w", 'a'+i, err)}
		}
	}
	options := compare.Options{NewDriver: newDriver, Repetitions: c.Repetitions, Rounds: c.Rounds, Parallel: c.Parallel, Wait: c.Wait}
	var results []compare.Result
	for _, tr := range traces {
		r, err := compare.Run(p.ctx, tr, setups[0], setups[1], options)
		if err != nil {
			return err
		}
		results = append(results, r)
		if c.JSON {
			continue
		}
		if err := printComparison(p, &r); err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(p.stdout, results)
	}
	return nil
}

// printComparison prints a row a figure: times first, then driver calls, bytes, and the levels that served the requests.
func printComparison(p *program, r *compare.Result) error {
	t := newTable(1, r.Trace, "a", "b", "b / a")
	number := func(name string, a, b float64, text func(float64) string) {
		t.add(table.Row{name, text(a), text(b), quotient(a, b)})
	}
	spread := func(name string, a, b compare.Spread) {
		text := func(s compare.Spread) string {
			return fmt.Sprintf("%s (%s to %s)", decimals(s.Median, 1), decimals(s.Least, 1), decimals(s.Most, 1))
		}
		t.add(table.Row{name, text(a), text(b), quotient(a.Median, b.Median)})
	}
	whole := func(v float64) string { return decimals(v, 0) }
	tenths := func(v float64) string { return decimals(v, 1) }
	bytes := func(v float64) string { return units.Bytes(int64(v)) }
	share := func(v float64) string { return decimals(v, 3) }
	a, b := &r.A, &r.B
	spread("warm ns an event", a.WarmNs, b.WarmNs)
	spread("cold ns an event", a.ColdNs, b.ColdNs)
	number("driver calls, first round", float64(a.FirstDriverCalls), float64(b.FirstDriverCalls), whole)
	number("driver calls, last round", float64(a.LastDriverCalls), float64(b.LastDriverCalls), whole)
	number("driver ns an event, first", a.FirstDriverNs, b.FirstDriverNs, tenths)
	number("driver ns an event, last", a.LastDriverNs, b.LastDriverNs, tenths)
	number("peak reserved", float64(a.PeakReservedBytes), float64(b.PeakReservedBytes), bytes)
	number("efficiency", a.Efficiency, b.Efficiency, share)
	number("fragmentation at the end", a.Fragmentation, b.Fragmentation, share)
	number("cached by streams", float64(a.CachedBytes), float64(b.CachedBytes), bytes)
	number("from magazines", float64(a.Hits.Magazine), float64(b.Hits.Magazine), whole)
	number("from the stream's ranges", float64(a.Hits.Stream), float64(b.Hits.Stream), whole)
	number("from the pool", float64(a.Hits.Pool), float64(b.Hits.Pool), whole)
	number("from the driver", float64(a.Hits.Driver), float64(b.Hits.Driver), whole)
	number("waits", float64(a.WaitCount), float64(b.WaitCount), whole)
	number("out of memory", float64(a.FailedCount), float64(b.FailedCount), whole)
	t.caption("a: %s; b: %s. Driver %s, %s, %s of %s each, in turns; peak live %s. A time is a median, with the least and the most.",
		named(a.Setup), named(b.Setup), r.Driver, units.Count(r.EventCount, "event"), units.Count(r.Repetitions, "repetition"),
		units.Count(r.Rounds, "round"), units.Bytes(r.PeakLiveBytes))
	return t.print(p.stdout)
}

func named(setup string) string {
	if setup == "" {
		return "as the environment has it"
	}
	return setup
}

// quotient is b over a; nothing where there is none.
func quotient(a, b float64) string {
	switch a {
	case b:
		return "1"
	case 0:
		return ""
	}
	return strconv.FormatFloat(b/a, 'f', 3, 64)
}
