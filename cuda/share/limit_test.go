//go:build linux && (amd64 || arm64) && !gpu

package share

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/monitor/page"
)

// limited returns a side whose device has a limit.
func limited(t *testing.T, limitBytes int64) *side {
	t.Helper()
	s := newSide(t, newFake(t).driver())
	require.NoError(t, s.dev.Reconfigure(vram.Settings{LimitBytes: &limitBytes}))
	return s
}

// Shared memory counts in the limit of each process's device, and in its statistics, until it is closed.
func TestSharedMemoryCountsInTheLimit(t *testing.T) {
	const limit = 32 * mib
	a, b := limited(t, limit), limited(t, limit)
	before := a.dev.Stats()
	m, theirs := linkSides(t, a, b)
	for _, s := range []*side{a, b} {
		n := s.dev.Stats()
		assert.Equal(t, 4*mib, n.SharedBytes, "two granules")
		assert.Equal(t, before.ReservedBytes+4*mib, n.ReservedBytes)
		assert.Equal(t, limit, n.LimitBytes)
		where, err := s.dev.MemoryMap(t.Context(), 0)
		require.NoError(t, err)
		assert.Equal(t, 4*mib, where.SharedBytes)
		assert.Equal(t, limit, where.LimitBytes+where.SharedBytes)
		assert.Contains(t, where.String(), "; shared 4 MiB")
		shown := page.Read(s.dev, 0)
		assert.Equal(t, 4*mib, shown.Figures.SharedBytes)
	}

	// The allocator has the rest.
	_, err := a.c.Alloc(limit - 4*mib)
	var short *vram.OutOfMemoryError
	require.ErrorAs(t, err, &short)
	assert.Equal(t, 4*mib, short.SharedBytes)
	assert.Equal(t, limit, short.LimitBytes)
	assert.Contains(t, err.Error(), "(4 MiB of it shared) of a limit of 32 MiB")
	x, err := a.c.Alloc(limit - 12*mib)
	require.NoError(t, err)

	// Shared memory may use memory that the allocator does not need: free memory returns to the driver first.
	_, err = New(a.c, 16*mib)
	require.ErrorAs(t, err, &short)
	assert.Equal(t, 16*mib, short.RequestedBytes)
	require.NoError(t, x.Free())
	more, err := New(a.c, 16*mib)
	require.NoError(t, err)
	assert.Equal(t, 20*mib, a.dev.Stats().SharedBytes)
	assert.LessOrEqual(t, a.dev.Stats().ReservedBytes, limit)

	// A limit that is lowered holds for both together.
	lower := 28 * mib
	require.NoError(t, a.dev.Reconfigure(vram.Settings{LimitBytes: &lower}))
	_, err = a.c.Alloc(8 * mib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	assert.Equal(t, lower, a.dev.Stats().LimitBytes)
	assert.LessOrEqual(t, a.dev.Stats().PeakReservedBytes, limit)

	require.NoError(t, more.Close())
	require.NoError(t, m.Close())
	require.NoError(t, theirs.Close())
	assert.Zero(t, a.dev.Stats().SharedBytes)
	assert.Zero(t, b.dev.Stats().SharedBytes)
	x, err = a.c.Alloc(20 * mib)
	require.NoError(t, err)
	require.NoError(t, x.Free())
}

// An importer whose limit leaves no room refuses, and both sides have nothing of it.
func TestAnImportBeyondTheLimit(t *testing.T) {
	a, b := newSide(t, newFake(t).driver()), limited(t, 8*mib)
	x, err := b.c.Alloc(4 * mib)
	require.NoError(t, err)
	m, err := New(a.c, 4*mib)
	require.NoError(t, err)
	mine, theirs := connection(t)
	exported := inBackground(func() error { return m.Export(mine) })
	_, err = Import(b.c, theirs)
	require.ErrorIs(t, err, vram.ErrOutOfMemory)
	var refused *RefusedError
	require.ErrorAs(t, <-exported, &refused)
	assert.Equal(t, RefusedLimit, refused.Reason)
	assert.Zero(t, b.dev.Stats().SharedBytes)
	require.NoError(t, m.Close())
	require.NoError(t, x.Free())

	// Memory that the driver refuses does not count either.
	require.NoError(t, a.faults.Add(ruleFor("cuMemCreate", 1)))
	_, err = New(a.c, 4*mib)
	require.ErrorIs(t, err, cudadrv.Unknown)
	a.faults.Clear()
	assert.Zero(t, a.dev.Stats().SharedBytes)
}

// Memory whose Close the driver refused in part counts in the limit as long as the driver has it, and no longer.
func TestMemoryCountsAsLongAsTheDriverHasIt(t *testing.T) {
	for function, has := range map[string]bool{"cuMemUnmap": true, "cuMemRelease": true, "cuMemAddressFree": false} {
		t.Run(function, func(t *testing.T) {
			s := newSide(t, newFake(t).driver())
			m := s.make()
			shared := s.dev.Stats().SharedBytes
			require.Positive(t, shared)
			if !has {
				shared = 0
			}
			require.NoError(t, s.faults.Add(ruleFor(function, 1)))
			require.ErrorIs(t, m.Close(), cudadrv.Unknown)
			assert.Equal(t, shared, s.dev.Stats().SharedBytes)
			s.faults.Clear()
			require.NoError(t, m.Close())
			assert.Zero(t, s.dev.Stats().SharedBytes)
		})
	}
}
