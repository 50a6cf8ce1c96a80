package streams

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/tape"
)

// playStep allocates 40 sizes, frees each three requests later, and ticks.
func playStep(t *testing.T, s *Stream) {
	t.Helper()
	var live []Buffer
	for i := range int64(40) {
		b, err := s.Alloc(mib + i*64*kib)
		require.NoError(t, err)
		if live = append(live, b); len(live) == 3 {
			require.NoError(t, live[0].Free())
			live = live[1:]
		}
	}
	freeEach(t, live)
	s.Tick()
}

func freeEach(t *testing.T, buffers []Buffer) {
	t.Helper()
	for _, b := range buffers {
		require.NoError(t, b.Free())
	}
}

// playUntilPlayed plays steps until the stream's tape does.
func playUntilPlayed(t *testing.T, r *rig, s *Stream) (steps int) {
	t.Helper()
	for steps = 1; r.stats(s).Tape.State != tape.Playing; steps++ {
		require.Less(t, steps, 20)
		playStep(t, s)
	}
	return steps
}

// A stream learns the step, and plays it without the search.
func TestStreamPlaysItsStep(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.streamWith(core.Budget{}, true)
	playUntilPlayed(t, r, s)
	before := r.stats(s).Tape
	playStep(t, s)
	now := r.stats(s).Tape
	assert.EqualValues(t, 40, now.PlacedCount-before.PlacedCount)
	assert.EqualValues(t, 40, now.PlanRequests)
	assert.LessOrEqual(t, now.PlanBytes, now.PlanPeakBytes+now.PlanPeakBytes/64)
	require.NoError(t, s.Check(t.Context()))
}

// A plan that is given to another stream is played there sooner than it would be learned.
func TestPlanOfAnotherStream(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.streamWith(core.Budget{}, true)
	learned := playUntilPlayed(t, r, s)
	plan, err := s.Plan(t.Context())
	require.NoError(t, err)
	require.Len(t, plan, 40)
	other := r.streamWith(core.Budget{}, true)
	require.NoError(t, other.SetPlan(t.Context(), plan))
	assert.Less(t, playUntilPlayed(t, r, other), learned)
	again, err := other.Plan(t.Context())
	require.NoError(t, err)
	assert.Equal(t, plan, again)

	plain := r.stream(core.Budget{})
	require.ErrorIs(t, plain.SetPlan(t.Context(), plan), ErrNoTape)
	none, err := plain.Plan(t.Context())
	require.NoError(t, err)
	assert.Empty(t, none)
	var wrong *tape.PlanError
	require.ErrorAs(t, other.SetPlan(t.Context(), tape.Step{{Units: 300, Life: 2}}), &wrong)
	assert.Equal(t, "life", wrong.Field)
}

// Memory that a plan lies on and nobody uses is no reason to refuse anybody: neither another stream nor the plan's own.
func TestPlanYieldsBeforeARequestFails(t *testing.T) {
	for name, own := range map[string]bool{"own": true, "another": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 16*mib)
			s := r.streamWith(core.Budget{}, true)
			playUntilPlayed(t, r, s)
			asker := s
			if !own {
				asker = r.stream(core.Budget{})
			}
			b, err := asker.Alloc(16 * mib)
			require.NoError(t, err)
			require.NoError(t, b.Free())
			require.NoError(t, s.Check(t.Context()))
			playStep(t, s)
			require.NoError(t, s.Check(t.Context()))
		})
	}
}
