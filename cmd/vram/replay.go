package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/lab/replay"
	"github.com/go-vram/vram/lab/replay/recorder"
	"github.com/go-vram/vram/monitor/snapshot"
)

// replayCmd implements the command replay.
type replayCmd struct {
	deviceFlags
	Rounds      int           `default:"5" placeholder:"N" help:"How often each trace is played on the same device (default 5)."`
	Footprint   footprintFlag `placeholder:"MODE" help:"fast, balanced or lean (default $$VRAM_FOOTPRINT, or balanced)."`
	Segments    string        `default:"auto" enum:"auto,vmm,plain" placeholder:"KIND" help:"auto, vmm or plain (default auto: vmm where the device has it)."`
	Waits       waitsFlag     `placeholder:"WHEN" help:"When a stream waits on the device for memory of others: never, avoid-growth or always (default $$VRAM_WAITS, or never)."`
	Jitter      shareFlag     `placeholder:"2%" help:"Share of the allocations that each round leaves out, resizes or reorders."`
	Warm        bool          `help:"Map the peak of each trace ahead, before its first round."`
	Rest        time.Duration `placeholder:"1s" help:"Pause between rounds, for background work."`
	Limit       limitFlag     `placeholder:"12GB|1.02x" help:"Most memory that may be held: bytes, or times the trace's peak live bytes."`
	MinCapacity bool          `help:"Look for the least limit, to 0.1%, at which all rounds complete."`
	Parallel    bool          `help:"One goroutine for each stream."`
	Wait        bool          `help:"Allocations wait for the frees of other goroutines rather than fail. With --parallel. With --copies, a copy whose request is refused as a deadlock frees all its buffers and restarts its round when another copy has finished one."`
	Copies      int           `default:"1" placeholder:"N" help:"How many copies of each trace are played at once, each on streams of its own (default 1). Limits are in terms of one."`
	Seed        uint64        `placeholder:"N" help:"Delay goroutines at random, by this seed. With --parallel."`
	Lag         time.Duration `placeholder:"5ms" help:"Each buffer's last use occupies its stream for so long, on the simulated clock. Its bookkeeping shows in the times."`
	Gap         time.Duration `aliases:"work" placeholder:"5us" help:"Adds a round with so much other work before each event, and the percentiles of single events. --work is the same."`
	Hazards     bool          `help:"Have kernels touch each buffer on the simulated device, and report every hazard."`
	Snapshot    string        `placeholder:"FILE" help:"Write the memory at the end of the last round, with that round's history, for PyTorch's memory viewer (pytorch.org/memory_viz)."`
	JSON        bool          `name:"json" help:"Print an array of results."`
	Traces      []string      `arg:"" name:"trace" help:"Files, or names of embedded traces."`
}

// limitFlag is a limit as text.
type limitFlag struct{ replay.Limit }

// UnmarshalText reads the limit.
func (f *limitFlag) UnmarshalText(text []byte) (err error) {
	f.Limit, err = replay.ParseLimit(string(text))
	return err
}

// footprintFlag is a mode; nil without the flag.
type footprintFlag struct{ given *vram.Footprint }

// UnmarshalText reads the mode.
func (f *footprintFlag) UnmarshalText(text []byte) error {
	mode, err := vram.ParseFootprint(string(text))
	f.given = &mode
	return wanted(text, err)
}

// waitsFlag is a policy; nil without the flag.
type waitsFlag struct{ given *vram.Waits }

// UnmarshalText reads the policy.
func (f *waitsFlag) UnmarshalText(text []byte) error {
	policy, err := vram.ParseWaits(string(text))
	f.given = &policy
	return wanted(text, err)
}

// wanted returns the error of a flag; the parser puts the flag's name before it.
func wanted(text []byte, err error) error {
	if wrong, ok := errors.AsType[*vram.ConfigError](err); ok {
		return fmt.Errorf("%q: want %s", text, wrong.Want)
	}
	return err
}

// shareFlag is a share as text.
type shareFlag float64

// UnmarshalText reads the share.
func (f *shareFlag) UnmarshalText(text []byte) error {
	share, err := replay.ParseShare(string(text))
	*f = shareFlag(share)
	return err
}

// over applies the flags to a configuration of the environment.
func (c *replayCmd) over(cfg vram.Config) (vram.Config, error) {
	if cfg.Stats == vram.StatsOff {
		return cfg, errors.New("VRAM_STATS is off: a replay reads the statistics")
	}
	if c.Waits.given != nil {
		cfg.Waits = *c.Waits.given
	}
	if c.Footprint.given != nil {
		cfg.Footprint = *c.Footprint.given
	}
	var err error
	cfg.Segments, err = vram.ParseSegments(c.Segments)
	return cfg, err
}

// Validate reports invalid flags.
func (c *replayCmd) Validate() error {
	if c.Rounds < 1 {
		return fmt.Errorf("--rounds %d: want at least 1", c.Rounds)
	}
	if err := notNegative(map[string]time.Duration{"--lag": c.Lag, "--gap": c.Gap, "--rest": c.Rest}); err != nil {
		return err
	}
	if c.Gap > 0 && c.Parallel {
		return fmt.Errorf("--gap %v: not with --parallel", c.Gap)
	}
	if (c.Wait || c.Seed != 0) && !c.Parallel {
		return errors.New("--wait and --seed: want --parallel")
	}
	if c.Copies < 1 || c.Copies > replay.MostCopies {
		return fmt.Errorf("--copies %d: want 1 to %d", c.Copies, replay.MostCopies)
	}
	if c.Snapshot != "" && (len(c.Traces) != 1 || c.Parallel || c.Copies > 1 || c.Jitter != 0 || c.MinCapacity) {
		return errors.New("--snapshot: want one trace, and neither --parallel, --copies, --jitter nor --min-capacity")
	}
	return nil
}

// Run reads all traces before it plays the first.
func (c *replayCmd) Run(p *program) error {
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
	if config, err = c.over(config); err != nil {
		return &usageError{err}
	}
	options := replay.Options{
		NewDriver: newDriver, Config: config, Rounds: c.Rounds, Limit: c.Limit.Limit,
		Parallel: c.Parallel, Lag: c.Lag, Gap: c.Gap, Rest: c.Rest, Jitter: float64(c.Jitter), MinCapacity: c.MinCapacity, Hazards: c.Hazards,
		Warm: c.Warm, Wait: c.Wait, Copies: c.Copies, Seed: c.Seed,
	}
	var results []replay.Result
	for _, tr := range traces {
		result, err := c.play(p, tr, options)
		if err != nil {
			return err
		}
		results = append(results, result)
	}
	if err := c.print(p, config.Footprint, results); err != nil {
		return err
	}
	return failures(results)
}

// play plays a trace, and writes the snapshot of -snapshot.
func (c *replayCmd) play(p *program, tr *trace.Trace, options replay.Options) (result replay.Result, err error) {
	if c.Snapshot == "" {
		return replay.Run(p.ctx, tr, options)
	}
	r, err := recorder.Attach(tr, &options)
	if err != nil {
		return result, err
	}
	file, err := os.Create(c.Snapshot) // before the run, so that a wrong path fails at once
	if err != nil {
		return result, &usageError{err}
	}
	if result, err = replay.Run(p.ctx, tr, options); err == nil {
		err = snapshot.Write(file, r.Snapshot())
	}
	return result, errors.Join(err, file.Close())
}

// failures returns an error if an allocation found no memory or was refused as a deadlock, or if the checker reported a hazard.
func failures(results []replay.Result) error {
	var errs []error
	for _, r := range results {
		if count := r.DeadlockedCount(); count > 0 {
			errs = append(errs, fmt.Errorf("%s: %s refused as deadlocks: every stream with memory waited for more", r.Trace, units.Count(count, "allocation")))
		}
		if count := r.FailedCount() - r.DeadlockedCount(); count > 0 {
			errs = append(errs, fmt.Errorf("%s: %s found no memory", r.Trace, units.Count(count, "allocation")))
		}
		if h := r.Hazards; h != nil && h.Count > 0 {
			errs = append(errs, fmt.Errorf("%s: %s", r.Trace, units.Count(h.Count, "hazard")))
		}
	}
	return errors.Join(errs...)
}

func (c *replayCmd) print(p *program, footprint vram.Footprint, results []replay.Result) error {
	if c.JSON {
		return printJSON(p.stdout, results)
	}
	t := newTable(1, "trace", "events", "streams", "peak live", "peak reserved", "reserved/live",
		"cold ns/op", "warm ns/op", "allocs/op", "driver calls", driverTime("driver ns/op", results[0].DriverModelled), "hit rate", "cached", "failed")
	if c.Wait {
		t.columns("waits", "deadlocks", "restarts", "longest wait")
	}
	if c.MinCapacity {
		t.columns("least limit", "limit/live")
	}
	if c.Gap > 0 {
		t.columns("p50 ns", "p99 ns", "p99.9 ns")
	}
	if c.Hazards {
		t.columns("hazards")
	}
	for _, r := range results {
		row := table.Row{
			r.Trace, r.EventCount, r.StreamCount, bytesText(r.PeakLiveBytes), bytesText(r.PeakReservedBytes),
			decimals(r.ReservedOverLive, 3), decimals(r.Rounds[0].NsPerOp, 1), optional(r.WarmNsPerOp, 1), optional(r.AllocsPerOp, 4),
			firstAndLast(r.Rounds, func(r replay.Round) string { return strconv.FormatUint(r.DriverCalls, 10) }),
			firstAndLast(r.Rounds, func(r replay.Round) string { return decimals(r.DriverNsPerOp, 1) }),
			firstAndLast(r.Rounds, func(r replay.Round) string { return decimals(100*r.HitRate, 1) + "%" }),
			bytesText(r.Rounds[len(r.Rounds)-1].CachedBytes), r.FailedCount(),
		}
		if r.WaitFigures != nil {
			row = append(row, r.WaitCount, r.DeadlockCount, r.RestartCount, time.Duration(r.LongestWaitNs).Round(time.Microsecond))
		}
		if c.MinCapacity {
			row = append(row, bytesText(r.MinCapacityBytes), decimals(r.MinCapacityOverLive, 3))
		}
		if r.Paced != nil {
			row = append(row, decimals(r.P50Nanos, 0), decimals(r.P99Nanos, 0), decimals(r.P999Nanos, 0))
		}
		if r.Hazards != nil {
			row = append(row, r.Hazards.Count)
		}
		t.add(row)
	}
	t.caption("Driver %s, footprint %v, %s. Two figures with an arrow: first round, last round.%s",
		results[0].Driver, footprint, units.Count(c.Rounds, "round"), timesNote(results[0].DriverModelled))
	if err := t.print(p.stdout); err != nil {
		return err
	}
	for _, r := range results {
		if r.Hazards == nil || r.Hazards.Count == 0 {
			continue
		}
		if _, err := fmt.Fprintf(p.stdout, "\n%s\n%s\n", r.Trace, strings.Join(r.Hazards.Reports, "\n")); err != nil {
			return err
		}
	}
	return nil
}

// driverTime returns the heading of times in driver calls.
func driverTime(text string, modelled bool) string {
	if modelled {
		return "modelled " + text
	}
	return text
}

// timesNote names the modelled times of a table.
func timesNote(modelled bool) string {
	if modelled {
		return " Modelled times are what the driver calls take on an H200; all other times are real, and without them."
	}
	return ""
}

func firstAndLast(rounds []replay.Round, text func(replay.Round) string) string {
	first, last := text(rounds[0]), text(rounds[len(rounds)-1])
	if len(rounds) == 1 {
		return first
	}
	return first + " → " + last
}
