package pool

import (
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/go-vram/vram/internal/pool/core"
)

// countingCharger is a request that can always be charged, and counts how often it was.
type countingCharger struct {
	tenant  *Tenant
	charged int
}

func (c *countingCharger) Tenant() *Tenant { return c.tenant }

func (c *countingCharger) Take(func(int64) bool) (taken, gone bool) {
	c.charged++
	return true, false
}

// A request whose turn panics after it was charged is not charged a second time, and later ones are charged once.
func TestAPanicChargesNoRequestTwice(t *testing.T) {
	t.Parallel()
	owner := NewTenant("owner", 1, Quota{})
	first, second := &countingCharger{tenant: owner}, &countingCharger{tenant: owner}
	q := quotas{queued: []queued{{charger: first, client: 1, token: 1}, {charger: second, client: 1, token: 2}}}
	owner.queued.Store(2)
	assert.Panics(t, func() { q.charge(owner, func(queued) { panic("planted") }) })
	assert.EqualValues(t, 1, owner.queued.Load())
	var served []uint64
	q.charge(owner, func(x queued) { served = append(served, x.token) })
	assert.Equal(t, []int{1, 1}, []int{first.charged, second.charged})
	assert.Equal(t, []uint64{2}, served)
	assert.Zero(t, owner.queued.Load())
	assert.Empty(t, q.queued)
}

// goneCharger is a request that was cancelled.
type goneCharger struct{ tenant *Tenant }

func (c goneCharger) Tenant() *Tenant { return c.tenant }

func (goneCharger) Take(func(int64) bool) (taken, gone bool) { return false, true }

// A request that was cancelled leaves the queue without a charge, and those after it are charged at once, up to the first that
// the quota does not allow; another tenant's stay.
func TestACancelledRequestHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	owner, other := NewTenant("owner", 1, Quota{}), NewTenant("other", 2, Quota{})
	var q quotas
	for i, c := range []charger{
		goneCharger{owner}, &countingCharger{tenant: other}, goneCharger{owner}, &countingCharger{tenant: owner}, refusedCharger{owner}, &countingCharger{tenant: owner},
	} {
		q.queued = append(q.queued, queued{charger: c, client: 1, token: uint64(i)}) //nolint:gosec // a few
		c.Tenant().queued.Add(1)
	}
	var served []uint64
	q.charge(owner, func(x queued) { served = append(served, x.token) })
	assert.Equal(t, []uint64{3}, served)
	var left []uint64
	for _, x := range q.queued {
		left = append(left, x.token)
	}
	assert.Equal(t, []uint64{1, 4, 5}, left)
	assert.Equal(t, [2]int32{2, 1}, [2]int32{owner.queued.Load(), other.queued.Load()})
}

// A closed tenant leaves the pool with its last refund, and no earlier.
func TestAClosedTenantLeavesWithItsLastRefund(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		owner, other := NewTenant("owner", 1, Quota{}), NewTenant("other", 2, Quota{})
		control := (*TenantControl)(owner)
		h.pool.AddTenants(owner, other)
		names := func() (all []string) {
			h.settle()
			for _, one := range h.pool.quotas.tenants() {
				all = append(all, one.Name())
			}
			return all
		}
		require.True(t, control.Charge(1))
		require.True(t, control.Charge(2))
		require.NoError(t, owner.Close())
		assert.Equal(t, []string{"owner", "other"}, names())
		control.Refund(1)
		assert.Equal(t, []string{"owner", "other"}, names())
		control.Refund(2)
		assert.Equal(t, []string{"other"}, names())
	})
}

// largeCharger is a request that its tenant's quota does not allow.
type largeCharger struct{ tenant *Tenant }

func (c largeCharger) Tenant() *Tenant { return c.tenant }

func (c largeCharger) Take(take func(int64) bool) (taken, gone bool) { return take(8), false }

// A closed tenant without charges stays while a request waits for its quota, which may have been lowered since, and leaves the
// pool with the last of these, however that ends.
func TestAClosedTenantStaysForItsQueue(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		owner := NewTenant("owner", 1, Quota{LimitBytes: 4})
		h.pool.AddTenants(owner)
		inTurn := func(run func(q *quotas)) {
			require.NoError(t, h.pool.question(t.Context(), &question{run: func() { run(&h.pool.quotas) }}))
		}
		stays := func() bool {
			h.settle()
			return len(h.pool.quotas.tenants()) == 1
		}
		none := func(queued) { assert.Fail(t, "the quota does not allow it") }
		for token := range uint64(2) {
			inTurn(func(q *quotas) {
				q.enqueue(queued{charger: largeCharger{owner}, client: 1, token: token})
				q.charge(owner, none)
			})
		}
		require.NoError(t, owner.Close())
		assert.True(t, stays(), "two requests wait")
		inTurn(func(q *quotas) { q.unqueue(1, 0, none) })
		assert.True(t, stays(), "one waits")
		inTurn(func(q *quotas) { q.unqueue(1, 1, none) })
		assert.False(t, stays())
	})
}

// A request that is denied while it waits for its quota leaves the queue, also if it is denied at once or is the only one: the tenant
// is charged again.
func TestADeniedRequestLeavesTheQueueForItsQuota(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"it waits", "at once", "withdrawn"} {
		for count := 1; count <= 2; count++ {
			atOnce := way == "at once"
			h := build(t, roomy(8))
			owner := NewTenant("owner", 1, Quota{LimitBytes: 4})
			h.pool.AddTenants(owner)
			c := h.testClient(1)
			if !atOnce { // frees of another client could serve it: it waits
				h.testClient(2).must(1)
			}
			var answers []<-chan answer
			var tokens []uint64
			for range count {
				r, answer := c.expect(1)
				r.Patience, r.Place = core.Waiting, core.Place{Unready: true, Account: owner.account(), Age: h.pool.NextAge(), Align: 1}
				h.pool.RefillLater(c, r, largeCharger{owner})
				answers, tokens = append(answers, answer), append(tokens, r.Token)
			}
			if !atOnce {
				require.Equal(t, count, owner.Stats().Queued)
				assert.False(t, (*TenantControl)(owner).Charge(1), "others wait")
			}
			switch way {
			case "it waits":
				h.pool.Leave(c.id, true)
			case "withdrawn":
				for i, token := range tokens {
					h.pool.Withdraw(c.id, token)
					h.inTurn(func() {})
					assert.Equal(t, count-1-i, owner.Stats().Queued)
				}
				answers = nil // there are none
			}
			for _, answer := range answers {
				require.Error(t, (<-answer).err)
			}
			h.settle()
			assert.Zero(t, owner.Stats().Queued)
			assert.True(t, (*TenantControl)(owner).Charge(1))
		}
	}
}

// patientCharger is a request that takes its bytes as soon as its tenant's quota allows it.
type patientCharger struct{ tenant *Tenant }

func (c patientCharger) Tenant() *Tenant { return c.tenant }

func (c patientCharger) Take(take func(int64) bool) (taken, gone bool) { return take(8), false }

// The demand ends with the last request that waits, also where that waited for its quota alone.
func TestTheDemandEndsWithTheWaitForAQuota(t *testing.T) {
	t.Parallel()
	eachKind(t, func(k kind) {
		t := k.T
		h := k.build(t, roomy(32))
		a := h.testClient(1)
		a.must(1)
		_, err := h.pool.Warm(t.Context(), []uint32{8}) // as much as the request wants
		require.NoError(t, err)
		owner := NewTenant("owner", 1, Quota{LimitBytes: 8})
		control := (*TenantControl)(owner)
		h.pool.AddTenants(owner)
		require.True(t, control.Charge(8))
		r, answer := a.expect(4)
		r.Patience, r.Place = core.Waiting, core.Place{Account: owner.account(), Age: 1, Unready: true}
		h.pool.RefillLater(a, r, patientCharger{owner})
		require.Equal(t, 1, h.snapshot().Waits.Waiting)
		require.Positive(t, h.pool.Demand())
		control.Refund(8)
		require.NoError(t, (<-answer).err)
		assert.Zero(t, h.pool.Demand())
		assert.EqualValues(t, 8, owner.charged.Load())
	})
}

// A list of tenants that a goroutine reads stays as it is while tenants come and go, in any order.
func TestAListOfTenantsThatIsReadStays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q quotas
		present := map[uint32]bool{}
		var lists, copies [][]*Tenant
		for _, id := range rapid.SliceOfN(rapid.Uint32Range(1, 9), 1, 20).Draw(t, "ids") {
			lists, copies = append(lists, q.tenants()), append(copies, slices.Clone(q.tenants()))
			owner := NewTenant("", id, Quota{})
			if present[id] && rapid.Bool().Draw(t, "goes") {
				at, _ := find(q.tenants(), id)
				owner = q.tenants()[at]
				owner.closed.Store(true)
				q.drop(owner)
				delete(present, id)
			} else {
				q.enlist(owner)
				present[id] = true
			}
			require.Len(t, q.tenants(), len(present))
			require.True(t, slices.IsSortedFunc(q.tenants(), func(a, b *Tenant) int { return cmp.Compare(a.id, b.id) }))
			for i := range lists {
				require.Equal(t, copies[i], lists[i])
			}
		}
	})
}

// A quota is too small for more bytes than its limit, from a limit of one byte on; without a limit it is for none.
func TestWhatIsTooLargeForAQuota(t *testing.T) {
	t.Parallel()
	for limit := range int64(4) {
		control := (*TenantControl)(NewTenant("", 1, Quota{LimitBytes: limit}))
		for bytes := range int64(6) {
			assert.Equal(t, limit > 0 && bytes > limit, control.TooLarge(bytes), "%d of %d", bytes, limit)
		}
	}
}

// Goroutines that charge a tenant at once never exceed its quota together.
func TestQuotasAmongGoroutines(t *testing.T) {
	const rounds = 200_000
	tenant := NewTenant("shared", 1, Quota{LimitBytes: 3})
	var all sync.WaitGroup
	var inside, most, refused atomic.Int64
	for range max(2, runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for range rounds {
				if !tenant.take(2) {
					refused.Add(1)
					continue
				}
				if n := inside.Add(1); n > most.Load() {
					most.Store(n)
				}
				if refused.Load() == 0 { // until others ask, too
					runtime.Gosched()
				}
				inside.Add(-1)
				tenant.charged.Add(-2)
			}
		})
	}
	all.Wait()
	require.Positive(t, refused.Load())
	assert.EqualValues(t, 1, most.Load())
	assert.Zero(t, tenant.charged.Load())
}
