package acceptance_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/internal/together"
)

// A wait that ends while its tenant's own buffers have the quota says so: the device has memory, and only frees
// of the tenant or a higher quota would have helped.
func TestAWaitForAQuotaBlamesTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
		s, other := h.stream(), h.stream()
		gold := h.tenant("gold", vram.Quota{LimitBytes: 16 * mib})
		mine, err := s.AllocFor(t.Context(), vram.Request{Bytes: 12 * mib, Tenant: gold, Tag: "cache"})
		require.NoError(t, err)
		theirs := must(t, other, 48*mib)

		check := func(err error, pending bool) {
			t.Helper()
			var wait *vram.WaitError
			require.ErrorAs(t, err, &wait)
			require.ErrorIs(t, err, vram.ErrQuota)
			assert.Equal(t, pending, wait.Pending)
			assert.Equal(t, &vram.QuotaError{
				Tenant: "gold", RequestedBytes: 8 * mib, ChargedBytes: 12 * mib, Quota: vram.Quota{LimitBytes: 16 * mib}, HeldBytes: 12 * mib, Queued: 1,
			}, wait.Quota)
			for _, text := range []string{wait.Error(), wait.Report()} {
				assert.Contains(t, text, `waited for its quota`)
				assert.Contains(t, text, `tenant "gold" is charged 12 MiB of a limit of 16 MiB`)
				assert.Contains(t, text, "what would help: frees of the tenant's own buffers, or a Quota.LimitBytes of at least 20 MiB")
				if len(wait.Largest) > 0 { // none: another goroutine was in the stream's turn
					assert.Contains(t, text, "cache")
				}
				assert.NotContains(t, text, "48 MiB")
				assert.NotContains(t, text, "LimitBytes higher")
				assert.NotContains(t, text, "higher LimitBytes")
				assert.NotContains(t, text, "frees by the streams")
			}
			var quota *vram.QuotaError
			assert.False(t, errors.As(err, &quota), "its quota allows the request at some time")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.AllocFor(ctx, vram.Request{Bytes: 8 * mib, Tenant: gold, Wait: true})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		check(err, false)
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = s.AllocBatchFor(ctx, vram.BatchRequest{Bytes: []int64{4 * mib, 4 * mib}, Tenant: gold, Wait: true})
		check(err, false)
		future := s.AllocAsync(t.Context(), vram.Request{Bytes: 8 * mib, Tenant: gold, Wait: true})
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = future.Await(ctx)
		check(err, true)
		freeAll(t, mine)
		b, err := future.Await(t.Context())
		require.NoError(t, err)

		// With room in its quota it waits for the device's memory, and says that.
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		rest := must(t, other, 256*mib-h.Stats().ReservedBytes)
		silver := h.tenant("silver", vram.Quota{LimitBytes: 64 * mib})
		_, err = s.AllocFor(ctx, vram.Request{Bytes: 32 * mib, Tenant: silver, Wait: true})
		var wait *vram.WaitError
		require.ErrorAs(t, err, &wait)
		require.NotErrorIs(t, err, vram.ErrQuota)
		assert.Nil(t, wait.Quota)
		assert.Contains(t, wait.Error(), "stream 2 holds")
		freeAll(t, b, theirs, rest)
	})
}

// A deadlock of a tenant that alone has its quota says so, too.
func TestADeadlockForAQuotaBlamesTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
		s := h.exclusive()
		gold := h.tenant("gold", vram.Quota{LimitBytes: 16 * mib, Exclusive: true})
		mine, err := s.AllocFor(t.Context(), vram.Request{Bytes: 12 * mib, Tenant: gold})
		require.NoError(t, err)
		_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 8 * mib, Tenant: gold, Wait: true})
		var deadlock *vram.DeadlockError
		require.ErrorAs(t, err, &deadlock)
		require.ErrorIs(t, err, vram.ErrQuota)
		require.ErrorIs(t, err, vram.ErrWouldDeadlock)
		for _, text := range []string{deadlock.Error(), deadlock.Report()} {
			assert.Contains(t, text, `tenant "gold" is charged 12 MiB of a limit of 16 MiB`)
			assert.Contains(t, text, "a Quota.LimitBytes of at least 20 MiB")
			assert.NotContains(t, text, "or a higher LimitBytes")
		}
		freeAll(t, mine)
	})
}

// The last free of a tenant serves the request that begins to wait for its quota as the free happens.
func TestAFreeAndAWaitForItsQuotaMeet(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	s := h.stream()
	one := h.tenant("one", vram.Quota{LimitBytes: mib})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // for a request that nobody serves
	defer cancel()
	request := vram.Request{Bytes: mib, Tenant: one, Wait: true}
	for range 500 {
		held, err := s.AllocFor(ctx, request)
		require.NoError(t, err)
		together.Funcs(
			func() { assert.NoError(t, held.Free()) },
			func() {
				b, err := s.AllocFor(ctx, request)
				if assert.NoError(t, err) {
					assert.NoError(t, b.Free())
				}
			},
		)
		require.False(t, t.Failed())
	}
}
