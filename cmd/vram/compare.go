package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/baseline"
	"github.com/go-vram/vram/lab/compare"
)

// compareCmd implements the command compare.
type compareCmd struct {
	deviceFlags
	A           string        `name:"a" short:"a" placeholder:"SETUP" help:"The first configuration: name=value, with commas, of ${setups}. The environment sets the rest."`
	B           string        `name:"b" short:"b" placeholder:"SETUP" help:"The second one."`
	Repetitions int           `default:"5" placeholder:"N" help:"How often each configuration is played, in turns, each time on a new device (default 5)."`
	Rounds      int           `default:"4" placeholder:"N" help:"Rounds of each repetition (default 4): the first is cold."`
	Parallel    bool          `help:"One goroutine for each stream."`
	Wait        bool          `help:"Allocations wait for the frees of other goroutines rather than fail. With --parallel."`
	Lag         time.Duration `placeholder:"1ms" help:"Each buffer's last use occupies its stream for so long, on the simulated clock: waits= shows an effect only with it."`
	Gap         time.Duration `aliases:"work" placeholder:"5us" help:"Adds a round with so much other work before each event, and the percentiles of single events. Not with --parallel."`
	Rest        time.Duration `placeholder:"2s" help:"Pause between rounds, for background work: release= and pool-cache= show an effect only with it."`
	JSON        bool          `name:"json" help:"Print an array of results."`
	Traces      []string      `arg:"" name:"trace" help:"Files, or names of embedded traces."`
}

// Validate reports invalid flags.
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
	case c.Gap > 0 && c.Parallel:
		return fmt.Errorf("--gap %v: not with --parallel", c.Gap)
	}
	return notNegative(map[string]time.Duration{"--lag": c.Lag, "--gap": c.Gap, "--rest": c.Rest})
}

// notNegative reports a flag with a negative duration.
func notNegative(flags map[string]time.Duration) error {
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		if d := flags[name]; d < 0 {
			return fmt.Errorf("%s %v: want 0 or more", name, d)
		}
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
	if _, err := c.setups(vram.Config{}); err != nil { // before the device is printed
		return err
	}
	config, newDriver, err := c.device(p)
	if err != nil {
		return err
	}
	if config.Stats == vram.StatsOff {
		return &usageError{errors.New("VRAM_STATS is off: a comparison reads the statistics")}
	}
	setups, err := c.setups(config)
	if err != nil {
		return err
	}
	options := compare.Options{NewDriver: newDriver, Repetitions: c.Repetitions, Rounds: c.Rounds, Parallel: c.Parallel, Wait: c.Wait, Lag: c.Lag, Gap: c.Gap, Rest: c.Rest}
	hints := compare.Unseen(&setups[0], &setups[1], &options)
	var results []compare.Result
	for _, tr := range traces {
		r, err := compare.Run(p.ctx, tr, setups[0], setups[1], options)
		if err != nil {
			return err
		}
		results = append(results, r)
		if !c.JSON {
			err = printComparison(p, &r)
		}
		if err == nil && r.Identical {
			err = warnOfIdentical(p, &r, hints)
		}
		if err != nil {
			return err
		}
	}
	if c.JSON {
		return printJSON(p.stdout, results)
	}
	return nil
}

// setups parses the two configurations as changes of base.
func (c *compareCmd) setups(base vram.Config) (setups [2]compare.Setup, err error) {
	for i, text := range [...]string{c.A, c.B} {
		if setups[i], err = compare.ParseSetup(text, base); err != nil {
			return setups, &usageError{fmt.Errorf("-%c: %w", 'a'+i, err)}
		}
	}
	return setups, nil
}

// warnOfIdentical warns that only noise differs, and names flags that would show an effect.
func warnOfIdentical(p *program, r *compare.Result, hints []string) error {
	text := r.Trace + ": a and b have identical results: their different settings had no effect, and the times differ by chance"
	if len(hints) > 0 {
		text += ". " + strings.Join(hints, "; ")
	}
	_, err := fmt.Fprintf(p.stderr, "warning: %s\n", text)
	return err
}

// printComparison prints one row per figure: times first, then driver calls, bytes, and the levels that served the requests.
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
	driverNs := "driver ns an event, "
	if r.DriverModelled {
		driverNs = "modelled driver ns, "
	}
	spread("warm ns an event", a.WarmNs, b.WarmNs)
	spread("cold ns an event", a.ColdNs, b.ColdNs)
	if a.Paced != nil && b.Paced != nil {
		number("p50 ns of an event", a.P50Nanos, b.P50Nanos, whole)
		number("p99 ns of an event", a.P99Nanos, b.P99Nanos, whole)
		number("p99.9 ns of an event", a.P999Nanos, b.P999Nanos, whole)
	}
	number("driver calls, first round", float64(a.FirstDriverCalls), float64(b.FirstDriverCalls), whole)
	number("driver calls, last round", float64(a.LastDriverCalls), float64(b.LastDriverCalls), whole)
	number(driverNs+"first", a.FirstDriverNs, b.FirstDriverNs, tenths)
	number(driverNs+"last", a.LastDriverNs, b.LastDriverNs, tenths)
	number("peak reserved", float64(a.PeakReservedBytes), float64(b.PeakReservedBytes), bytes)
	number("efficiency", a.Efficiency, b.Efficiency, share)
	number("fragmentation at the end", a.Fragmentation, b.Fragmentation, share)
	number("cached by streams", float64(a.CachedBytes), float64(b.CachedBytes), bytes)
	number("from magazines", float64(a.Hits.Magazine), float64(b.Hits.Magazine), whole)
	number("from the stream's ranges", float64(a.Hits.Stream), float64(b.Hits.Stream), whole)
	number("from the pool", float64(a.Hits.Pool), float64(b.Hits.Pool), whole)
	number("from the driver", float64(a.Hits.Driver), float64(b.Hits.Driver), whole)
	number("waits", float64(a.WaitCount), float64(b.WaitCount), whole)
	number("out of memory", float64(a.FailedCount-a.DeadlockedCount), float64(b.FailedCount-b.DeadlockedCount), whole)
	number("refused as deadlocks", float64(a.DeadlockedCount), float64(b.DeadlockedCount), whole)
	t.caption("a: %s; b: %s. Driver %s, %s, %s of %s each, in turns; peak live %s. A time is a median, with the least and the most.%s",
		named(a.Setup), named(b.Setup), r.Driver, units.Count(r.EventCount, "event"), units.Count(r.Repetitions, "repetition"),
		units.Count(r.Rounds, "round"), units.Bytes(r.PeakLiveBytes), timesNote(r.DriverModelled))
	if err := t.print(p.stdout); err != nil {
		return err
	}
	return printBaselines(p, r)
}

// printBaselines prints one row for each way to do without vram.
func printBaselines(p *program, r *compare.Result) error {
	t := newTable(1, "without vram", "peak reserved", "efficiency", "first calls", "last calls", "first ns", "last ns", "last hits", "sizes", "failed")
	perEvent := func(round *baseline.Round) string {
		return decimals(float64(round.Driver)/float64(r.EventCount), 1)
	}
	for i := range r.Baselines {
		b := &r.Baselines[i]
		first, last := &b.Rounds[0], &b.Rounds[len(b.Rounds)-1]
		efficiency, failed := 1.0, 0
		if b.PeakReservedBytes > 0 {
			efficiency = min(1, float64(r.PeakLiveBytes)/float64(b.PeakReservedBytes))
		}
		for _, round := range b.Rounds {
			failed += round.FailedCount
		}
		t.add(table.Row{
			string(b.Way), units.Bytes(b.PeakReservedBytes), decimals(efficiency, 3), decimals(float64(first.DriverCalls), 0), decimals(float64(last.DriverCalls), 0),
			perEvent(first), perEvent(last), decimals(float64(last.Hits), 0), decimals(float64(b.SizeCount), 0), decimals(float64(failed), 0),
		})
	}
	t.caption("plain: cuMemAlloc and cuMemFree for each request; by size: a pool with a list for each exact size, which returns nothing. " +
		"In program order and without a limit; first and last are rounds, ns the time in driver calls for each event.")
	return t.print(p.stdout)
}

func named(setup string) string {
	if setup == "" {
		return "as the environment has it"
	}
	return setup
}

// quotient formats b divided by a; an empty text if a is 0.
func quotient(a, b float64) string {
	switch a {
	case 0:
		return ""
	case b:
		return "1"
	}
	return strconv.FormatFloat(b/a, 'f', 3, 64)
}
