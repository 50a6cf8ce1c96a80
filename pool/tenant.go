package pool

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/internal/watermark/shared"
)

// ErrQuota is the kind of every *QuotaError.
var ErrQuota = errors.New("vram: over the quota")

// ErrTenantClosed refuses a request that names a tenant after its Close.
var ErrTenantClosed = errors.New("vram: the tenant is closed")

// Quota bounds a tenant, in bytes of buffers rounded to their blocks.
type Quota struct {
	// LimitBytes bounds the bytes in buffers of the tenant and in its requests that wait for
	// memory: a request beyond it waits for the tenant's own frees, or is refused. 0: no bound.
	LimitBytes int64 `json:"limit_bytes"`
	// ShareBytes is the part of the memory that the tenant has a right to, at most LimitBytes where
	// that is set. Beyond it the tenant borrows: a request that must ask the pool gets memory only
	// while no request within a share, and none without a tenant, waits. Of waiting tenants of one
	// priority the one with the smallest use relative to its share comes first, so that tenants
	// which always want more get memory in proportion to their shares, for any sum of shares. Only
	// frees return borrowed memory. 0: all use is within the share.
	ShareBytes int64 `json:"share_bytes"`
	// Exclusive declares that one goroutine works for the tenant, as Stream.Exclusive does for a
	// stream: while it waits for memory the tenant frees nothing. Without it a tenant may have any
	// number of callers, and the others may free while one waits.
	Exclusive bool `json:"exclusive"`
}

// CheckQuota returns a *QuotaBoundsError for a quota with an invalid bound.
func CheckQuota(q Quota) error {
	switch {
	case q.LimitBytes < 0:
		return &QuotaBoundsError{"LimitBytes", q}
	case q.ShareBytes < 0, q.LimitBytes > 0 && q.ShareBytes > q.LimitBytes:
		return &QuotaBoundsError{"ShareBytes", q}
	default:
		return nil
	}
}

// QuotaBoundsError refuses a quota with a negative bound, which is ErrNegative, too, or with a
// share above the limit, which the tenant could never use.
type QuotaBoundsError struct {
	Field string `json:"field"` // of Quota
	Quota Quota  `json:"quota"`
}

// Error names the field, its value and the valid ones.
func (e *QuotaBoundsError) Error() string {
	switch {
	case e.Field == "LimitBytes":
		return fmt.Sprintf("vram: Quota.LimitBytes is %d, want 0 or more", e.Quota.LimitBytes)
	case e.Quota.ShareBytes < 0:
		return fmt.Sprintf("vram: Quota.ShareBytes is %d, want 0 or more", e.Quota.ShareBytes)
	default:
		return fmt.Sprintf("vram: Quota.ShareBytes is %d, want at most the LimitBytes of %d, or no limit", e.Quota.ShareBytes, e.Quota.LimitBytes)
	}
}

// Is makes errors.Is(err, ErrNegative) hold for a negative bound.
func (e *QuotaBoundsError) Is(target error) bool {
	return target == ErrNegative && min(e.Quota.LimitBytes, e.Quota.ShareBytes) < 0
}

// Tenant is an account that requests are charged to, on any stream. Any number of goroutines may
// use it.
type Tenant struct {
	name    string
	id      uint32
	pool    atomic.Pointer[Pool] // nil before the first use of the device
	quota   atomic.Pointer[Quota]
	closed  atomic.Bool
	onClose func() // set before use; may be nil

	charged atomic.Int64 // buffers, and waiting requests
	held    atomic.Int64 // of charged: buffers
	queued  atomic.Int32 // requests that wait for its quota; changed in the pool's turns

	heldPeak      shared.Mark
	allocs, frees atomic.Uint64
	tally         Tally // of its requests
	waits         durations
}

// made reports whether NewTenant made the tenant.
func (t *Tenant) made() bool { return t != nil && t.quota.Load() != nil }

// NewTenant makes a tenant with a number that no other tenant of the device has.
func NewTenant(name string, id uint32, q Quota) *Tenant {
	t := &Tenant{name: name, id: id}
	t.quota.Store(&q)
	return t
}

// TenantStats is a tenant's part of the statistics.
type TenantStats struct {
	Name         string `json:"name"`
	ID           uint32 `json:"id"` // of no other tenant of the device: one that is made again under a name has another
	Quota        Quota  `json:"quota"`
	HeldBytes    int64  `json:"held_bytes"`    // in buffers
	ChargedBytes int64  `json:"charged_bytes"` // in buffers, and in its requests that wait for memory
	Queued       int    `json:"queued"`        // requests that wait for its quota

	PeakHeldBytes     int64  `json:"peak_held_bytes"` // the maximum of HeldBytes since the beginning or Device.ResetPeaks; exact
	AllocCount        uint64 `json:"alloc_count"`
	FreeCount         uint64 `json:"free_count"`
	OutOfMemoryCount  uint64 `json:"out_of_memory_count"` // requests that ended with an *OutOfMemoryError
	QuotaRefusedCount uint64 `json:"quota_refused_count"` // requests that ended with a *QuotaError
	// Longest and Durations cover waits that have ended, as in WaitStats; a wait for the tenant's own frees counts, too.
	Longest   time.Duration     `json:"-"`
	Durations DurationHistogram `json:"durations"`
}

// Stats returns the tenant's current figures.
func (t *Tenant) Stats() TenantStats {
	if !t.made() {
		return TenantStats{}
	}
	n := t.tally.Counts()
	return TenantStats{
		Name: t.name, ID: t.id, Quota: *t.quota.Load(), HeldBytes: t.held.Load(), ChargedBytes: t.charged.Load(), Queued: int(t.queued.Load()),
		PeakHeldBytes: t.heldPeak.Peak(), AllocCount: t.allocs.Load(), FreeCount: t.frees.Load(),
		OutOfMemoryCount: n.OutOfMemoryCount, QuotaRefusedCount: n.RefusedCount, Longest: t.waits.longest(), Durations: t.waits.histogram(),
	}
}

// Name returns the tenant's name.
func (t *Tenant) Name() string {
	if t == nil {
		return ""
	}
	return t.name
}

// Close ends the tenant. Further requests that name it are refused with ErrTenantClosed. It leaves Device.Stats and the metrics
// at once, and the next Device.Tenant of its name makes another tenant. Requests that wait, and its buffers, stay charged to
// it: they are served, and freed, as before, and count for nobody else. Nothing of it is left after the last of them. It does
// not wait. Idempotent. Error: ErrNotOpen.
func (t *Tenant) Close() error {
	if !t.made() {
		return ErrNotOpen
	}
	if t.closed.Swap(true) {
		return nil
	}
	if t.onClose != nil {
		t.onClose()
	}
	t.recharge() // the pool drops it, unless it has charges
	return nil
}

// SetQuota replaces the quota. Memory beyond it stays until it is freed. Errors: *QuotaBoundsError
// for an invalid quota, which changes nothing, ErrTenantClosed and ErrNotOpen.
func (t *Tenant) SetQuota(q Quota) error {
	if !t.made() {
		return ErrNotOpen
	}
	if t.closed.Load() {
		return ErrTenantClosed
	}
	if err := CheckQuota(q); err != nil {
		return err
	}
	t.quota.Store(&q)
	t.recharge()
	return nil
}

// QuotaError refuses a request of a tenant that its quota does not allow.
type QuotaError struct {
	Tenant         string `json:"tenant"`
	RequestedBytes int64  `json:"requested_bytes"` // rounded to blocks
	ChargedBytes   int64  `json:"charged_bytes"`   // to the tenant already: its buffers, and its requests that wait for memory
	Quota          Quota  `json:"quota"`
	HeldBytes      int64  `json:"held_bytes"` // of ChargedBytes: in buffers
	Queued         int    `json:"queued"`     // requests of the tenant that wait for its quota
}

// Error formats the figures in one line.
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

// figures formats the tenant's use of its quota, for a request that waited for it.
func (e *QuotaError) figures() string {
	text := fmt.Sprintf("tenant %q is charged %s of a limit of %s, %s of that in buffers",
		e.Tenant, units.Bytes(e.ChargedBytes), units.Bytes(e.Quota.LimitBytes), units.Bytes(e.HeldBytes))
	if e.Queued > 1 {
		text += ", and " + units.Count(e.Queued, "request") + " waited for it"
	}
	return text
}

// remedies returns the actions that help such a request.
func (e *QuotaError) remedies() string {
	return fmt.Sprintf("frees of the tenant's own buffers, or a Quota.LimitBytes of at least %s", units.AtLeast(e.ChargedBytes+e.RequestedBytes))
}

// Is makes errors.Is(err, ErrQuota) hold.
func (e *QuotaError) Is(target error) bool { return target == ErrQuota }
