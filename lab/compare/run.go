package compare

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/baseline"
	"github.com/go-vram/vram/lab/replay"
)

// Options are the number of replays, and their device.
type Options struct {
	NewDriver   func() cudadrv.Driver
	Repetitions int // of each side
	Rounds      int // of each repetition
	Parallel    bool
	Wait        bool
	Lag         time.Duration // each buffer's last use occupies its stream for so long; needs the simulated device
	Gap         time.Duration // adds a round to each repetition whose events are timed one by one, with so much other work between them
	Rest        time.Duration // a pause after each round, for the device's background work
}

// Result is two sides of one trace.
type Result struct {
	Trace          string `json:"trace"`
	Driver         string `json:"driver"`
	DriverModelled bool   `json:"-"` // as in replay.Result
	EventCount     int    `json:"events"`
	PeakLiveBytes  int64  `json:"peak_live_bytes"`
	Repetitions    int    `json:"repetitions"`
	Rounds         int    `json:"rounds"`
	A              Side   `json:"a"`
	B              Side   `json:"b"`
	// Identical says that all figures but the real times are the same: no effect of the difference was seen.
	Identical bool `json:"identical"`
	// Baselines are the trace without vram on the same driver, each way once, in program order.
	Baselines []baseline.Result `json:"baselines"`
}

// Spread is a figure over the repetitions.
type Spread struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// Side is the figures of one setup.
type Side struct {
	Setup string `json:"setup"`

	ColdNs Spread `json:"cold_ns_per_event"` // of the first rounds
	WarmNs Spread `json:"warm_ns_per_event"` // of the medians of the others

	FirstDriverCalls uint64  `json:"first_driver_calls"`
	LastDriverCalls  uint64  `json:"last_driver_calls"`
	FirstDriverNs    float64 `json:"first_driver_ns_per_event"`
	LastDriverNs     float64 `json:"last_driver_ns_per_event"`

	PeakReservedBytes int64       `json:"peak_reserved_bytes"`
	Efficiency        float64     `json:"efficiency"`    // peak live bytes over peak reserved bytes
	Fragmentation     float64     `json:"fragmentation"` // of the last round
	CachedBytes       int64       `json:"cached_bytes"`
	Hits              replay.Hits `json:"hits"` // of the last round
	WaitCount         uint64      `json:"waits"`
	FailedCount       int         `json:"failed"`               // allocations that found no memory, or were refused as deadlocks, over all repetitions
	DeadlockedCount   int         `json:"deadlocked,omitempty"` // of them: refused as deadlocks

	*replay.Paced // of the last repetition, with Options.Gap; nil without

	cold, warm []float64
}

// Run plays the repetitions in turns.
func Run(ctx context.Context, tr *trace.Trace, a, b Setup, o Options) (Result, error) {
	if o.Repetitions < 1 || o.Rounds < 2 {
		return Result{}, fmt.Errorf("compare: %d repetitions of %d rounds, want at least 1 of 2", o.Repetitions, o.Rounds)
	}
	r := Result{
		Trace: tr.Name, EventCount: len(tr.Events), Repetitions: o.Repetitions, Rounds: o.Rounds,
		A: Side{Setup: a.Text}, B: Side{Setup: b.Text},
	}
	for range o.Repetitions {
		for _, side := range []struct {
			setup  *Setup
			figure *Side
		}{{&a, &r.A}, {&b, &r.B}} {
			result, err := replay.Run(ctx, tr, options(side.setup, &o))
			if err != nil {
				return Result{}, fmt.Errorf("%q: %w", side.setup.Text, err)
			}
			r.Driver, r.DriverModelled, r.PeakLiveBytes = result.Driver, result.DriverModelled, result.PeakLiveBytes
			side.figure.add(&result)
		}
	}
	for _, way := range baseline.Ways() {
		b, err := baseline.Run(ctx, tr, way, baseline.Options{Driver: o.NewDriver(), Ordinal: a.Config.Ordinal, Rounds: o.Rounds})
		if err != nil {
			return Result{}, err
		}
		r.Baselines = append(r.Baselines, b)
	}
	r.A.sum()
	r.B.sum()
	r.Identical = r.A.same(&r.B)
	return r, nil
}

func options(s *Setup, o *Options) replay.Options {
	return replay.Options{
		NewDriver: o.NewDriver, Config: s.Config, Rounds: o.Rounds, Limit: s.Limit, Warm: s.Warm, Demands: s.Demands,
		Parallel: o.Parallel, Wait: o.Wait, Lag: o.Lag, Gap: o.Gap, Rest: o.Rest,
	}
}

// add takes a repetition.
func (s *Side) add(r *replay.Result) {
	first, last := r.Rounds[0], r.Rounds[len(r.Rounds)-1]
	s.cold = append(s.cold, first.NsPerOp)
	s.warm = append(s.warm, *r.WarmNsPerOp)
	s.FirstDriverCalls, s.LastDriverCalls = first.DriverCalls, last.DriverCalls
	s.FirstDriverNs, s.LastDriverNs = first.DriverNsPerOp, last.DriverNsPerOp
	s.PeakReservedBytes = max(s.PeakReservedBytes, r.PeakReservedBytes)
	s.Efficiency = 1
	if s.PeakReservedBytes > 0 {
		s.Efficiency = min(1, float64(r.PeakLiveBytes)/float64(s.PeakReservedBytes))
	}
	s.Fragmentation, s.CachedBytes, s.Hits = last.Fragmentation, last.CachedBytes, last.Hits
	if r.WaitFigures != nil {
		s.WaitCount += r.WaitCount
	}
	s.FailedCount += r.FailedCount()
	s.DeadlockedCount += r.DeadlockedCount()
	s.Paced = r.Paced
}

// same reports whether all figures are the same that are no real times.
func (s *Side) same(other *Side) bool {
	figures := func(s *Side) Side {
		return Side{
			FirstDriverCalls: s.FirstDriverCalls, LastDriverCalls: s.LastDriverCalls, PeakReservedBytes: s.PeakReservedBytes,
			Fragmentation: s.Fragmentation, CachedBytes: s.CachedBytes, Hits: s.Hits, WaitCount: s.WaitCount, FailedCount: s.FailedCount, DeadlockedCount: s.DeadlockedCount,
		}
	}
	return reflect.DeepEqual(figures(s), figures(other))
}

func (s *Side) sum() { s.ColdNs, s.WarmNs = spread(s.cold), spread(s.warm) }

func spread(values []float64) Spread {
	sorted := slices.Sorted(slices.Values(values))
	middle := (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
	return Spread{middle, sorted[0], sorted[len(sorted)-1]}
}
