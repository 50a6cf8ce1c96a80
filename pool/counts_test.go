package pool

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/internal/pool/core"
)

// A reservation that the pool refuses is counted by its caller, which may try again.
func TestARefusedReservationMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	h := build(t, core.Settings{LimitBytes: 8 * page})
	r, err := h.pool.Reserve(t.Context(), 101, 6*page)
	require.NoError(t, err)
	_, err = h.pool.Reserve(t.Context(), 102, 3*page)
	require.ErrorIs(t, err, ErrOutOfMemory)
	assert.Zero(t, h.pool.Tally().Counts())
	r.Release()
}

// Each figure of a tenant counts its own events.
func TestEachFigureOfATenant(t *testing.T) {
	t.Parallel()
	quota := Quota{LimitBytes: 10 * page}
	tenant := NewTenant("guest", 1, quota)
	c := (*TenantControl)(tenant)
	want := TenantStats{Name: "guest", ID: 1, Quota: quota}
	check := func() {
		t.Helper()
		assert.Equal(t, want, tenant.Stats())
	}
	check()
	require.True(t, c.Charge(5*page))
	want.ChargedBytes = 5 * page
	check()
	c.OutOfMemory()
	want.OutOfMemoryCount = 1
	check()
	c.NoteWait(3 * time.Second)
	c.NoteWait(time.Second)
	want.Longest = 3 * time.Second
	want.Durations = DurationHistogram{Counts: make([]uint64, DurationBuckets), Sum: 4 * time.Second}
	want.Durations.Counts[20], want.Durations.Counts[22] = 1, 1
	check()
	require.False(t, c.Charge(6*page), "beyond the limit")
	check()
	c.Refund(2 * page)
	want.ChargedBytes = 3 * page
	check()
	c.ResetPeak()
	want.Longest = 0
	check()
	c.Hold(2 * page) // another charge waits
	want.HeldBytes, want.PeakHeldBytes, want.AllocCount = 2*page, 2*page, 1
	check()
	scope := c.BeginScope()
	c.Hold(page)
	want.HeldBytes, want.PeakHeldBytes, want.AllocCount = 3*page, 3*page, 2
	check()
	require.True(t, c.Charge(4*page))
	c.Paid(2 * page)
	want.ChargedBytes, want.HeldBytes, want.FreeCount = 5*page, page, 1
	check()
	c.Hold(page)
	want.HeldBytes, want.AllocCount = 2*page, 3
	check()
	c.ResetPeak()
	want.PeakHeldBytes = 2 * page
	check()
	assert.EqualValues(t, 3*page, scope.End())
	refused, ok := errors.AsType[*QuotaError](c.Refuse(7 * page))
	require.True(t, ok)
	assert.Equal(t, &QuotaError{Tenant: "guest", RequestedBytes: 7 * page, ChargedBytes: 5 * page, Quota: quota, HeldBytes: 2 * page}, refused)
	want.QuotaRefusedCount = 1
	check()
}

// A pool that was closed has no peaks to begin, to end or to reset.
func TestPeaksOfAClosedPool(t *testing.T) {
	t.Parallel()
	h := build(t, core.Settings{LimitBytes: 8 * page})
	require.NoError(t, h.pool.BeginScope(t.Context(), 1, nil))
	require.NoError(t, h.pool.Close())
	require.ErrorIs(t, h.pool.BeginScope(t.Context(), 2, nil), ErrClosed)
	_, err := h.pool.EndScope(t.Context(), 1)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, h.pool.ResetPeaks(t.Context(), nil), ErrClosed)
}
