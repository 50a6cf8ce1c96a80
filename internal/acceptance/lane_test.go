package acceptance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// A device that is closed with lanes open lists the buffers that they have, and says so to their
// owners.
func TestDeviceIsClosedWithLanesOpen(t *testing.T) {
	gpu := sim.New(sim.Config{})
	dev, err := vram.Open(vram.Config{Driver: gpu})
	require.NoError(t, err)
	s, err := dev.NewStream()
	require.NoError(t, err)
	lane, err := s.Lane(64 * mib)
	require.NoError(t, err)
	for range 3 { // the first is the stream's, which has to ask for pages
		for _, bytes := range []int64{kib, mib} {
			b, err := lane.Alloc(bytes)
			require.NoError(t, err)
			require.NoError(t, lane.Free(b))
		}
	}
	small, err := lane.Alloc(kib)
	require.NoError(t, err)
	large, err := lane.Alloc(mib)
	require.NoError(t, err)
	n := dev.Stats()
	assert.Equal(t, kib+mib, n.LiveBytes)
	assert.Equal(t, 1, n.Streams[0].LaneCount)
	assert.GreaterOrEqual(t, n.Streams[0].LaneBytes, kib+mib)

	var inUse *vram.InUseError
	require.ErrorAs(t, dev.Close(), &inUse)
	assert.EqualValues(t, 2, inUse.BufferCount)
	assert.Equal(t, kib+mib, inUse.Bytes)
	require.ErrorIs(t, lane.Free(small), vram.ErrClosed)
	require.ErrorIs(t, large.Free(), vram.ErrClosed)
	_, err = lane.Alloc(kib)
	require.ErrorIs(t, err, vram.ErrClosed)
	require.NoError(t, lane.Close())
	require.NoError(t, gpu.Device(0).Audit())
}

// A budget below zero is refused, and the error names it.
func TestLaneRefusesANegativeBudget(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	_, err := h.stream().Lane(-5)
	var budget *vram.BudgetError
	require.ErrorAs(t, err, &budget)
	assert.EqualValues(t, -5, budget.BudgetBytes)
	assert.Contains(t, err.Error(), "budgetBytes")
}
