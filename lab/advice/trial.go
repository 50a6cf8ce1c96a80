package advice

import (
	"context"
	"fmt"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/baseline"
	"github.com/go-vram/vram/lab/replay"
)

// Trial is the figures of a configuration.
type Trial struct {
	Name              string        `json:"name"`
	PeakReservedBytes int64         `json:"peak_reserved_bytes"`
	ReservedOverLive  float64       `json:"reserved_over_live"`
	UnusedShare       float64       `json:"unused_share"`  // of the peak reserved bytes: the part that the peak live bytes leave
	Fragmentation     float64       `json:"fragmentation"` // at the end of the last round: free memory outside the longest free range
	HitRate           float64       `json:"hit_rate"`      // of the last round: served without the pool
	FirstCalls        uint64        `json:"first_driver_calls"`
	FirstDriver       time.Duration `json:"first_driver_ns"`
	LastCalls         uint64        `json:"last_driver_calls"`
	LastDriver        time.Duration `json:"last_driver_ns"`
	FailedCount       int           `json:"failed"`
	LeastLimitBytes   int64         `json:"least_limit_bytes,omitempty"` // where it was looked for
}

// roundCount is how often a trial plays the trace. Not fewer: the pool has settled from the third round on.
const roundCount = 4

func simulated() cudadrv.Driver { return sim.New(sim.Config{}) }

// lab plays trials of one trace.
type lab struct {
	ctx   context.Context //nolint:containedctx // a lab is one call of Of
	trace *trace.Trace
}

// try plays the trace with the options, in which the driver and the rounds are set here.
func (l *lab) try(name string, o replay.Options) (Trial, error) {
	o.NewDriver, o.Rounds = simulated, roundCount
	o.Config.Stats = vram.StatsOn
	r, err := replay.Run(l.ctx, l.trace, o)
	if err != nil {
		return Trial{}, fmt.Errorf("%s: %w", name, err)
	}
	return trial(name, &r), nil
}

// baselines plays the trace without vram, on the same device.
func (l *lab) baselines() (all []Trial, err error) {
	for _, way := range baseline.Ways() {
		r, err := baseline.Run(l.ctx, l.trace, way, baseline.Options{Driver: simulated(), Rounds: roundCount})
		if err != nil {
			return nil, err
		}
		first, last := r.Rounds[0], r.Rounds[len(r.Rounds)-1]
		t := Trial{
			Name: string(way), PeakReservedBytes: r.PeakReservedBytes, ReservedOverLive: r.ReservedOverLive,
			Fragmentation: last.Fragmentation, HitRate: last.HitRate(), FirstCalls: first.DriverCalls, FirstDriver: first.Driver,
			LastCalls: last.DriverCalls, LastDriver: last.Driver,
		}
		for _, round := range r.Rounds {
			t.FailedCount += round.FailedCount
		}
		t.UnusedShare = unusedShare(l.trace.Info.PeakLiveBytes, r.PeakReservedBytes)
		all = append(all, t)
	}
	return all, nil
}

// unusedShare returns the part of the peak reserved bytes that the peak live bytes leave.
func unusedShare(liveBytes, reservedBytes int64) float64 {
	if reservedBytes <= 0 {
		return 0
	}
	return max(0, 1-float64(liveBytes)/float64(reservedBytes))
}

func trial(name string, r *replay.Result) Trial {
	first, last := r.Rounds[0], r.Rounds[len(r.Rounds)-1]
	driver := func(round replay.Round) time.Duration {
		return time.Duration(round.DriverNsPerOp * float64(r.EventCount))
	}
	t := Trial{
		Name: name, PeakReservedBytes: r.PeakReservedBytes, ReservedOverLive: r.ReservedOverLive,
		Fragmentation: last.Fragmentation, HitRate: last.HitRate, FirstCalls: first.DriverCalls, FirstDriver: driver(first),
		LastCalls: last.DriverCalls, LastDriver: driver(last), FailedCount: r.FailedCount(), LeastLimitBytes: r.MinCapacityBytes,
	}
	t.UnusedShare = unusedShare(r.PeakLiveBytes, r.PeakReservedBytes)
	return t
}
