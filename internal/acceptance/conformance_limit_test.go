package acceptance_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
)

// These tests are about refusals and their counts; docs/conformance.md names their sources.

// RMM: LimitingTest.TooBig, UpstreamFailure, UnderLimitDueToFrees and OverLimit. A refusal leaves
// the counts unchanged: no quota is lost.
func TestARefusalLeavesTheCountsAlone(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	refused := func(bytes int64, want error) {
		t.Helper()
		before := h.addsUp()
		_, err := s.Alloc(bytes)
		require.ErrorIs(t, err, want)
		after := h.addsUp()
		assert.Equal(t, before.LiveBytes, after.LiveBytes)
		assert.Equal(t, before.AllocCount, after.AllocCount)
		assert.Equal(t, before.FreeCount, after.FreeCount)
		assert.LessOrEqual(t, after.PeakLiveBytes, max(before.PeakLiveBytes, after.LiveBytes))
	}
	refused(65*mib, vram.ErrTooLarge) // TooBig

	h.fail("cuMemCreate", cudadrv.LaunchFailed) // UpstreamFailure
	for range 10 {
		refused(40*mib, cudadrv.LaunchFailed)
	}
	h.faults.Clear()
	x := must(t, s, 40*mib)

	for range 10 { // OverLimit
		refused(40*mib, vram.ErrOutOfMemory)
	}
	y := must(t, s, 24*mib)
	refused(1, vram.ErrOutOfMemory)

	for range 10 { // UnderLimitDueToFrees: more in sum than the limit, never at a time
		freeAll(t, x)
		x = must(t, s, 40*mib)
	}
	freeAll(t, x, y)
	freeAll(t, must(t, s, 64*mib))
	n := h.addsUp()
	assert.Equal(t, uint64(13), n.AllocCount)
	assert.Equal(t, n.AllocCount, n.FreeCount)
	assert.LessOrEqual(t, n.PeakReservedBytes, 64*mib)
}

// RMM: FailureCallbackTest.RetryAllocationOnce and DifferentExceptionTypes, with the caller in the
// place of the callback: it gives something up when memory is short, and only then, and tries
// again.
func TestARefusedCallerFreesAndTriesAgain(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	spare := must(t, s, 32*mib)
	calls := 0
	allocate := func(bytes int64) (vram.Buffer, error) {
		b, err := s.Alloc(bytes)
		if errors.Is(err, vram.ErrOutOfMemory) && spare.Live() {
			calls++
			require.NoError(t, spare.Free())
			return s.Alloc(bytes)
		}
		return b, err
	}
	b, err := allocate(48 * mib)
	require.NoError(t, err)
	assert.Equal(t, 1, calls)
	_, err = allocate(48 * mib)
	require.ErrorIs(t, err, vram.ErrOutOfMemory, "there is nothing more to give up")
	_, err = allocate(65 * mib)
	require.ErrorIs(t, err, vram.ErrTooLarge)
	require.NotErrorIs(t, err, vram.ErrOutOfMemory, "freeing would not help")
	_, err = allocate(-1)
	require.ErrorIs(t, err, vram.ErrNegative)
	assert.Equal(t, 1, calls)
	freeAll(t, b)
}
