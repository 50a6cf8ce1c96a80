package replay_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/fault"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/leaks"
	"github.com/go-vram/vram/internal/trace"
	"github.com/go-vram/vram/lab/replay"
)

func simulator() cudadrv.Driver { return sim.New(sim.Config{}) }

// audited makes simulators whose books must balance, with nothing held, when the test ends.
func audited(t *testing.T) func() cudadrv.Driver {
	t.Helper()
	return func() cudadrv.Driver {
		driver := sim.New(sim.Config{})
		t.Cleanup(func() {
			device := driver.Device(0)
			require.NoError(t, device.Audit())
			again, err := driver.Open(0)
			require.NoError(t, err)
			freeBytes, totalBytes, err := again.MemGetInfo()
			require.NoError(t, err)
			assert.Equal(t, totalBytes, freeBytes, "everything went back")
			require.NoError(t, again.Close())
		})
		return driver
	}
}

func open(t *testing.T, name string) *trace.Trace {
	t.Helper()
	tr, err := trace.Open(name)
	require.NoError(t, err)
	return tr
}

func read(t *testing.T, rows ...string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read("rows.csv", strings.NewReader("t_us,op,id,size,stream\n"+strings.Join(rows, "\n")+"\n"))
	require.NoError(t, err)
	return tr
}

// alignBytes is the alignment of an address that a Buffer promises.
const alignBytes = 512

// The short form plays each trace in one footprint, with a goroutine for each stream. With a lag, the trace of several streams is
// also played by one goroutine.
func TestEveryTraceUnderTheChecker(t *testing.T) {
	all := []vram.Footprint{vram.Balanced, vram.Lean, vram.Fast}
	for i, name := range trace.Embedded() {
		tr := open(t, name)
		footprints := all
		if testing.Short() {
			footprints = all[i%len(all):][:1]
		}
		for _, footprint := range footprints {
			for _, parallel := range []bool{false, true} {
				if testing.Short() && parallel != (tr.Info.StreamCount > 1) {
					continue
				}
				t.Run(name+"/footprint="+footprint.String()+"/parallel="+map[bool]string{true: "yes", false: "no"}[parallel], func(t *testing.T) {
					defer leaks.None(t, goleak.IgnoreCurrent())
					var steps atomic.Int64
					got, err := replay.Run(t.Context(), tr, replay.Options{
						NewDriver: audited(t), Config: vram.Config{Footprint: footprint}, Rounds: checkedRounds, Parallel: parallel,
						Hazards: true, Observe: func(o replay.Observation) {
							steps.Add(1)
							assert.Zero(t, o.Buffer.Ptr()%alignBytes, "%+v", o)
							assert.Equal(t, o.Event.Bytes, o.Buffer.Bytes(), "%+v", o)
						},
					})
					require.NoError(t, err)
					requireClean(t, got)
					assert.Equal(t, int64(checkedRounds*tr.Info.EventCount), steps.Load())
					requireSound(t, tr, got, checkedRounds)
					assert.Zero(t, got.FailedCount())
				})
			}
		}
	}
}

// The short form leaves out the long trace of one stream.
func TestEveryTraceUnderTheCheckerWithALag(t *testing.T) {
	for i, name := range trace.Embedded() {
		if testing.Short() && name == "gpt2_train" {
			continue
		}
		tr := open(t, name)
		lags := []time.Duration{20 * time.Microsecond, 5 * time.Millisecond}
		if testing.Short() {
			lags = lags[i%len(lags):][:1]
		}
		for _, lag := range lags {
			t.Run(name+"/lag="+lag.String(), func(t *testing.T) {
				got, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: audited(t), Rounds: 2, Lag: lag, Hazards: true})
				require.NoError(t, err)
				requireClean(t, got)
				requireSound(t, tr, got, 2)
				assert.Zero(t, got.FailedCount())
			})
		}
	}
}

// requireClean checks that no kernel made a forbidden access.
func requireClean(t *testing.T, got replay.Result) {
	t.Helper()
	require.NotNil(t, got.Hazards)
	assert.Zero(t, got.Hazards.Count, "%v", got.Hazards.Reports)
}

// requireSound checks the invariants of every result.
func requireSound(t *testing.T, tr *trace.Trace, got replay.Result, rounds int) {
	t.Helper()
	assert.Equal(t, tr.Name, got.Trace)
	assert.Equal(t, "sim", got.Driver)
	assert.Equal(t, tr.Info.EventCount, got.EventCount)
	assert.Equal(t, tr.Info.StreamCount, got.StreamCount)
	assert.Equal(t, tr.Info.PeakLiveBytes, got.PeakLiveBytes)
	require.Len(t, got.Rounds, rounds)
	peakBytes := int64(0)
	for _, r := range got.Rounds {
		assert.Positive(t, r.NsPerOp)
		assert.GreaterOrEqual(t, r.HitRate, 0.0)
		assert.LessOrEqual(t, r.HitRate, 1.0)
		assert.GreaterOrEqual(t, r.CachedBytes, int64(0))
		peakBytes = max(peakBytes, r.PeakReservedBytes)
	}
	assert.Positive(t, got.Rounds[0].DriverCalls, "the first round maps")
	assert.Positive(t, got.Rounds[0].DriverNsPerOp)
	assert.Equal(t, peakBytes, got.PeakReservedBytes)
	assert.InDelta(t, float64(peakBytes)/float64(tr.Info.PeakLiveBytes), got.ReservedOverLive, 1e-9)
	require.NotNil(t, got.WarmNsPerOp)
	require.NotNil(t, got.AllocsPerOp)
	assert.Positive(t, *got.WarmNsPerOp)
}

func TestRunPlain(t *testing.T) {
	tr := open(t, "resnet_train")
	got, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator})
	require.NoError(t, err)
	requireSound(t, tr, got, replay.DefaultRounds)
	assert.Zero(t, got.FailedCount())
	assert.GreaterOrEqual(t, got.PeakReservedBytes, got.PeakLiveBytes)
	assert.Zero(t, got.MinCapacityBytes)
}

func TestOneRoundHasNoWarmFigures(t *testing.T) {
	got, err := replay.Run(t.Context(), read(t, "0,a,0,4096,0"), replay.Options{NewDriver: simulator, Rounds: 1})
	require.NoError(t, err)
	assert.Nil(t, got.WarmNsPerOp)
	assert.Nil(t, got.AllocsPerOp)
}

func TestLimitCountsFailuresAndGoesOn(t *testing.T) {
	tr := read(t, "0,a,0,33554432,0", "1,a,1,33554432,0", "2,f,1,33554432,0", "3,f,0,33554432,0", "4,a,2,4096,0")
	var failed []int
	got, err := replay.Run(t.Context(), tr, replay.Options{
		NewDriver: simulator, Rounds: 2, Limit: replay.Limit{Bytes: 48 << 20},
		Observe: func(o replay.Observation) {
			if o.Err != nil {
				assert.ErrorIs(t, o.Err, vram.ErrOutOfMemory)
				failed = append(failed, o.Index)
			}
		},
	})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 1}, failed, "the second buffer, in each round")
	assert.Equal(t, 2, got.FailedCount())
	assert.LessOrEqual(t, got.PeakReservedBytes, int64(48<<20))

	// The bare loop counts the same.
	got, err = replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Rounds: 2, Limit: replay.Limit{Bytes: 48 << 20}})
	require.NoError(t, err)
	assert.Equal(t, 2, got.FailedCount())
}

func TestParallelForeignFrees(t *testing.T) {
	// Two streams hand every buffer to each other, so that each free waits for the other goroutine.
	rows := make([]string, 0, 2*foreignFrees)
	for i := range foreignFrees {
		from, to := i%2, 1-i%2
		rows = append(rows, row(i, "a", i, from), row(i, "f", i, to))
	}
	tr := read(t, rows...)
	defer leaks.None(t, goleak.IgnoreCurrent())
	for _, watch := range []bool{false, true} {
		got, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Rounds: 4, Parallel: true, Hazards: watch})
		require.NoError(t, err)
		assert.Zero(t, got.FailedCount())
		require.Len(t, got.Rounds, 4)
	}
}

func TestParallelForeignFreeOfAFailedAllocation(t *testing.T) {
	tr := read(t, "0,a,0,33554432,0", "1,a,1,4096,1", "2,f,0,33554432,1", "3,f,1,4096,0")
	for _, watch := range []bool{false, true} {
		got, err := replay.Run(t.Context(), tr, replay.Options{
			NewDriver: simulator, Rounds: 2, Parallel: true, Hazards: watch, Limit: replay.Limit{Bytes: 16 << 20},
		})
		require.NoError(t, err)
		assert.Equal(t, 2, got.FailedCount())
	}
}

// In virtual time, which stands still while a trace is played: real ticks return memory in the middle of one, depending on the
// machine's speed, and that decides about a limit to the byte.
func TestMinCapacity(t *testing.T) {
	tr := open(t, "resnet_train")
	_, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Rounds: 1}) // one-time allocations
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		for _, parallel := range []bool{false, true} {
			o := replay.Options{NewDriver: simulator, Rounds: 2, MinCapacity: true, Parallel: parallel}
			got, err := replay.Run(t.Context(), tr, o)
			require.NoError(t, err)
			require.GreaterOrEqual(t, got.MinCapacityBytes, tr.Info.PeakLiveBytes)
			assert.InDelta(t, float64(got.MinCapacityBytes)/float64(got.PeakLiveBytes), got.MinCapacityOverLive, 1e-9)
			below := int64(0)
			for _, p := range got.Probes {
				if p.LimitBytes < got.MinCapacityBytes {
					assert.False(t, p.Survived, "tried and less than the answer")
					below = max(below, p.LimitBytes)
				}
			}
			assert.LessOrEqual(t, got.MinCapacityBytes-max(below, tr.Info.PeakLiveBytes-1), tr.Info.PeakLiveBytes/1000)

			o.MinCapacity, o.Limit = false, replay.Limit{Bytes: got.MinCapacityBytes}
			if !parallel { // in parallel each run is another
				again, err := replay.Run(t.Context(), tr, o)
				require.NoError(t, err)
				assert.Zero(t, again.FailedCount())
			}
		}
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	tr := open(t, "pipeline_1f1b")
	defer leaks.None(t, goleak.IgnoreCurrent())
	for _, parallel := range []bool{false, true} {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err := replay.Run(ctx, tr, replay.Options{
			NewDriver: simulator, Parallel: parallel, Rounds: 1000,
			Observe: func(o replay.Observation) {
				if o.Round == 1 {
					cancel(why)
				}
			},
		})
		require.ErrorIs(t, err, why)
	}
}

func TestRunRefuses(t *testing.T) {
	tr := read(t, "0,a,0,4096,0")
	for name, o := range map[string]replay.Options{
		"no driver":       {},
		"negative rounds": {NewDriver: simulator, Rounds: -1},
		"negative lag":    {NewDriver: simulator, Lag: -1},
	} {
		_, err := replay.Run(t.Context(), tr, o)
		require.Error(t, err, name)
	}
	_, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: func() cudadrv.Driver { return otherDriver{} }, Lag: 1})
	require.ErrorIs(t, err, replay.ErrLagNeedsSimulator)
}

// otherDriver is a driver that is not the simulator.
type otherDriver struct{ cudadrv.Driver }

func (otherDriver) Name() string { return "other" }

func row(micros int, op string, id, stream int) string {
	return strings.Join([]string{strconv.Itoa(micros), op, strconv.Itoa(id), "4096", strconv.Itoa(stream)}, ",")
}

// Hazards are looked for with goroutines side by side and with requests that find no memory.
func TestHazards(t *testing.T) {
	tr := open(t, "pipeline_1f1b")
	for name, o := range map[string]replay.Options{
		"many goroutines": {Parallel: true},
		"under a limit":   {Limit: replay.Limit{TimesPeak: 1.1}, Lag: 5 * time.Millisecond},
		"plain segments":  {Config: vram.Config{Segments: vram.SegmentsPlain}},
	} {
		t.Run(name, func(t *testing.T) {
			o.NewDriver, o.Rounds, o.Hazards = audited(t), 1, true
			got, err := replay.Run(t.Context(), tr, o)
			require.NoError(t, err)
			requireClean(t, got)
		})
	}
	_, err := replay.Run(t.Context(), tr, replay.Options{NewDriver: func() cudadrv.Driver { return fault.Wrap(simulator()) }, Hazards: true})
	require.ErrorIs(t, err, replay.ErrHazardsNeedSimulator)
	_, err = replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Hazards: true, Config: vram.Config{Ordinal: 7}})
	require.ErrorIs(t, err, vram.ErrNoDevice)
	_, err = replay.Run(t.Context(), tr, replay.Options{NewDriver: simulator, Hazards: true, Config: vram.Config{LimitBytes: -1}})
	require.Error(t, err)
}
