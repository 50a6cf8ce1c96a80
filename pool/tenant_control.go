package pool

import "github.com/go-vram/vram/pool/core/admission"

// TenantControl is a tenant as streams and the pool have it: what they charge to a tenant, and no caller does. A *Tenant converts to it.
// Any number of goroutines may use it.
type TenantControl Tenant

// Of reports whether requests on that pool's memory may name the tenant: ErrNotOpen for a nil or zero Tenant, ErrForeign for one of
// another device.
func (t *TenantControl) Of(p *Pool) error {
	if !(*Tenant)(t).made() {
		return ErrNotOpen
	}
	if at := t.pool.Load(); at != p {
		return ErrForeign
	}
	return nil
}

// Charge takes so many bytes of the quota, if it allows them and nobody waits for it before. Nothing is always allowed.
func (t *TenantControl) Charge(bytes int64) bool {
	return bytes == 0 || t.queued.Load() == 0 && (*Tenant)(t).take(bytes)
}

// Refund gives back what a request was charged that got nothing. It does not wait, and may be called inside a turn.
func (t *TenantControl) Refund(bytes int64) {
	t.charged.Add(-bytes)
	if t.queued.Load() > 0 {
		(*Tenant)(t).recharge()
	}
}

// Hold says that what was charged has become a buffer.
func (t *TenantControl) Hold(bytes int64) { t.held.Add(bytes) }

// Paid says that a buffer was freed: magazines call it.
func (t *TenantControl) Paid(bytes int64) {
	t.held.Add(-bytes)
	t.Refund(bytes)
}

// Exclusive reports whether one goroutine works for the tenant: see Quota.
func (t *TenantControl) Exclusive() bool { return t.quota.Load().Exclusive }

// Account is the tenant's among those that wait and hold.
func (t *TenantControl) Account() admission.Account { return (*Tenant)(t).account() }

// Refuse is the error of a request that the quota does not allow.
func (t *TenantControl) Refuse(bytes int64) error {
	return &QuotaError{Tenant: t.name, RequestedBytes: bytes, ChargedBytes: t.charged.Load(), Quota: *t.quota.Load()}
}

// TooLarge reports whether a request could not be served even if the tenant had nothing else.
func (t *TenantControl) TooLarge(bytes int64) bool {
	limit := t.quota.Load().LimitBytes
	return limit > 0 && bytes > limit
}

// tenantAccounts is where the accounts of tenants begin: those of streams have their ids.
const tenantAccounts admission.Account = 1 << 32

// account is the tenant's among those that wait and hold.
func (t *Tenant) account() admission.Account { return tenantAccounts + admission.Account(t.id) }

// take charges the tenant, if its quota allows that.
func (t *Tenant) take(bytes int64) bool {
	limit := t.quota.Load().LimitBytes
	for {
		old := t.charged.Load()
		if limit > 0 && bytes > limit-old {
			return false
		}
		if t.charged.CompareAndSwap(old, old+bytes) {
			return true
		}
	}
}

// recharge has the requests tried that wait for the tenant's quota. It does not wait, and may be called inside a turn.
func (t *Tenant) recharge() {
	if p := t.pool.Load(); p != nil {
		p.ref.Tell(&recharge{tenant: t})
	}
}
