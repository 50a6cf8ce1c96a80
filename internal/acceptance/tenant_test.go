package acceptance_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/pool"
)

func (h *house) tenant(name string, q vram.Quota) *vram.Tenant {
	h.t.Helper()
	t, err := h.Tenant(name, q)
	require.NoError(h.t, err)
	return t
}

// A tenant never has more than its limit: further requests wait for its own frees, in order, or are
// refused.
func TestATenantKeepsItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		guest := h.tenant("guest", vram.Quota{LimitBytes: 16 * mib})
		x, err := a.AllocFor(context.Background(), vram.Request{Bytes: 12 * mib, Tenant: guest})
		require.NoError(t, err)
		_, err = b.AllocFor(context.Background(), vram.Request{Bytes: 8 * mib, Tenant: guest})
		require.ErrorIs(t, err, vram.ErrQuota)
		var over *vram.QuotaError
		require.ErrorAs(t, err, &over)
		assert.Equal(t, &vram.QuotaError{
			Tenant: "guest", RequestedBytes: 8 * mib, ChargedBytes: 12 * mib, Quota: vram.Quota{LimitBytes: 16 * mib}, HeldBytes: 12 * mib,
		}, over)
		first := waitFor(b, vram.Request{Bytes: 8 * mib, Tenant: guest})
		waits(t, first)
		_, err = b.AllocFor(context.Background(), vram.Request{Bytes: 1, Tenant: guest})
		require.ErrorIs(t, err, vram.ErrQuota, "it would overtake")
		second := waitFor(a, vram.Request{Bytes: 4 * mib, Tenant: guest})
		waits(t, first, second)
		assert.Equal(t, 2, guest.Stats().Queued)
		freeAll(t, must(t, a, 48*mib)) // others do not wait
		freeAll(t, x)
		freeAll(t, got(t, first), got(t, second))
		assert.Equal(t, vram.TenantStats{Name: "guest", Quota: over.Quota}, accountOf(guest))
		_, err = b.AllocFor(context.Background(), vram.Request{Bytes: 17 * mib, Tenant: guest, Wait: true})
		require.ErrorIs(t, err, vram.ErrQuota, "no wait would help")
		h.addsUp()
	})
}

// A request that gives up costs its tenant nothing, wherever it waited.
func TestATenantIsRefunded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		guest := h.tenant("guest", vram.Quota{LimitBytes: 16 * mib})
		x := must(t, a, 64*mib)
		ctx, cancel := context.WithCancel(context.Background())
		forMemory := waitWithin(ctx, b, vram.Request{Bytes: 12 * mib, Tenant: guest})
		waits(t, forMemory)
		assert.EqualValues(t, 12*mib, guest.Stats().ChargedBytes)
		forQuota := waitWithin(ctx, b, vram.Request{Bytes: 8 * mib, Tenant: guest})
		waits(t, forQuota)
		cancel()
		synctest.Wait()
		err := (<-forMemory).err
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, `vram: waited 0s for 12 MiB on stream 2 for tenant "guest": context canceled; stream 1 holds 64 MiB`)
		require.ErrorIs(t, (<-forQuota).err, context.Canceled)
		assert.Equal(t, vram.TenantStats{Name: "guest", Quota: vram.Quota{LimitBytes: 16 * mib}}, accountOf(guest))
		f := b.AllocBatchForAsync(context.Background(), vram.BatchRequest{Bytes: []int64{4 * mib, 4 * mib}, Tenant: guest})
		_, err = f.Await(context.Background())
		require.ErrorIs(t, err, vram.ErrOutOfMemory)
		assert.Zero(t, guest.Stats().ChargedBytes)
		freeAll(t, x)
		batch, err := b.AllocBatchFor(context.Background(), vram.BatchRequest{Bytes: []int64{4 * mib, 4 * mib}, Tenant: guest})
		require.NoError(t, err)
		assert.EqualValues(t, 8*mib, guest.Stats().HeldBytes)
		require.NoError(t, batch.Free())
		assert.Zero(t, guest.Stats().ChargedBytes)
		h.addsUp()
	})
}

// Requests that wait for a quota are granted as soon as it allows them, in order of arrival: after a
// free, a cancellation, or a larger quota.
func TestAQuotaThatGrowsLetsOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a := h.stream()
		guest := h.tenant("guest", vram.Quota{LimitBytes: 16 * mib})
		x, err := a.AllocFor(context.Background(), vram.Request{Bytes: 12 * mib, Tenant: guest})
		require.NoError(t, err)
		large := waitFor(a, vram.Request{Bytes: 8 * mib, Tenant: guest})
		waits(t, large)
		ctx, cancel := context.WithCancel(context.Background())
		middle := waitWithin(ctx, a, vram.Request{Bytes: 6 * mib, Tenant: guest})
		waits(t, large, middle)
		small := waitFor(a, vram.Request{Bytes: 4 * mib, Tenant: guest})
		waits(t, large, middle, small) // in order, though the last would fit
		assert.Equal(t, 3, guest.Stats().Queued)
		assert.EqualValues(t, 12*mib, guest.Stats().ChargedBytes)

		h.tenant("guest", vram.Quota{LimitBytes: 24 * mib})
		y := got(t, large)
		waits(t, middle, small)
		assert.Equal(t, 2, guest.Stats().Queued)
		cancel()
		synctest.Wait()
		require.ErrorIs(t, (<-middle).err, context.Canceled)
		z := got(t, small)
		assert.Equal(t, vram.TenantStats{
			Name: "guest", Quota: vram.Quota{LimitBytes: 24 * mib}, HeldBytes: 24 * mib, ChargedBytes: 24 * mib,
		}, accountOf(guest))
		last := waitFor(a, vram.Request{Bytes: 12 * mib, Tenant: guest})
		waits(t, last)
		freeAll(t, x)
		freeAll(t, y, z, got(t, last))
		assert.Zero(t, guest.Stats().ChargedBytes)
		assert.Zero(t, guest.Stats().Queued)
		h.addsUp()
	})
}

// A tenant beyond its share gets memory that no other request waits for.
func TestWhoBorrowsComesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b, c := h.stream(), h.stream(), h.stream()
		greedy := h.tenant("greedy", vram.Quota{ShareBytes: 16 * mib})
		fair := h.tenant("fair", vram.Quota{ShareBytes: 32 * mib})
		x, err := a.AllocFor(context.Background(), vram.Request{Bytes: 48 * mib, Tenant: greedy}) // nobody else wants it
		require.NoError(t, err)
		y := must(t, b, 16*mib)
		more := waitFor(a, vram.Request{Bytes: 8 * mib, Tenant: greedy})
		waits(t, more)
		own := waitFor(c, vram.Request{Bytes: 16 * mib, Tenant: fair})
		waits(t, more, own)
		freeAll(t, y)
		z := got(t, own)
		waits(t, more)
		freeAll(t, z)
		freeAll(t, x, got(t, more))
		h.addsUp()
	})
}

// Of tenants that borrow, the one with less relative to its share comes first, in any order of
// arrival.
func TestWhoHasLessOfItsShareComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b, c := h.stream(), h.stream(), h.stream()
		small := h.tenant("small", vram.Quota{ShareBytes: 4 * mib})
		large := h.tenant("large", vram.Quota{ShareBytes: 16 * mib})
		x, err := a.AllocFor(context.Background(), vram.Request{Bytes: 16 * mib, Tenant: small})
		require.NoError(t, err)
		y, err := b.AllocFor(context.Background(), vram.Request{Bytes: 32 * mib, Tenant: large})
		require.NoError(t, err)
		z := must(t, c, 16*mib)
		first := waitFor(a, vram.Request{Bytes: 16 * mib, Tenant: small})
		waits(t, first)
		second := waitFor(b, vram.Request{Bytes: 16 * mib, Tenant: large})
		waits(t, first, second)
		freeAll(t, z)
		z = got(t, second) // three times its share, the other would have eight times its
		waits(t, first)
		third := waitFor(b, vram.Request{Bytes: 16 * mib, Tenant: large})
		waits(t, first, third)
		freeAll(t, x)
		x = got(t, first) // four times its share now, as the other
		waits(t, third)
		freeAll(t, y, x)
		freeAll(t, z, got(t, third))
		h.addsUp()
	})
}

// Tenants that share a stream count separately: the stream waits and holds memory, and yet one of
// them makes progress.
func TestTenantsOfOneStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		s := h.stream()
		left, right := h.tenant("left", vram.Quota{Exclusive: true}), h.tenant("right", vram.Quota{Exclusive: true})
		x, err := s.AllocFor(context.Background(), vram.Request{Bytes: 32 * mib, Tenant: left})
		require.NoError(t, err)
		y, err := s.AllocFor(context.Background(), vram.Request{Bytes: 32 * mib, Tenant: right})
		require.NoError(t, err)
		first := waitFor(s, vram.Request{Bytes: 16 * mib, Tenant: left})
		waits(t, first)
		second := waitFor(s, vram.Request{Bytes: 16 * mib, Tenant: right})
		synctest.Wait()
		require.ErrorIs(t, (<-second).err, vram.ErrWouldDeadlock)
		waits(t, first)
		freeAll(t, y)
		freeAll(t, x, got(t, first))
		h.addsUp()
	})
}

// A wait for a quota that only the tenant's one goroutine could free is a deadlock, also where
// nobody waits for memory.
func TestATenantWaitsForItself(t *testing.T) {
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprintf("other=%t", other), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
				s := h.stream()
				guest := h.tenant("guest", vram.Quota{LimitBytes: 16 * mib, Exclusive: true})
				x, err := s.AllocFor(context.Background(), vram.Request{Bytes: 16 * mib, Tenant: guest})
				require.NoError(t, err)
				var y vram.Buffer
				if other { // either way one is granted
					y = must(t, s, mib)
				}
				wait := waitFor(s, vram.Request{Bytes: mib, Tenant: guest})
				if other {
					waits(t, wait)
					freeAll(t, y)
				}
				deadlocked(t, wait)
				freeAll(t, x)
				h.addsUp()
			})
		})
	}
}

func TestQuotasThatCannotBe(t *testing.T) {
	h := openHouse(t, vram.Config{}, sim.Config{})
	_, err := h.Tenant("x", vram.Quota{LimitBytes: -1})
	require.EqualError(t, err, "vram: Quota.LimitBytes is -1, want 0 or more")
	require.ErrorIs(t, err, vram.ErrNegative)
	_, err = h.Tenant("x", vram.Quota{ShareBytes: -1})
	require.EqualError(t, err, "vram: Quota.ShareBytes is -1, want 0 or more")
	_, err = h.Tenant("x", vram.Quota{LimitBytes: 2, ShareBytes: 3})
	require.EqualError(t, err, "vram: Quota.ShareBytes is 3, want at most the LimitBytes of 2, or no limit")
	require.NotErrorIs(t, err, vram.ErrNegative)
	var bounds *vram.QuotaBoundsError
	require.ErrorAs(t, err, &bounds)
	assert.Equal(t, vram.QuotaBoundsError{Field: "ShareBytes", Quota: vram.Quota{LimitBytes: 2, ShareBytes: 3}}, *bounds)
	assert.Empty(t, h.Stats().Tenants, "who was refused is no tenant")
	for _, quota := range []vram.Quota{{ShareBytes: 3}, {LimitBytes: 3, ShareBytes: 3}} {
		require.NoError(t, h.tenant("fits", vram.Quota{}).SetQuota(quota))
	}
	x := h.tenant("x", vram.Quota{})
	assert.Same(t, x, h.tenant("x", vram.Quota{LimitBytes: 1}))
	assert.EqualValues(t, 1, x.Stats().Quota.LimitBytes)
}

// A tenant beyond its share waits for tenants that are not, even if its own stream's cache could
// serve it.
func TestATenantDoesNotJumpTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b, c := h.stream(), h.stream(), h.stream()
		greedy := h.tenant("greedy", vram.Quota{ShareBytes: mib})
		fair := h.tenant("fair", vram.Quota{ShareBytes: 32 * mib})
		pieces := make([]vram.Buffer, 4)
		for i := range pieces {
			var err error
			pieces[i], err = a.AllocFor(context.Background(), vram.Request{Bytes: mib / 2, Tenant: greedy})
			require.NoError(t, err)
		}
		x := must(t, b, 48*mib)
		first := waitFor(c, vram.Request{Bytes: 32 * mib, Tenant: fair})
		waits(t, first)
		freeAll(t, pieces[0])
		synctest.Wait()
		second := waitFor(a, vram.Request{Bytes: mib / 2, Tenant: greedy})
		waits(t, first, second)
		freeAll(t, x)
		freeAll(t, got(t, first), got(t, second))
		freeAll(t, pieces[1:]...)
		h.addsUp()
	})
}

// A request for 0 bytes is answered at once, charged to a tenant or not, with any requests waiting
// and any quota.
func TestRequestsForNothing(t *testing.T) {
	for name, quota := range map[string]vram.Quota{"no quota": {}, "exhausted": {LimitBytes: 16 * mib}, "share": {ShareBytes: mib}} {
		for _, wait := range []bool{false, true} {
			for _, waiters := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, wait=%t, waiters=%t", name, wait, waiters), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
						a, b := h.stream(), h.stream()
						guest := h.tenant("guest", quota)
						x, err := a.AllocFor(context.Background(), vram.Request{Bytes: 16 * mib, Tenant: guest})
						require.NoError(t, err)
						y := must(t, b, 48*mib)
						var first <-chan served
						if waiters {
							first = waitFor(a, vram.Request{Bytes: 16 * mib, Tenant: guest})
							waits(t, first)
						}
						for _, tenant := range []*vram.Tenant{nil, guest} {
							f := a.AllocBatchForAsync(context.Background(), vram.BatchRequest{Tenant: tenant, Wait: wait})
							synctest.Wait()
							require.True(t, f.Completed(), "the batch is not answered")
							batch, err := f.Await(context.Background())
							require.NoError(t, err)
							assert.Empty(t, batch.Buffers())
							require.NoError(t, batch.Free())
						}
						freeAll(t, x, y)
						if waiters {
							freeAll(t, got(t, first))
						}
						for _, bytes := range [][]int64{{0}, {0, 0}} { // buffers that hold nothing
							batch, err := a.AllocBatchFor(context.Background(), vram.BatchRequest{Bytes: bytes, Tenant: guest, Wait: wait})
							require.NoError(t, err)
							require.NoError(t, batch.Free())
						}
						z, err := a.AllocFor(context.Background(), vram.Request{Tenant: guest, Wait: wait})
						require.NoError(t, err)
						freeAll(t, z)
						assert.Zero(t, guest.Stats().ChargedBytes)
						assert.Zero(t, guest.Stats().Queued)
						h.addsUp()
					})
				})
			}
		}
	}
}

// The error of a wait that its context ended names memory once: tenants hold parts of the streams'
// memory.
func TestAWaitErrorSaysThatTenantsHoldPartOfTheStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
		a, b := h.stream(), h.stream()
		gold, guest := h.tenant("gold", vram.Quota{}), h.tenant("guest", vram.Quota{})
		var live []vram.Buffer
		for bytes, owner := range map[int64]*vram.Tenant{40 * mib: gold, 20 * mib: guest, 4 * mib: nil} {
			x, err := a.AllocFor(t.Context(), vram.Request{Bytes: bytes, Tenant: owner})
			require.NoError(t, err)
			live = append(live, x)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.AllocFor(ctx, vram.Request{Bytes: 8 * mib, Wait: true})
		var ended *vram.WaitError
		require.ErrorAs(t, err, &ended)
		assert.Equal(t, []pool.Holder{{Stream: 1, HeldBytes: 64 * mib}}, ended.Holders)
		assert.Equal(t, []pool.Holder{{Tenant: "gold", HeldBytes: 40 * mib}, {Tenant: "guest", HeldBytes: 20 * mib}}, ended.Tenants)
		assert.ErrorContains(t, err, "vram: waited 1s for 8 MiB on stream 2: context deadline exceeded; stream 1 holds 64 MiB; "+
			`of that tenant "gold" holds 40 MiB, tenant "guest" holds 20 MiB`)
		freeAll(t, live...)
		h.addsUp()
	})
}

// accountOf is the account of a tenant, without its counts and peaks.
func accountOf(t *vram.Tenant) vram.TenantStats {
	n := t.Stats()
	return vram.TenantStats{Name: n.Name, Quota: n.Quota, HeldBytes: n.HeldBytes, ChargedBytes: n.ChargedBytes, Queued: n.Queued}
}

// A tenant that is made again under the name of one that was closed counts from its beginning, in a difference and in a measurement.
func TestATenantMadeAgainCountsFromItsBeginning(t *testing.T) {
	t.Parallel()
	h := openHouse(t, vram.Config{LimitBytes: 64 * mib}, sim.Config{})
	s := h.stream()
	use := func(of *vram.Tenant, bytes int64, times int) {
		for range times {
			b, err := s.AllocFor(t.Context(), vram.Request{Bytes: bytes, Tenant: of})
			require.NoError(t, err)
			_, err = s.AllocFor(t.Context(), vram.Request{Bytes: 60 * mib, Tenant: of})
			require.ErrorIs(t, err, vram.ErrOutOfMemory)
			freeAll(t, b)
		}
	}
	for _, uses := range []int{1, 3, 5} { // fewer than the first one has, as many, and more
		first := h.tenant("guest", vram.Quota{})
		use(first, 32*mib, 3)
		before := h.Stats()
		var again *vram.Tenant
		m := h.Measure(func() {
			use(first, 16*mib, 1)
			require.NoError(t, first.Close())
			again = h.tenant("guest", vram.Quota{})
			use(again, 8*mib, uses)
			h.ResetPeaks() // does not change the measurement's
		})
		assert.NotEqual(t, before.Tenants[0].ID, again.Stats().ID)
		assert.Equal(t, []vram.TenantStats{again.Stats()}, h.Since(before).Tenants)
		inside := again.Stats()
		assert.Zero(t, inside.PeakHeldBytes)
		inside.PeakHeldBytes = 8 * mib
		assert.Equal(t, []vram.TenantStats{inside}, m.Stats.Tenants)
		require.NoError(t, again.Close())
	}
	h.addsUp()
}
