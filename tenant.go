package vram

import "github.com/go-vram/vram/pool"

// Tenant returns the account of that name, which is not empty, with the quota. If there is one already its quota is
// replaced. A request that names the tenant (Request.Tenant, BatchRequest.Tenant), on any stream,
// is charged to it from its beginning until its buffer is freed, so while it waits, too. See Quota
// for the bounds of a tenant. A request beyond Quota.LimitBytes is refused with a *QuotaError or,
// with Wait, waits for the tenant's own frees, first in first out, and only then for memory.
//
// Where deadlocks are looked for, it is tenants that hold memory and wait for it, in place of
// streams: where several pieces of work share a stream, and each allocates while it holds memory,
// give each a tenant. Requests without a tenant pay nothing for all this. The call makes no driver
// call and does not wait. Errors: *ConfigError, *QuotaBoundsError, ErrClosed, ErrNotOpen.
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
	for {
		if d.closed.Load() {
			return nil, deviceClosed()
		}
		old := d.tenants.Load()
		var all []*Tenant
		if old != nil {
			all = *old
		}
		for _, t := range all {
			if t.Name() == name {
				return t, t.SetQuota(q)
			}
		}
		t := pool.NewTenant(name, uint32(len(all)+1), q) //nolint:gosec // a count
		next := append(append([]*Tenant(nil), all...), t)
		if d.tenants.CompareAndSwap(old, &next) {
			d.bindTenants()
			return t, nil
		}
	}
}

// bindTenants passes the tenants to the pool, until it has the newest list.
func (d *Device) bindTenants() {
	e := d.engine.Load()
	if e == nil { // the first use binds them
		return
	}
	for {
		all := d.tenantList()
		e.pool.SetTenants(all)
		if len(all) == len(d.tenantList()) {
			return
		}
	}
}

// tenantList are the tenants, in order of their making.
func (d *Device) tenantList() []*Tenant {
	if all := d.tenants.Load(); all != nil {
		return *all
	}
	return nil
}
