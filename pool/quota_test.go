package pool

import (
	"testing"

	"github.com/stretchr/testify/assert"
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

// A request that is charged, and whose turn panics then, is not charged a second time, and those
// behind it are charged once.
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
