package pool

import (
	"slices"
	"sort"
	"sync/atomic"

	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/pool/core"
)

// charger is a request that waits for its tenant's quota.
type charger interface {
	// Tenant is the charged tenant.
	Tenant() *Tenant
	// Take charges the tenant, and reports whether it could. gone: the request was cancelled, and
	// nothing is charged.
	Take(take func(bytes int64) bool) (taken, gone bool)
}

// queued is a Refill that waits for a quota.
type queued struct {
	charger charger
	client  core.Client
	token   uint64
}

// quotas are the tenants of a pool, and the Refills that wait for their quotas.
type quotas struct {
	all atomic.Pointer[[]*Tenant] // that are open or have charges, by rising ID; the turn replaces it

	// Owned by the turn.
	queued  []queued            // in order of arrival
	holding []admission.Account // scratch
	usage   []admission.Usage   // scratch
}

// tenants returns the tenants of the pool.
func (q *quotas) tenants() []*Tenant {
	if all := q.all.Load(); all != nil {
		return *all
	}
	return nil
}

// find returns the place of a tenant's ID.
func find(all []*Tenant, id uint32) (at int, found bool) {
	at = sort.Search(len(all), func(at int) bool { return all[at].id >= id })
	return at, at < len(all) && all[at].id == id
}

// enlist adds a tenant, unless it is there. Most come last: those who read the list have a shorter one of the same array.
func (q *quotas) enlist(t *Tenant) {
	all := q.tenants()
	at, found := find(all, t.id)
	if found {
		return
	}
	if at < len(all) {
		all = slices.Clone(all)
	}
	all = slices.Insert(all, at, t)
	q.all.Store(&all)
}

// drop removes a tenant that is closed, once it has no charges and none of its requests waits for them.
func (q *quotas) drop(t *Tenant) {
	if !t.closed.Load() || t.charged.Load() != 0 || t.queued.Load() != 0 {
		return
	}
	all := q.tenants()
	if at, found := find(all, t.id); found {
		all = append(slices.Clone(all[:at]), all[at+1:]...)
		q.all.Store(&all)
	}
}

// tenantOf returns the tenant of an account; nil: it is a stream's.
func (q *quotas) tenantOf(a admission.Account) *Tenant {
	if a < tenantAccounts {
		return nil
	}
	all := q.tenants()
	if at, found := find(all, uint32(a-tenantAccounts)); found { //nolint:gosec // as account adds it
		return all[at]
	}
	return nil
}

// accounts returns the tenants that hold memory, and the usage of those with a share; with none both
// are empty. The slices are valid until the next call.
func (q *quotas) accounts(none bool) ([]admission.Account, []admission.Usage) {
	q.holding, q.usage = q.holding[:0], q.usage[:0]
	if none {
		return q.holding, q.usage
	}
	for _, t := range q.tenants() {
		if t.held.Load() > 0 {
			q.holding = append(q.holding, t.account())
		}
		if share := t.quota.Load().ShareBytes; share > 0 {
			q.usage = append(q.usage, admission.Usage{Account: t.account(), ChargedBytes: t.charged.Load(), ShareBytes: share})
		}
	}
	return q.holding, q.usage
}

// enqueue makes a Refill wait for its tenant's quota. Call charge after it: a free from here on recharges, one before did not.
func (q *quotas) enqueue(x queued) {
	q.enlist(x.charger.Tenant())
	q.queued = append(q.queued, x)
	x.charger.Tenant().queued.Add(1)
}

// charge admits waiting Refills of a tenant, in order, as far as its quota allows. Each leaves the queue first, so that it is
// not charged again after a panic.
func (q *quotas) charge(t *Tenant, ready func(queued)) {
	for at := 0; at < len(q.queued); {
		x := q.queued[at]
		if x.charger.Tenant() != t {
			at++
			continue
		}
		taken, gone := x.charger.Take(t.take)
		if !taken && !gone {
			return
		}
		q.queued = slices.Delete(q.queued, at, at+1)
		t.queued.Add(-1)
		if taken {
			ready(x)
		}
	}
}

// unqueue removes a Refill that waits for no quota any more.
func (q *quotas) unqueue(id core.Client, token uint64, ready func(queued)) {
	at := 0
	for at < len(q.queued) && (q.queued[at].client != id || q.queued[at].token != token) {
		at++
	}
	if at == len(q.queued) {
		return
	}
	t := q.queued[at].charger.Tenant()
	q.queued = slices.Delete(q.queued, at, at+1)
	t.queued.Add(-1)
	q.charge(t, ready)
	q.drop(t)
}
