package replay

import (
	"context"
	"errors"
	"time"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
)

// Run plays the trace and returns its figures. An allocation that finds no memory is counted in its round and the free of its
// buffer left out; every other failure ends the run with an error, as does ctx. Run blocks until its goroutines have ended and
// the device is closed.
func Run(ctx context.Context, tr *trace.Trace, o Options) (Result, error) {
	if err := o.complete(); err != nil {
		return Result{}, err
	}
	limitBytes := o.Limit.For(tr.Info.PeakLiveBytes)
	tr = copied(tr, o.Copies)
	se, err := openSession(ctx, tr, &o, limitBytes)
	if err != nil {
		return Result{}, err
	}
	result := Result{
		Trace: tr.Name, Driver: se.driverName, DriverModelled: se.modelled, EventCount: tr.Info.EventCount,
		StreamCount: tr.Info.StreamCount, PeakLiveBytes: tr.Info.PeakLiveBytes,
	}
	if err := se.rounds(ctx, o.Rounds, &result); err != nil {
		_ = se.close() // lists the buffers that the aborted round left live; the round's error matters
		return Result{}, err
	}
	if o.Gap > 0 {
		if result.Paced, err = se.paced(ctx, o.Rounds, o.Gap); err != nil {
			_ = se.close()
			return Result{}, err
		}
	}
	if err := se.close(); err != nil {
		return Result{}, err
	}
	result.Hazards = se.kernels.found()
	if o.MinCapacity {
		if err := minCapacity(ctx, tr, o, &result); err != nil {
			return Result{}, err
		}
	}
	return result, nil
}

// rounds plays all rounds and fills in the result.
func (se *session) rounds(ctx context.Context, count int, result *Result) error {
	var warmMallocs uint64
	before := se.device.Stats()
	for round := range count {
		se.device.ResetPeaks()
		t, err := se.play(ctx, round)
		if err != nil {
			return err
		}
		atEnd := se.device.Stats()
		if err := se.freeLeftovers(round); err != nil {
			return err
		}
		after := se.device.Stats()
		result.Rounds = append(result.Rounds, se.round(t, before, atEnd, after))
		if round > 0 {
			warmMallocs += t.mallocs
		}
		before = after
		if err := rest(ctx, se.rest); err != nil {
			return err
		}
	}
	result.PeakLiveBytes = se.peakLiveBytes
	if se.wait {
		w := se.device.Stats().Waits
		result.WaitFigures = &WaitFigures{w.Count, w.Deadlocks, se.groups.restartCount(), w.Longest.Nanoseconds()}
	}
	result.summarise(warmMallocs)
	return nil
}

// rest waits so long.
func rest(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// round returns the figures of a round between two readings of the statistics, with one at the end of the
// timed stretch.
func (se *session) round(t timing, before, atEnd, after vram.Stats) Round {
	events := float64(len(se.trace.Events))
	r := Round{
		NsPerOp:           float64(t.elapsed.Nanoseconds()) / events,
		DriverNsPerOp:     float64((after.DriverTime - before.DriverTime).Nanoseconds()) / events,
		DriverCalls:       after.DriverCalls - before.DriverCalls,
		CachedBytes:       atEnd.CachedBytes,
		PeakReservedBytes: after.PeakReservedBytes,
		FailedCount:       t.failedCount,
		DeadlockedCount:   t.deadlocked,
		Fragmentation:     atEnd.Fragmentation(),
		Hits: Hits{
			Magazine: atEnd.MagazineHits - before.MagazineHits, Stream: atEnd.StreamHits - before.StreamHits,
			Pool: atEnd.PoolHits - before.PoolHits, Driver: atEnd.DriverMisses - before.DriverMisses,
		},
	}
	if served := atEnd.AllocCount - before.AllocCount; served > 0 {
		hits := (atEnd.MagazineHits + atEnd.StreamHits) - (before.MagazineHits + before.StreamHits)
		r.HitRate = float64(hits) / float64(served)
	}
	return r
}

// survives reports whether all rounds complete under the limit.
func survives(ctx context.Context, tr *trace.Trace, o *Options, limitBytes int64) (bool, error) {
	se, err := openSession(ctx, tr, o, limitBytes)
	if wrong, ok := errors.AsType[*vram.ConfigError](err); ok && wrong.Field == "LimitBytes" {
		return false, nil // below a page
	}
	if err != nil {
		return false, err
	}
	se.stopAtFailure = true
	var result Result
	err = se.rounds(ctx, o.Rounds, &result)
	if err != nil {
		_ = se.close() // lists the buffers that the aborted round left live
		if errors.Is(err, errStop) {
			return false, nil
		}
		return false, err
	}
	return true, se.close()
}
