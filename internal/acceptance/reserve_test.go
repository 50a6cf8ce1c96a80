package acceptance_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

func (h *house) reserve(bytes int64) *vram.Reservation {
	h.t.Helper()
	r, err := h.Reserve(context.Background(), bytes)
	require.NoError(h.t, err)
	return r
}

// Reserved memory serves requests that name the reservation, and no others, until it is drawn or
// released.
func TestRequestsDrawFromAReservation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		r := h.reserve(31 * mib)
		assert.EqualValues(t, 32*mib, r.Bytes(), "whole pages")
		x := must(t, a, 32*mib)
		assert.EqualValues(t, 32*mib, h.addsUp().SetAsideBytes)
		_, err := b.Alloc(2 * mib)
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		assert.ErrorContains(t, err, "a reservation holds 32 MiB")
		calls := h.addsUp().DriverCalls
		y, err := b.AllocFor(context.Background(), vram.Request{Bytes: 12 * mib, Reservation: r})
		require.NoError(t, err)
		z, err := a.AllocBatchFor(context.Background(), vram.BatchRequest{Bytes: []int64{8 * mib, 4 * mib, 6 * mib}, Reservation: r})
		require.NoError(t, err)
		assert.Equal(t, calls, h.addsUp().DriverCalls, "it was there")
		assert.EqualValues(t, 2*mib, h.addsUp().SetAsideBytes)
		_, err = b.AllocFor(context.Background(), vram.Request{Bytes: 3 * mib, Reservation: r})
		require.ErrorIs(t, err, vram.ErrOutOfMemory, "more than is left")
		r.Release()
		r.Release()
		assert.Zero(t, h.addsUp().SetAsideBytes)
		w := must(t, b, 2*mib)
		_, err = b.AllocFor(context.Background(), vram.Request{Bytes: 2 * mib, Reservation: r})
		require.ErrorIs(t, err, vram.ErrOutOfMemory, "it is no more")
		freeAll(t, w, x, y)
		require.NoError(t, z.Free())
		freeAll(t, must(t, b, 60*mib))
		h.addsUp()
	})
}

// A reservation of which all was drawn is released without a trace.
func TestAReservationThatIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib, Debug: true}, sim.Config{})
		s := h.stream()
		r := h.reserve(16 * mib)
		x, err := s.AllocFor(context.Background(), vram.Request{Bytes: 16 * mib, Reservation: r})
		require.NoError(t, err)
		assert.Zero(t, h.addsUp().SetAsideBytes)
		r.Release()
		freeAll(t, x, must(t, s, 40*mib))
		h.addsUp()
	})
}

// A waiting request is not overtaken by requests that draw, and is served when a reservation is
// released.
func TestAReleaseServesThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		r := h.reserve(32 * mib)
		x := must(t, a, 32*mib)
		first := waitFor(b, vram.Request{Bytes: 16 * mib})
		waits(t, first)
		y, err := a.AllocFor(context.Background(), vram.Request{Bytes: 16 * mib, Reservation: r, Wait: true})
		require.NoError(t, err)
		waits(t, first)
		r.Release()
		freeAll(t, got(t, first), x, y)
		h.addsUp()
	})
}

// A reservation takes memory as any request does, never more than there is, and fails whole.
func TestReservationsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		other := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a := h.stream()
		x := must(t, a, 48*mib)
		_, err := h.Reserve(context.Background(), 32*mib)
		var short *vram.OutOfMemoryError
		require.ErrorAs(t, err, &short)
		assert.Contains(t, short.Remedies(), pool.Remedy{Kind: pool.RetryAfterFrees, Bytes: 48 * mib})
		assert.NotContains(t, err.Error(), "Request.Wait", "Reserve has no such option")
		_, err = h.Reserve(context.Background(), 65*mib)
		require.ErrorIs(t, err, vram.ErrTooLarge)
		_, err = h.Reserve(context.Background(), 0)
		require.ErrorContains(t, err, "Reserve")
		least, err := h.Reserve(context.Background(), 1)
		require.NoError(t, err)
		assert.Equal(t, "reservation of 2 MiB", least.String())
		least.Release()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err = h.Reserve(ctx, 8*mib)
		require.ErrorIs(t, err, context.Canceled)
		assert.Zero(t, h.addsUp().SetAsideBytes, "nothing is kept")
		_, err = a.AllocFor(context.Background(), vram.Request{Bytes: mib, Reservation: other.reserve(mib)})
		require.ErrorIs(t, err, vram.ErrForeign)
		freeAll(t, x)
		h.fail("cuMemCreate", cudadrv.Unknown)
		_, err = h.Reserve(context.Background(), 60*mib)
		require.Error(t, err)
		require.NoError(t, h.Close())
		_, err = h.Reserve(context.Background(), mib)
		require.ErrorIs(t, err, vram.ErrClosed)
	})
}
