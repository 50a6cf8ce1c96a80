package vram

import "github.com/go-vram/vram/pool"

// Tenant is the tenant of that name: a new one, or the one that there is, whose quota is replaced. Requests that name it are
// charged to it, whatever their streams, from when they are made: its buffers, and those of its requests that wait for memory.
// What they may have is the quota's: see Quota. A request that the limit does not allow waits, with Wait, for the
// tenant's own frees, first in first out, before it waits for memory; without Wait it is refused with a *QuotaError.
//
// A tenant is also who waits and who holds memory where a deadlock is looked for, in place of the stream: give one to each
// piece of work that allocates more while it holds what it has, where several share a stream. Requests that name none cost nothing for it. It does not
// touch the device. Error: *ConfigError.
func (d *Device) Tenant(name string, q Quota) (*Tenant, error) {
	switch {
	case !d.opened():
		return nil, ErrNotOpen
	case q.LimitBytes < 0:
		return nil, &ConfigError{"Quota.LimitBytes", q.LimitBytes, "0 or more"}
	case q.ShareBytes < 0:
		return nil, &ConfigError{"Quota.ShareBytes", q.ShareBytes, "0 or more"}
	}
	for {
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

// bindTenants tells the pool who the tenants are, until it has the newest list.
func (d *Device) bindTenants() {
	e := d.engine.Load()
	if e == nil { // whoever starts it looks again
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
