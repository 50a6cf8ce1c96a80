package pool

import (
	"time"

	"github.com/go-vram/vram/internal/pool/admission"
	"github.com/go-vram/vram/internal/watermark/shared"
)

// TenantControl is a tenant as streams and the pool use it: they charge it and refund it. A *Tenant
// converts to it, so that callers see none of these methods. Any number of goroutines may use it.
type TenantControl Tenant

// OnClose sets a function that Close calls. Call it once, before requests name the tenant.
func (t *TenantControl) OnClose(f func()) { t.onClose = f }

// ID returns the number that NewTenant was given.
func (t *TenantControl) ID() uint32 { return t.id }

// Of returns the error of requests on that pool's memory that name the tenant: ErrNotOpen for a nil
// or zero Tenant, ErrForeign for one of another device, ErrTenantClosed.
func (t *TenantControl) Of(p *Pool) error {
	if !(*Tenant)(t).made() {
		return ErrNotOpen
	}
	switch {
	case t.pool.Load() != p:
		return ErrForeign
	case t.closed.Load():
		return ErrTenantClosed
	}
	return nil
}

// Enlisted reports whether a pool knows the tenant: see Pool.AddTenants.
func (t *TenantControl) Enlisted() bool {
	p := t.pool.Load()
	if p == nil {
		return false
	}
	_, found := find(p.quotas.tenants(), t.id)
	return found
}

// Charge takes so many bytes of the quota, if it allows them and no other request waits for it. 0
// is always allowed.
func (t *TenantControl) Charge(bytes int64) bool {
	return bytes == 0 || t.queued.Load() == 0 && (*Tenant)(t).take(bytes)
}

// Refund undoes the charge of a request that got nothing. It does not wait, and may be called
// inside a turn.
func (t *TenantControl) Refund(bytes int64) {
	left := t.charged.Add(-bytes)
	if t.queued.Load() > 0 || left == 0 && t.closed.Load() {
		(*Tenant)(t).recharge()
	}
}

// Hold notes that a charge has become a buffer.
func (t *TenantControl) Hold(bytes int64) {
	t.allocs.Add(1)
	t.heldPeak.Raise(t.held.Add(bytes))
}

// PayerName returns the tenant's name, for magazines.
func (t *TenantControl) PayerName() string { return t.name }

// Paid ends the charge of a buffer that was freed: magazines call it.
func (t *TenantControl) Paid(bytes int64) {
	t.frees.Add(1)
	t.held.Add(-bytes)
	t.Refund(bytes)
}

// Exclusive reports whether one goroutine works for the tenant: see Quota.
func (t *TenantControl) Exclusive() bool { return t.quota.Load().Exclusive }

// Account returns the tenant's account in the order of waiting requests.
func (t *TenantControl) Account() admission.Account { return (*Tenant)(t).account() }

// Refuse returns the error of a request that the quota does not allow, and counts it.
func (t *TenantControl) Refuse(bytes int64) error { return t.tally.Refuse(t.Over(bytes)) }

// Over describes why the quota does not allow so many bytes.
func (t *TenantControl) Over(bytes int64) *QuotaError {
	return &QuotaError{
		Tenant: t.name, RequestedBytes: bytes, ChargedBytes: t.charged.Load(), Quota: *t.quota.Load(),
		HeldBytes: t.held.Load(), Queued: int(t.queued.Load()),
	}
}

// TooLarge reports whether the quota is smaller than the request.
func (t *TenantControl) TooLarge(bytes int64) bool {
	limit := t.quota.Load().LimitBytes
	return limit > 0 && bytes > limit
}

// tenantAccounts is the number of the first tenant account: accounts of streams have the streams'
// ids.
const tenantAccounts admission.Account = 1 << 32

// account is Account, for the pool.
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
			if old == 0 && t.closed.Load() { // a request that began before Close: the pool may have dropped the tenant
				t.pool.Load().ref.Tell(&enlist{tenants: []*Tenant{t}})
			}
			return true
		}
	}
}

// recharge retries the requests that wait for the tenant's quota, and drops the tenant from the pool if it is closed and has no
// charge left. It does not wait, and may be called inside a turn.
func (t *Tenant) recharge() {
	if p := t.pool.Load(); p != nil {
		p.ref.Tell(&recharge{tenant: t})
	}
}

// OutOfMemory counts a request of the tenant that ended for want of memory.
func (t *TenantControl) OutOfMemory() { t.tally.OutOfMemory() }

// NoteWait counts how long a request of the tenant has waited.
func (t *TenantControl) NoteWait(d time.Duration) { t.waits.NoteWait(d) }

// ResetPeak restarts the peak of the bytes in buffers at the present value, and the longest wait.
func (t *TenantControl) ResetPeak() {
	t.heldPeak.Reset(t.held.Load())
	t.waits.resetLongest()
}

// BeginScope begins a scope of that peak.
func (t *TenantControl) BeginScope() *shared.Scope { return t.heldPeak.Begin(t.held.Load()) }
