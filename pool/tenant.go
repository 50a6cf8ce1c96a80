package pool

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/pool/core/admission"
)

// ErrQuota is the kind of every *QuotaError.
var ErrQuota = errors.New("vram: over the quota")

// Quota bounds a tenant, in bytes of buffers rounded to their blocks.
type Quota struct {
	// LimitBytes bounds the bytes in buffers of the tenant and in its requests that wait for
	// memory: a request beyond it waits for the tenant's own frees, or is refused. 0: no bound.
	LimitBytes int64
	// ShareBytes is the part of the memory that the tenant has a right to. Beyond it the tenant
	// borrows: a request that must ask the pool gets memory only while no request within a share,
	// and none without a tenant, waits. Of waiting tenants of one priority the one with the
	// smallest use relative to its share comes first, so that tenants which always want more get
	// memory in proportion to their shares, for any sum of shares. Only frees return borrowed
	// memory. 0: all use is within the share.
	ShareBytes int64
	// Exclusive declares that one goroutine works for the tenant, as Stream.Exclusive does for a
	// stream: while it waits for memory the tenant frees nothing. Without it a tenant may have any
	// number of callers, and the others may free while one waits.
	Exclusive bool
}

// Tenant is an account that requests are charged to, on any stream. Any number of goroutines may
// use it.
type Tenant struct {
	name  string
	id    uint32
	pool  atomic.Pointer[Pool] // nil before the first use of the device
	quota atomic.Pointer[Quota]

	charged atomic.Int64 // buffers, and waiting requests
	held    atomic.Int64 // of charged: buffers
	queued  atomic.Int32 // requests that wait for its quota; changed in the pool's turns
}

// made reports whether NewTenant made the tenant.
func (t *Tenant) made() bool { return t != nil && t.quota.Load() != nil }

// Of returns the error of requests on that pool's memory that name it: ErrNotOpen for a nil or zero
// Tenant, ErrForeign for one of another device.
func (t *Tenant) Of(p *Pool) error {
	if !t.made() {
		return ErrNotOpen
	}
	if at := t.pool.Load(); at != p {
		return ErrForeign
	}
	return nil
}

// NewTenant makes a tenant with a number that no other tenant of the device has.
func NewTenant(name string, id uint32, q Quota) *Tenant {
	t := &Tenant{name: name, id: id}
	t.quota.Store(&q)
	return t
}

// TenantStats is a tenant's part of the statistics.
type TenantStats struct {
	Name         string
	Quota        Quota
	HeldBytes    int64 // in buffers
	ChargedBytes int64 // in buffers, and in its requests that wait for memory
	Queued       int   // requests that wait for its quota
}

// Stats are the tenant's current figures.
func (t *Tenant) Stats() TenantStats {
	if !t.made() {
		return TenantStats{}
	}
	return TenantStats{t.name, *t.quota.Load(), t.held.Load(), t.charged.Load(), int(t.queued.Load())}
}

// Name is the tenant's name.
func (t *Tenant) Name() string {
	if t == nil {
		return ""
	}
	return t.name
}

// SetQuota replaces the quota. Memory beyond it stays until it is freed. Errors: ErrNegative for a
// negative bound, which changes nothing, and ErrNotOpen.
func (t *Tenant) SetQuota(q Quota) error {
	switch {
	case !t.made():
		return ErrNotOpen
	case q.LimitBytes < 0:
		return fmt.Errorf("%w: Quota.LimitBytes is %d", ErrNegative, q.LimitBytes)
	case q.ShareBytes < 0:
		return fmt.Errorf("%w: Quota.ShareBytes is %d", ErrNegative, q.ShareBytes)
	}
	t.quota.Store(&q)
	t.recharge()
	return nil
}

// Bind sets the pool of the tenant's requests.
func (t *Tenant) Bind(p *Pool) { t.pool.Store(p) }

// Charge takes so many bytes of the quota, if it allows them and no other request waits for it. 0
// is always allowed.
func (t *Tenant) Charge(bytes int64) bool { return bytes == 0 || t.queued.Load() == 0 && t.take(bytes) }

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

// Refund undoes the charge of a request that got nothing. It does not wait, and may be called
// inside a turn.
func (t *Tenant) Refund(bytes int64) {
	t.charged.Add(-bytes)
	if t.queued.Load() > 0 {
		t.recharge()
	}
}

// Hold notes that a charge has become a buffer.
func (t *Tenant) Hold(bytes int64) { t.held.Add(bytes) }

// Paid ends the charge of a buffer that was freed. It implements magazine.Payer.
func (t *Tenant) Paid(bytes int64) {
	t.held.Add(-bytes)
	t.Refund(bytes)
}

// Exclusive reports whether one goroutine works for the tenant: see Quota.
func (t *Tenant) Exclusive() bool { return t.made() && t.quota.Load().Exclusive }

// Account is the tenant's account in the order of waiting requests.
func (t *Tenant) Account() admission.Account { return tenantAccounts + admission.Account(t.id) }

// tenantAccounts is the number of the first tenant account: accounts of streams have the streams'
// ids.
const tenantAccounts admission.Account = 1 << 32

// Refuse is the error of a request that the quota does not allow.
func (t *Tenant) Refuse(bytes int64) error {
	return &QuotaError{Tenant: t.name, RequestedBytes: bytes, ChargedBytes: t.charged.Load(), Quota: *t.quota.Load()}
}

// TooLarge reports whether the quota is smaller than the request.
func (t *Tenant) TooLarge(bytes int64) bool {
	limit := t.quota.Load().LimitBytes
	return limit > 0 && bytes > limit
}

// QuotaError refuses a request of a tenant that its quota does not allow.
type QuotaError struct {
	Tenant         string
	RequestedBytes int64 // rounded to blocks
	ChargedBytes   int64 // to the tenant already
	Quota          Quota
}

// Error has the figures in one line.
func (e *QuotaError) Error() string {
	if e.RequestedBytes > e.Quota.LimitBytes {
		return fmt.Sprintf("vram: tenant %q is over its quota: requested %s of a limit of %s; what would help: a Quota.LimitBytes of at least %s",
			e.Tenant, units.Bytes(e.RequestedBytes), units.Bytes(e.Quota.LimitBytes), units.AtLeast(e.RequestedBytes))
	}
	return fmt.Sprintf("vram: tenant %q is over its quota: requested %s, charged %s of a limit of %s; "+
		"what would help: Request.Wait, for the tenant's own frees, or a Quota.LimitBytes of at least %s",
		e.Tenant, units.Bytes(e.RequestedBytes), units.Bytes(e.ChargedBytes), units.Bytes(e.Quota.LimitBytes),
		units.AtLeast(e.ChargedBytes+e.RequestedBytes))
}

// Is makes errors.Is(err, ErrQuota) hold.
func (e *QuotaError) Is(target error) bool { return target == ErrQuota }

// recharge retries the requests that wait for the tenant's quota. It does not wait, and may be
// called inside a turn.
func (t *Tenant) recharge() {
	if p := t.pool.Load(); p != nil {
		p.ref.Tell(&recharge{tenant: t})
	}
}
