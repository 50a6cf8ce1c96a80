package pool

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/admission"
)

// A driver without peer access, or without the calls for it, gives no device access.
func TestADriverWithoutPeers(t *testing.T) {
	t.Parallel()
	h := prepare(t)
	h.device = struct{ cudadrv.Device }{h.device}
	h.open(roomy(8))
	require.ErrorIs(t, h.pool.EnablePeer(1), ErrNoPeerAccess)
	require.NoError(t, h.pool.Close())
	h.assertEmpty()
}

// A reservation has no stream: it can wait for no fence, has no work, and tells no usage.
func TestAReservationHasNoStream(t *testing.T) {
	t.Parallel()
	var c Client = &reservationClient{}
	require.ErrorIs(t, c.Follow(fence.Mark{}), errNoStream)
	assert.True(t, c.Idle())
	assert.Zero(t, c.Usage())
}

// There is no last snapshot before the first.
func TestTheLastSnapshot(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(8))
	_, ok := h.pool.LastSnapshot()
	assert.False(t, ok)
	h.testClient(1).must(3)
	want := h.settle()
	last, ok := h.pool.LastSnapshot()
	assert.True(t, ok)
	assert.Equal(t, want.LentBytes, last.LentBytes)
}

// A tenant holds memory from the first byte on, and has a share from the first byte on.
func TestTenantsCountFromTheirFirstByte(t *testing.T) {
	t.Parallel()
	for held := range int64(3) {
		for share := range int64(3) {
			owner := NewTenant("owner", 7, Quota{ShareBytes: share})
			control := (*TenantControl)(owner)
			require.True(t, control.Charge(held))
			control.Hold(held)
			var q quotas
			q.enlist(owner)
			holding, usage := q.accounts(false)
			assert.Equal(t, held > 0, slices.Contains(holding, owner.account()), "%d bytes", held)
			assert.Equal(t, held > 0, len(q.holders()) == 1, "%d bytes", held)
			if share > 0 {
				assert.Equal(t, []admission.Usage{{Account: owner.account(), ChargedBytes: held, ShareBytes: share}}, usage)
			} else {
				assert.Empty(t, usage)
			}
			holding, usage = q.accounts(true)
			assert.Empty(t, holding)
			assert.Empty(t, usage)
		}
	}
}

// A refund tells the pool only if a request waits for the quota, or the tenant is closed and it was the last: each free of a
// tenant's buffer makes one.
func TestARefundThatMattersToNobodySendsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		queued       int32
		left         int64
		closed, told bool
	}{
		"nobody waits":                {},
		"nobody waits, some is left":  {left: 1},
		"one waits":                   {queued: 1, told: true},
		"closed, some is left":        {left: 1, closed: true},
		"closed, and the last":        {closed: true, told: true},
		"closed, some is left, waits": {queued: 1, left: 1, closed: true, told: true},
	} {
		t.Run(name, func(t *testing.T) { // the pool of the case before is closed, and allocates nothing
			h := build(t, roomy(8))
			owner := NewTenant("owner", 7, Quota{})
			h.pool.AddTenants(owner)
			const refunds = 20
			owner.charged.Store(refunds + c.left)
			owner.closed.Store(c.closed)
			owner.queued.Add(c.queued)
			leave := h.occupy() // messages stay in the queue
			allocs := testing.AllocsPerRun(refunds-1, func() {
				owner.charged.Store(1 + c.left)
				(*TenantControl)(owner).Refund(1)
			})
			leave()
			assert.Equal(t, c.told, allocs > 0)
			owner.queued.Add(-c.queued)
			owner.charged.Store(0)
		})
	}
}

// Holders come by their bytes, the largest first, then by their streams and by their tenants' names, in whichever order they
// were.
func TestTheOrderOfHolders(t *testing.T) {
	t.Parallel()
	want := []Holder{
		{Tenant: "b", HeldBytes: 9},
		{Stream: 1, HeldBytes: 5},
		{Stream: 2, HeldBytes: 5},
		{Stream: 2, Tenant: "a", HeldBytes: 5},
		{Stream: 2, Tenant: "b", HeldBytes: 5},
		{Stream: 3, HeldBytes: 5},
		{Stream: 1, HeldBytes: 4},
		{HeldBytes: 0},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		all := slices.Clone(want)
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		byBytes(all)
		require.Equal(t, want, all)
	}
}

// A Wake that the driver refuses says so, with all that the driver could give; one that the limit refuses has neither.
func TestARefusedWakeSaysWhoRefused(t *testing.T) {
	t.Parallel()
	h := build(t, roomy(16))
	a, b := h.testClient(1), h.testClient(2)
	h.pool.Apart(1)
	a.must(6)
	sleeping, err := h.pool.Sleep(t.Context(), 1)
	require.NoError(t, err)
	assert.EqualValues(t, 6*page, sleeping)
	run := b.must(12)
	want := OutOfMemoryError{
		RequestedBytes: 6 * page, Stream: 1, ReservedBytes: 12 * page, LimitBytes: 16 * page, MissingBytes: 6 * page,
		Streams: []Holding{{Stream: 1, HeldBytes: 6 * page, LiveBytes: 6 * page}, {Stream: 2, HeldBytes: 12 * page, LiveBytes: 12 * page}},
	}
	wake := func() OutOfMemoryError {
		t.Helper()
		short, ok := errors.AsType[*OutOfMemoryError](h.pool.Wake(t.Context(), 1))
		require.True(t, ok)
		return *short
	}
	assert.Equal(t, want, wake())
	require.NoError(t, h.pool.Reconfigure(t.Context(), roomy(32)))
	h.faults.SetCapacity(15 * page)
	short := wake()
	require.ErrorIs(t, &short, cudadrv.OutOfMemory)
	want.LimitBytes, want.DriverBytes, want.Cause = 32*page, 15*page, short.Cause
	assert.Equal(t, want, short)
	assert.Contains(t, short.Remedies(), Remedy{Kind: FreeElsewhere, Bytes: 3 * page})
	h.faults.SetCapacity(18 * page)
	require.NoError(t, h.pool.Wake(t.Context(), 1))
	b.free(run)
}
