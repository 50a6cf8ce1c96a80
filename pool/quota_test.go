package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
