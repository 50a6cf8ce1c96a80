package replay

import (
	"context"
	"errors"
	"slices"
	"time"
)

// ErrGapNeedsOneGoroutine says that Options.Gap was set together with Options.Parallel.
var ErrGapNeedsOneGoroutine = errors.New("replay: a gap between requests needs one goroutine for all streams")

// Paced has the cost of single requests for a caller with other work between them. A request is an event of the trace, an
// allocation or a free; no figure includes the work.
type Paced struct {
	GapNanos  int64   `json:"gap_ns"`
	P50Nanos  float64 `json:"p50_ns"`
	P99Nanos  float64 `json:"p99_ns"`
	P999Nanos float64 `json:"p999_ns"`
}

// paced plays one more round, the last, that works between events and times each event.
func (se *session) paced(ctx context.Context, round int, gap time.Duration) (*Paced, error) {
	clear(se.missing)
	if se.jitter > 0 {
		se.perturb(round)
	}
	timer := timerCost()
	nanos := make([]float64, len(se.trace.Events))
	p := se.players[0]
	for i := range p.program.steps {
		if i%contextStride == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		for start := time.Now(); time.Since(start) < gap; {
		}
		s := &p.program.steps[i]
		start := time.Now()
		var err error
		if s.kind == stepAlloc {
			err = p.alloc(ctx, s)
		} else {
			err = p.free(s)
		}
		nanos[i] = max(0, float64(time.Since(start))-timer)
		if err != nil {
			return nil, se.at(round, p.program.events[i], err)
		}
	}
	if err := se.freeLeftovers(round); err != nil {
		return nil, err
	}
	slices.Sort(nanos)
	at := func(q float64) float64 { return nanos[min(len(nanos)-1, int(q*float64(len(nanos))))] }
	return &Paced{GapNanos: gap.Nanoseconds(), P50Nanos: at(0.5), P99Nanos: at(0.99), P999Nanos: at(0.999)}, nil
}

// timerCost returns the median time between two successive readings of the clock.
func timerCost() float64 {
	const readings = 20_001 // as many as take a millisecond or two
	nanos := make([]float64, readings)
	for i := range nanos {
		start := time.Now()
		nanos[i] = float64(time.Since(start))
	}
	slices.Sort(nanos)
	return nanos[readings/2]
}
