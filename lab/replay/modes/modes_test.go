package modes_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
)

const (
	// orderShare is by how much a mode may be on the wrong side of the next one: three percent.
	orderShare = 0.03
	// orderFloor is the tolerance of the driver time over all rounds: the time to make nine handles.
	orderFloor = 200 * time.Microsecond
	// hitTime and missTime are about the time of an event and of a miss of a stream's cache without the driver's, on an H100's
	// host.
	hitTime, missTime = 80 * time.Nanosecond, 20 * time.Microsecond
)

// cost is the cost of a mode on a trace.
type cost struct {
	reservedBytes int64
	driverTime    time.Duration // modelled, over all rounds
	warmTime      time.Duration // of the rounds two on, as the constants above have it
}

// costOf plays a trace in a mode. No time passes, so that nothing depends on when ticks come.
func costOf(t *testing.T, tr *trace.Trace, mode vram.Footprint) (c cost) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		got, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Rounds: rounds, Config: vram.Config{Footprint: mode}})
		require.NoError(t, err)
		require.Zero(t, got.FailedCount())
		c.reservedBytes = got.PeakReservedBytes
		for i, r := range got.Rounds {
			driverTime := time.Duration(r.DriverNsPerOp * float64(got.EventCount))
			c.driverTime += driverTime
			if i > 0 {
				misses := time.Duration(r.Hits.Pool + r.Hits.Driver) //nolint:gosec // a few thousand
				c.warmTime += driverTime + misses*missTime + time.Duration(got.EventCount)*hitTime
			}
		}
	})
	return c
}

// The modes are in order on every trace, recorded or made: Lean holds no more than Balanced, and Balanced no more than Fast;
// Fast takes no more driver time than Balanced, and Balanced no more than Lean.
func TestTheModesAreInOrder(t *testing.T) {
	var traces []*trace.Trace
	for _, name := range trace.Embedded() {
		traces = append(traces, open(t, name))
	}
	for shape := range made() {
		for seed := range madeSeeds {
			traces = append(traces, makeTrace(t, shape, seed))
		}
	}
	for _, tr := range traces {
		t.Run(tr.Name, func(t *testing.T) {
			lean, balanced, fast := costOf(t, tr, vram.Lean), costOf(t, tr, vram.Balanced), costOf(t, tr, vram.Fast)
			t.Logf("%d events, live %d MiB; lean %d MiB %v, balanced %d MiB %v, fast %d MiB %v", tr.Info.EventCount, tr.Info.PeakLiveBytes>>20,
				lean.reservedBytes>>20, lean.driverTime, balanced.reservedBytes>>20, balanced.driverTime, fast.reservedBytes>>20, fast.driverTime)
			holdsNoMore(t, "lean", lean, "balanced", balanced)
			holdsNoMore(t, "balanced", balanced, "fast", fast)
			takesNoMore(t, "fast", fast, "balanced", balanced)
			takesNoMore(t, "balanced", balanced, "lean", lean)
			hasItsPlace(t, "balanced", balanced, "fast", fast)
		})
	}
}

func holdsNoMore(t *testing.T, name string, c cost, than string, o cost) {
	t.Helper()
	limitBytes := o.reservedBytes + int64(orderShare*float64(o.reservedBytes))
	assert.LessOrEqual(t, c.reservedBytes, limitBytes, "%s holds more than %s: %d and %d bytes", name, than, c.reservedBytes, o.reservedBytes)
}

func takesNoMore(t *testing.T, name string, c cost, than string, o cost) {
	t.Helper()
	limit := o.driverTime + time.Duration(orderShare*float64(o.driverTime)) + orderFloor
	assert.LessOrEqual(t, c.driverTime, limit, "%s takes more driver time than %s: %v and %v", name, than, c.driverTime, o.driverTime)
}

// hasItsPlace reports a mode that nobody needs: another takes half the time for at most three percent more memory.
func hasItsPlace(t *testing.T, name string, c cost, than string, o cost) {
	t.Helper()
	if holdsAsMuch := float64(o.reservedBytes) <= (1+orderShare)*float64(c.reservedBytes); holdsAsMuch {
		assert.Less(t, c.warmTime, 2*o.warmTime, "%s has no place: %s holds %d bytes and takes %v, it %d and %v", name, than, o.reservedBytes, o.warmTime, c.reservedBytes, c.warmTime)
	}
}
