package vram

import (
	"cmp"
	"errors"
	"maps"
	"sync/atomic"

	"github.com/go-vram/vram/internal/order"
	"github.com/go-vram/vram/pool"
)

// ErrTenantClosed refuses a request that names a tenant after its Close.
var ErrTenantClosed = pool.ErrTenantClosed

// Tenant returns the account of that name, which is not empty, with the quota. If there is one already its quota is
// replaced. A request that names the tenant (Request.Tenant, BatchRequest.Tenant), on any stream,
// is charged to it from its beginning until its buffer is freed, so while it waits, too. See Quota
// for the bounds of a tenant. A request beyond Quota.LimitBytes is refused with a *QuotaError or,
// with Wait, waits for the tenant's own frees, first in first out, and only then for memory.
//
// Where deadlocks are looked for, it is tenants that hold memory and wait for it, in place of
// streams: where several pieces of work share a stream, and each allocates while it holds memory,
// give each a tenant. Requests without a tenant pay nothing for all this. The call makes no driver
// call and does not wait. Tenant.Close ends a tenant. Errors: *ConfigError, *QuotaBoundsError, ErrClosed, ErrNotOpen.
func (d *Device) Tenant(name string, q Quota) (*Tenant, error) {
	if !d.opened() {
		return nil, ErrNotOpen
	}
	if name == "" {
		return nil, badArgument("Device.Tenant", "name", name, "a name that is not empty")
	}
	if err := pool.CheckQuota(q); err != nil {
		return nil, err
	}
	part := d.tenants.part(name)
	for {
		if d.closed.Load() {
			return nil, deviceClosed()
		}
		old := part.Load()
		if t := old.named(name); t != nil {
			if err := t.SetQuota(q); !errors.Is(err, ErrTenantClosed) {
				return t, err
			}
		}
		t := pool.NewTenant(name, d.tenants.last.Add(1), q)
		(*pool.TenantControl)(t).OnClose(func() { d.tenants.drop(t) })
		if part.CompareAndSwap(old, old.with(name, t)) {
			if e := d.engine.Load(); e != nil { // else the first use does it
				e.pool.AddTenants(t)
			}
			return t, nil
		}
	}
}

// tenantParts is how many parts the names are in. Not fewer: a new name copies its part, 40 names of 10,000. Not more: each part
// is a word of every device.
const tenantParts = 256

// tenants are the open tenants of a device by name. Any number of goroutines may use them.
type tenants struct {
	parts [tenantParts]atomic.Pointer[tenantNames] // replaced, never changed
	last  atomic.Uint32                            // ID
}

// tenantNames is a part.
type tenantNames struct{ all map[string]*Tenant }

func (n *tenantNames) named(name string) *Tenant {
	if n == nil {
		return nil
	}
	return n.all[name]
}

// with is a copy in which a name stands for a tenant.
func (n *tenantNames) with(name string, t *Tenant) *tenantNames {
	next := &tenantNames{map[string]*Tenant{}}
	if n != nil {
		next.all = maps.Clone(n.all)
	}
	next.all[name] = t
	return next
}

// part is that of a name.
func (s *tenants) part(name string) *atomic.Pointer[tenantNames] {
	h := uint32(2166136261) // FNV-1a
	for _, c := range []byte(name) {
		h = (h ^ uint32(c)) * 16777619
	}
	return &s.parts[h%tenantParts]
}

// drop removes a tenant, unless another one has its name already.
func (s *tenants) drop(t *Tenant) {
	part := s.part(t.Name())
	for {
		old := part.Load()
		if old.named(t.Name()) != t {
			return
		}
		var next *tenantNames
		if len(old.all) > 1 {
			next = &tenantNames{maps.Clone(old.all)}
			delete(next.all, t.Name())
		}
		if part.CompareAndSwap(old, next) {
			return
		}
	}
}

// list are the open tenants, in order of their making.
func (s *tenants) list() (all []*Tenant) {
	for i := range s.parts {
		if n := s.parts[i].Load(); n != nil {
			for _, t := range n.all {
				all = append(all, t)
			}
		}
	}
	order.By(all, func(a, b **Tenant) int {
		return cmp.Compare((*pool.TenantControl)(*a).ID(), (*pool.TenantControl)(*b).ID())
	})
	return all
}
