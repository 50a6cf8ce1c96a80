package simulation

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/recoveredtest"
)

const (
	// mostActions is the length of a short history: one that a person reads.
	mostActions = 30
	// mostLong is the number of histories that may stay long: some defects are rare and depend on the order of everything.
	mostLong = 4
)

// TestPlantedDefectsAreFound shows that a run can fail: defects at the seams of the allocator are found within few seeds, with
// the right promise, and their histories become short.
func TestPlantedDefectsAreFound(t *testing.T) {
	recoveredtest.Expect(t, "nobody planned this")
	for _, planted := range []struct {
		name     string
		mutation mutation
		classes  []string
	}{
		{"memory is used again before its fence has passed", mutateFences, []string{"reuse", "unmapped", "pending"}},
		{"a wake-up is lost", mutateWake, []string{"hang", "wait", "kept"}},
		{"a grant is lost after a cancellation", mutateGrant, []string{"hang", "books", "wait"}},
		{"a refusal is lost", mutateDenial, []string{"hang", "wait", "kept", "books"}},
		{"a free is reported by the next tick only", mutateFree, []string{"progress"}},
		{"a stream is not made to wait on the device", mutateWait, []string{"reuse"}},
		{"a capture is not seen", mutateCapture, []string{"capture"}},
		{"a fence in a graph is waited for", mutateGraph, []string{"answer", "memory", "pending", "wait", "kept", "gone"}},
		{"an exclusion from waits is not heard", mutateExclude, []string{"excluded"}},
		{"a panic is recovered in silence", mutatePanic, []string{"panic"}},
		{"books are off after a panic", mutateAudit, []string{"books", "hang", "gone", "answer"}},
	} {
		t.Run(planted.name, func(t *testing.T) {
			t.Parallel()
			for seed, finds := uint64(1), 0; ; seed++ {
				require.Less(t, seed, uint64(200), "nobody found it")
				_, err := Run(Options{Seed: seed, Steps: 1500, mutation: planted.mutation, replays: replays})
				if err == nil {
					continue
				}
				var f *BreachError
				require.True(t, errors.As(err, &f))
				assert.Contains(t, planted.classes, f.Class)
				assert.NotEmpty(t, f.Events)
				t.Logf("seed %d, %d of %d actions after %d replays", seed, f.Actions, f.Step, f.Replays)
				if finds++; replays < 100 || f.Actions < mostActions {
					break
				}
				require.Less(t, finds, mostLong, "no history becomes short")
			}
		})
	}
}
