package streams

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/stream/core"
)

// The budget holds after every turn and tick, also after one in which the pool granted pages back.
func TestTheBudgetHoldsWhenPagesComeHome(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{CacheBytes: 4 * mib})
	b := must(t, s, 16*mib)
	require.NoError(t, b.Free())
	r.tick(s)
	assert.LessOrEqual(t, r.stats(s).CachedBytes, 4*mib)
	reserved := r.books().ReservedBytes
	freed, err := r.pool.Trim(context.Background(), reserved-2*mib) // asks for all, keeps most
	require.NoError(t, err)
	assert.Equal(t, 2*mib, freed)
	assert.LessOrEqual(t, r.stats(s).CachedBytes, 4*mib)
	r.balanced(s)
}

// A budget that is set while the stream is in use holds from then on.
func TestABudgetCanBeSetLater(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	require.NoError(t, must(t, s, 16*mib).Free())
	r.stats(s)
	require.NoError(t, control(s).Reconfigure(context.Background(), core.Settings{Budget: core.Budget{CacheBytes: 2 * mib}}))
	assert.Equal(t, 14*mib, r.books().FreeBytes, "what is over it is the pool's")
	assert.LessOrEqual(t, r.stats(s).CachedBytes, 2*mib)
	r.balanced(s)
}

// A budget that is set counts frees since the last turn, which no turn has seen yet.
func TestABudgetCountsWhatWasJustFreed(t *testing.T) {
	r := newRig(t, 128*mib)
	s := r.stream(core.Budget{})
	b := must(t, s, 62*mib)
	r.stats(s)
	require.NoError(t, b.Free())
	require.NoError(t, control(s).Reconfigure(context.Background(), core.Settings{Budget: core.Budget{CacheBytes: 4 * mib}}))
	assert.Equal(t, 58*mib, r.books().FreeBytes, "what is over it is the pool's")
	assert.Equal(t, 4*mib, r.stats(s).CachedBytes)
	r.balanced(s)
}

// The peak of live bytes restarts at the live bytes.
func TestResetPeak(t *testing.T) {
	r := newRig(t, 64*mib)
	s := r.stream(core.Budget{})
	kept := must(t, s, 2*mib)
	require.NoError(t, must(t, s, 16*mib).Free())
	assert.Equal(t, 18*mib, r.stats(s).PeakLiveBytes)
	require.NoError(t, control(s).ResetPeak(context.Background()))
	assert.Equal(t, 2*mib, r.stats(s).PeakLiveBytes)
	require.NoError(t, kept.Free())
}
