package simulation_test

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/simulation"
)

// setting reads a number from the environment: SEED plays one seed only, SEEDS many from SEED on, STEPS
// makes runs longer, for hunts of hours.
func setting(t *testing.T, name string, fallback uint64) (value uint64, set bool) {
	t.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return fallback, false
	}
	value, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return value, true
}

// TestNoPromiseIsBrokenWhateverHappensNext plays many seeds. A failure names its seed: SEED=n plays it again.
func TestNoPromiseIsBrokenWhateverHappensNext(t *testing.T) {
	seeds, steps := uint64(200), uint64(2000)
	first, one := setting(t, "SEED", 0)
	if one {
		seeds = 1
	}
	seeds, _ = setting(t, "SEEDS", seeds)
	steps, _ = setting(t, "STEPS", steps)
	var met simulation.Report
	for seed := first; seed < first+seeds; seed++ {
		r, err := simulation.Run(simulation.Options{Seed: seed, Steps: int(steps)})
		require.NoError(t, err)
		met.Add(r)
	}
	t.Logf("%+v", met)
	if one {
		return
	}
	// Runs that meet nothing would show nothing.
	assert.Positive(t, met.Allocs)
	assert.Positive(t, met.Refused)
	assert.Positive(t, met.Cancelled)
	assert.Positive(t, met.MagazineHits)
	assert.Positive(t, met.LargeMagazineHits)
	assert.Positive(t, met.RangeHits)
	assert.Positive(t, met.PoolHits)
	assert.Positive(t, met.Injected)
	assert.Positive(t, met.Trims)
	assert.Positive(t, met.Warms)
	assert.Positive(t, met.Kept)
	assert.Positive(t, met.Whole)
	assert.Positive(t, met.ClosedEarly)
	assert.Positive(t, met.Moved)
	assert.Positive(t, met.Shared)
}

// TestTheSameSeedPlaysTheSameRun shows that a printed seed is worth something.
func TestTheSameSeedPlaysTheSameRun(t *testing.T) {
	digests := map[uint64]bool{}
	for seed := range uint64(10) {
		once, err := simulation.Run(simulation.Options{Seed: seed, Steps: 1000})
		require.NoError(t, err)
		again, err := simulation.Run(simulation.Options{Seed: seed, Steps: 1000})
		require.NoError(t, err)
		assert.Equal(t, once, again, "seed %d", seed)
		digests[once.Digest] = true
	}
	assert.Len(t, digests, 10, "different seeds play different runs")
}
