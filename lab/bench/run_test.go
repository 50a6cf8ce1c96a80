package bench_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/leaks"
	"github.com/go-vram/vram/lab/bench"
)

// quick is enough to run through everything once.
func quick() bench.Options {
	return bench.Options{
		NewDriver:   func() cudadrv.Driver { return sim.New(sim.Config{}) },
		Repetitions: 2, RepetitionTime: 100 * time.Microsecond, Samples: 64, HoleCounts: []int{10, 500},
	}
}

func TestEveryScenario(t *testing.T) {
	defer leaks.None(t, goleak.IgnoreCurrent())
	rows, err := bench.Run(t.Context(), quick())
	require.NoError(t, err)
	assert.Equal(t, bench.ScenarioCalibration, rows[0].Scenario)
	assert.InDelta(t, rows[0].NsPerOp, bench.Calibration(rows), 0)
	seen := map[string]map[string]int{}
	for _, r := range rows {
		assert.Positive(t, r.NsPerOp, "%+v", r)
		assert.GreaterOrEqual(t, r.AllocsPerOp, 0.0)
		assert.LessOrEqual(t, r.P50Nanos, r.P99Nanos)
		assert.LessOrEqual(t, r.P99Nanos, r.P999Nanos)
		assert.Positive(t, r.Goroutines)
		assert.Positive(t, r.Count)
		assert.Equal(t, r.Scenario == "holes", r.NodeVisitsPerOp != nil)
		assert.Equal(t, r.Scenario == "warmup", r.DriverNsPerOp != nil)
		if seen[r.Scenario] == nil {
			seen[r.Scenario] = map[string]int{}
		}
		seen[r.Scenario][r.Impl]++
	}
	assert.Equal(t, map[string]map[string]int{
		"calibration": {"atomics": 1},
		"pair":        {"vram": 7, "mutex": 7},
		"lifo":        {"vram": 1, "mutex": 1},
		"varied":      {"vram": 1, "mutex": 1},
		"own-streams": {"vram": 5, "mutex": 5},
		"one-stream":  {"vram": 5, "mutex": 5},
		"holes":       {"vram": 2},
		"batch":       {"vram": 4, "vram-alloc": 4},
		"paced":       {"vram": 1, "mutex": 1},
		"record":      {"vram": 4},
		"use":         {"vram": 4},
		"transfer":    {"vram": 4},
		"warmup":      {"vram": 1, "vram-cold": 1},
	}, seen)
}

func TestChosenScenarioAndImplementation(t *testing.T) {
	o := quick()
	o.Scenarios, o.Impls = []string{"lifo", "pair"}, []string{bench.ImplMutex}
	rows, err := bench.Run(t.Context(), o)
	require.NoError(t, err)
	var got []string
	for _, r := range rows {
		got = append(got, r.Scenario+"/"+r.Impl)
	}
	p := "pair/mutex"
	assert.Equal(t, []string{"calibration/atomics", p, p, p, p, p, p, p, "lifo/mutex"}, got, "in the order of the list")
}

func TestRowAsJSON(t *testing.T) {
	visits := 2.5
	text, err := json.Marshal([]bench.Row{
		{Scenario: "pair", Impl: "vram", SizeBytes: 512, Count: 1, Goroutines: 1, NsPerOp: 1.5},
		{Scenario: "holes", Impl: "vram", NodeVisitsPerOp: &visits},
	})
	require.NoError(t, err)
	assert.JSONEq(t, `[
		{"scenario":"pair","impl":"vram","size_bytes":512,"n":1,"goroutines":1,"ns_per_op":1.5,"allocs_per_op":0,"p50_ns":0,"p99_ns":0,"p999_ns":0},
		{"scenario":"holes","impl":"vram","size_bytes":0,"n":0,"goroutines":0,"ns_per_op":0,"allocs_per_op":0,"p50_ns":0,"p99_ns":0,"p999_ns":0,"node_visits_per_op":2.5}
	]`, string(text))
}

func TestRunRefuses(t *testing.T) {
	o := quick()
	o.Scenarios = []string{"pair", "nonsense"}
	_, err := bench.Run(t.Context(), o)
	var unknown *bench.UnknownScenarioError
	require.ErrorAs(t, err, &unknown)
	assert.Contains(t, err.Error(), `unknown scenario "nonsense": want all or some of pair, lifo`)

	for _, spoil := range []func(*bench.Options){
		func(o *bench.Options) { o.NewDriver = nil },
		func(o *bench.Options) { o.Impls = []string{"other"} },
		func(o *bench.Options) { o.Repetitions = -1 },
		func(o *bench.Options) { o.Samples = -1 },
	} {
		o := quick()
		spoil(&o)
		_, err := bench.Run(t.Context(), o)
		require.Error(t, err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = bench.Run(ctx, quick())
	require.ErrorIs(t, err, context.Canceled)
}
