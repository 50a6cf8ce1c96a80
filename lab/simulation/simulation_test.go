package simulation

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
)

func TestMain(m *testing.M) { recoveredtest.Main(m) }

// TestNoPromiseIsBrokenWhateverHappensNext plays some seeds. A failure says how to play it again; make sim plays more.
func TestNoPromiseIsBrokenWhateverHappensNext(t *testing.T) {
	var met Report
	var deadlocked, charged, reserved int // seeds
	for seed := range seedCount {
		r, err := Run(Options{Seed: seed, Steps: 3000})
		require.NoError(t, err)
		met.Add(r)
		deadlocked += min(1, int(r.Deadlocks)) //nolint:gosec // a count
		charged += min(1, int(r.Charged))      //nolint:gosec // bytes of a small device
		reserved += min(1, int(r.Reserved))    //nolint:gosec // a count
	}
	if seedCount >= 100 { // a few meet less
		assert.Empty(t, met.Unmet())
		assert.GreaterOrEqual(t, deadlocked, 30, "seeds with a deadlock")
		assert.GreaterOrEqual(t, charged, 40, "seeds with tenants' buffers")
		assert.GreaterOrEqual(t, reserved, 40, "seeds with reservations")
	}
	t.Log(met, "\nseeds with deadlocks, tenants' buffers, reservations:", deadlocked, charged, reserved)
}

// TestAFewSeedsBreakNoPromise plays other seeds than the test before it, and ends within a fraction of a second.
func TestAFewSeedsBreakNoPromise(t *testing.T) {
	for seed := range uint64(4) {
		_, err := Run(Options{Seed: 1_000_000 + seed, Steps: 1500})
		require.NoError(t, err)
	}
}

// TestTheSameSeedPlaysTheSameRun shows that a printed seed is worth something.
func TestTheSameSeedPlaysTheSameRun(t *testing.T) {
	digests := map[uint64]bool{}
	for seed := range twiceOver {
		once, err := Run(Options{Seed: seed, Steps: 2000})
		require.NoError(t, err)
		again, err := Run(Options{Seed: seed, Steps: 2000})
		require.NoError(t, err)
		assert.Equal(t, once, again, "seed %d", seed)
		digests[once.Digest] = true
	}
	assert.Len(t, digests, int(twiceOver), "different seeds play different runs")
}

// TestAHistoryPlaysTheRunThatDrewIt shows that a failure prints the history that led to it.
func TestAHistoryPlaysTheRunThatDrewIt(t *testing.T) {
	for seed := range twiceOver {
		drawn := newWorld(seed, mutateNothing)
		history := drawn.record(2000)
		played := newWorld(seed, mutateNothing)
		played.replay(history)
		assert.Nil(t, played.fault)
		assert.Equal(t, drawn.digest, played.digest)
		assert.Equal(t, drawn.report, played.report)
	}
}

// Unmet names the counters at 0. A run that meets nothing shows nothing.
func (r *Report) Unmet() (names []string) {
	for _, c := range r.counts() {
		if *c.value == 0 {
			names = append(names, c.name)
		}
	}
	for k, n := range r.Actions {
		if n == 0 {
			names = append(names, kind(k).String())
		}
	}
	return names
}
