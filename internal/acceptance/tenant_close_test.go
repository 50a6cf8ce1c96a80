//go:build unix

package acceptance_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
)

// tenantNames are the tenants of the statistics.
func (h *house) tenantNames() (all []string) {
	for _, n := range h.Stats().Tenants {
		all = append(all, n.Name)
	}
	return all
}

// A closed tenant leaves the statistics and takes no request; its buffers stay its own until they are freed, also where another
// tenant has its name by then.
func TestAClosedTenantKeepsItsBuffers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		s := h.stream()
		h.tenant("other", vram.Quota{})
		guest := h.tenant("guest", vram.Quota{LimitBytes: 16 * mib})
		x, err := s.AllocFor(context.Background(), vram.Request{Bytes: 12 * mib, Tenant: guest})
		require.NoError(t, err)
		queued := waitFor(s, vram.Request{Bytes: 8 * mib, Tenant: guest})
		waits(t, queued)

		require.NoError(t, guest.Close())
		require.NoError(t, guest.Close(), "twice")
		assert.Equal(t, []string{"other"}, h.tenantNames())
		_, err = s.AllocFor(context.Background(), vram.Request{Bytes: kib, Tenant: guest})
		require.ErrorIs(t, err, vram.ErrTenantClosed)
		_, err = s.AllocBatchFor(context.Background(), vram.BatchRequest{Bytes: []int64{kib}, Tenant: guest})
		require.ErrorIs(t, err, vram.ErrTenantClosed)
		require.ErrorIs(t, guest.SetQuota(vram.Quota{}), vram.ErrTenantClosed)
		assert.EqualValues(t, 12*mib, guest.Stats().HeldBytes)

		next := h.tenant("guest", vram.Quota{LimitBytes: 4 * mib})
		assert.NotSame(t, guest, next)
		assert.Equal(t, []string{"other", "guest"}, h.tenantNames())
		y, err := s.AllocFor(context.Background(), vram.Request{Bytes: 4 * mib, Tenant: next})
		require.NoError(t, err, "nothing of the former counts")

		freeAll(t, x)
		z := got(t, queued) // accepted before the Close
		assert.EqualValues(t, 8*mib, guest.Stats().ChargedBytes)
		freeAll(t, z)
		assert.Zero(t, guest.Stats().ChargedBytes)
		assert.EqualValues(t, 4*mib, next.Stats().HeldBytes)
		freeAll(t, y)
		require.ErrorIs(t, (*vram.Tenant)(nil).Close(), vram.ErrNotOpen)
		h.addsUp()
	})
}

// A closed tenant that still has memory is one of those for whose frees others wait.
func TestAClosedTenantIsAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		s := h.stream()
		guest, other := h.tenant("guest", vram.Quota{}), h.tenant("other", vram.Quota{})
		x, err := s.AllocFor(context.Background(), vram.Request{Bytes: 64 * mib, Tenant: guest})
		require.NoError(t, err)
		require.NoError(t, guest.Close())
		pending := waitFor(s, vram.Request{Bytes: 32 * mib, Tenant: other})
		waits(t, pending)
		w, err := h.Waiters(context.Background())
		require.NoError(t, err)
		assert.Contains(t, fmt.Sprint(w), `"guest"`)
		freeAll(t, x)
		freeAll(t, got(t, pending))
		h.addsUp()
	})
}

// Tenants leave nothing after their Close and the last free.
func TestClosedTenantsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 256 * mib}, sim.Config{})
		s := h.stream()
		var last vram.Buffer
		holdsFlat(t, heapSlack, func(i int) {
			guest := h.tenant(fmt.Sprint("guest ", i), vram.Quota{LimitBytes: mib, ShareBytes: kib})
			b, err := s.AllocFor(context.Background(), vram.Request{Bytes: 4 * kib, Tenant: guest})
			require.NoError(t, err)
			if i > 0 {
				freeAll(t, last) // of a tenant that is closed
			}
			last = b
			require.NoError(t, guest.Close())
		})
		freeAll(t, last)
		assert.Empty(t, h.tenantNames())
		h.addsUp()
	})
}
