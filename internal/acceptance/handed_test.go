package acceptance_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

// held are the bytes that the statistics charge a stream with.
func (h *house) held(s *vram.Stream) (heldBytes, liveBytes int64) {
	h.t.Helper()
	for _, n := range h.Stats().Streams {
		if n.Stream == s.ID() {
			assert.Equal(h.t, n.HeldBytes, n.LiveBytes+n.PendingBytes+n.CachedBytes)
			assert.GreaterOrEqual(h.t, n.PeakHeldBytes, n.HeldBytes)
			return n.HeldBytes, n.LiveBytes
		}
	}
	return 0, 0
}

// A buffer that was handed over is charged to the stream that has it, in statistics, refusals and ended waits,
// whether the stream of its memory is open or closed; Request.Wait is a remedy, and works.
func TestWhoHasAHandedBuffer(t *testing.T) {
	for _, closes := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
			first, second, third := h.stream(), h.stream(), h.stream()
			x := must(t, first, 48*mib)
			x, err := x.Transfer(second)
			require.NoError(t, err)
			if closes {
				require.NoError(t, first.Close())
			}
			heldBytes, liveBytes := h.held(second)
			assert.Equal(t, 48*mib, heldBytes)
			assert.Equal(t, 48*mib, liveBytes)
			_, liveBytes = h.held(first)
			assert.Zero(t, liveBytes)
			n := h.Stats()
			assert.Equal(t, 48*mib, n.LiveBytes)
			assert.EqualValues(t, 1, n.AllocCount-n.FreeCount)

			_, err = third.Alloc(48 * mib)
			var short *vram.OutOfMemoryError
			require.ErrorAs(t, err, &short)
			assert.Contains(t, short.Error(), "stream 2 holds 48 MiB, 48 MiB live")
			assert.Contains(t, short.Error(), "largest buffers: 48 MiB on stream 2")
			assert.NotContains(t, short.Error(), "stream 1")
			assert.Contains(t, short.Remedies(), pool.Remedy{Kind: pool.WaitForFrees, Bytes: 48 * mib})

			ctx, cancel := context.WithCancel(t.Context())
			given := waitWithin(ctx, third, vram.Request{Bytes: 48 * mib})
			waits(t, given)
			waiters, err := h.Waiters(t.Context())
			require.NoError(t, err)
			require.NotEmpty(t, waiters.Holders)
			assert.Equal(t, second.ID(), waiters.Holders[0].Stream)
			cancel()
			var ended *vram.WaitError
			require.ErrorAs(t, (<-given).err, &ended)
			require.NotEmpty(t, ended.Holders)
			assert.Equal(t, second.ID(), ended.Holders[0].Stream)
			assert.Equal(t, 48*mib, ended.Holders[0].HeldBytes)

			answer := waitFor(third, vram.Request{Bytes: 48 * mib})
			waits(t, answer)
			freeAll(t, x)
			freeAll(t, got(t, answer)) // without a tick
			heldBytes, _ = h.held(second)
			assert.Zero(t, heldBytes)
			assert.Zero(t, h.Stats().LiveBytes)
		})
	}
}

// It is charged to each stream that has it in turn, and to the stream of its memory when it is back, or when the
// stream that has it is closed.
func TestAHandedBufferGoesOn(t *testing.T) {
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	all := []*vram.Stream{h.stream(), h.stream(), h.stream()}
	x := must(t, all[0], 8*mib)
	y := must(t, all[0], 4*mib)
	y, err := y.Transfer(all[1])
	require.NoError(t, err)
	charged := func(want ...int64) {
		t.Helper()
		for i, s := range all {
			_, liveBytes := h.held(s)
			assert.Equal(t, want[i]*mib, liveBytes, "stream %d", s.ID())
		}
	}
	charged(8, 4, 0)
	for _, at := range []int{1, 2, 1, 2} {
		x, err = x.Transfer(all[at])
		require.NoError(t, err)
		if at == 1 {
			charged(0, 12, 0)
		} else {
			charged(0, 4, 8)
		}
	}
	back, err := x.Transfer(all[0])
	require.NoError(t, err)
	charged(8, 4, 0)
	_, err = x.Transfer(all[1])
	require.Error(t, err)
	charged(8, 4, 0)
	x, err = back.Transfer(all[2])
	require.NoError(t, err)
	charged(0, 4, 8)
	require.NoError(t, all[2].Close())
	charged(8, 4, 0)
	live, err := h.LiveBuffers(t.Context())
	require.NoError(t, err)
	_, err = all[1].Alloc(56 * mib)
	var refused *vram.OutOfMemoryError
	require.ErrorAs(t, err, &refused)
	for name, largest := range map[string]pool.LiveBuffer{"the list": live.Largest(1)[0], "the refusal": refused.Largest[0]} {
		assert.Equal(t, all[0].ID(), largest.Stream, "%s names the stream of the memory, since the other one has ended", name)
		assert.EqualValues(t, 8*mib, largest.Bytes)
	}
	freeAll(t, x, y)
	z := must(t, all[0], 2*mib)
	charged(2, 0, 0)
	freeAll(t, z)
}

// The memory of live buffers on a closed stream is live in a refusal, so that waiting for their frees is a
// remedy.
func TestLiveBuffersOfAClosedStreamInARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		first, second := h.stream(), h.stream()
		x, y := must(t, first, 24*mib), must(t, first, 24*mib)
		require.NoError(t, first.Close())
		freeAll(t, y)
		_, err := second.Alloc(48 * mib)
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		assert.Contains(t, short.Error(), "stream 1 holds 24 MiB, 24 MiB live")
		assert.Contains(t, short.Remedies(), pool.Remedy{Kind: pool.WaitForFrees, Bytes: 24 * mib})
		answer := waitFor(second, vram.Request{Bytes: 48 * mib})
		waits(t, answer)
		freeAll(t, x)
		freeAll(t, got(t, answer))
	})
}
