package streams

import (
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/sizeclass"
	"github.com/go-vram/vram/pool"
	"github.com/go-vram/vram/streams/magazine"
)

// Tenant is an account that requests are charged to.
type Tenant = pool.Tenant

// Reservation is memory that was set aside for requests that name it.
type Reservation = pool.Reservation

// bill is what a claim is charged, where it names a tenant.
type bill struct {
	tenant *Tenant
	cost   int64       // bytes; 0 of an empty batch
	paid   atomic.Bool // the tenant was charged, and neither have the buffers the cost nor was it given back
}

// blockBytes is what a buffer of that many bytes is charged: its block.
func blockBytes(bytes int64) int64 {
	return int64(sizeclass.Units(max(bytes, 1))) << sizeclass.UnitShift //nolint:gosec // a size that was checked
}

// sumOfBlocks is what a batch is charged.
func sumOfBlocks(sizes []int64) (sum int64) {
	for _, bytes := range sizes {
		sum += blockBytes(bytes)
	}
	return sum
}

// charge charges a claim, or says why it cannot be; one that waits may go on without.
func (b *bill) charge(t *Tenant, cost int64, wait bool) error {
	b.tenant, b.cost = t, cost
	switch {
	case t == nil:
	case t.TooLarge(cost):
		return t.Refuse(cost)
	case t.Charge(cost):
		b.paid.Store(true)
	case !wait:
		return t.Refuse(cost)
	}
	return nil
}

// owes reports whether the tenant has still to be charged.
func (b *bill) owes() bool { return b.tenant != nil && !b.paid.Load() }

// refund gives back what was charged, unless the buffers have it.
func (b *bill) refund() {
	if b.tenant != nil && b.paid.Swap(false) {
		b.tenant.Refund(b.cost)
	}
}

// settle hands what was charged to the buffers. It reports whether it could: not if the claim was given up.
func (b *bill) settle(s *Stream, buffers ...Buffer) bool {
	if b.tenant == nil {
		return true
	}
	if !b.paid.Swap(false) {
		return false
	}
	for _, x := range buffers {
		n := blockBytes(x.bytes)
		b.tenant.Hold(n)
		x.slot.SetCharge(x.word, b.tenant, n)
	}
	s.lets.Store(true)
	return true
}

// charging is a claim that waits for its tenant's quota.
type charging struct{ claim }

// Tenant implements pool.Charger.
func (c charging) Tenant() *Tenant { return c.state().tenant }

// Take implements pool.Charger. Who gives the claim up refunds what it finds; what comes later is refunded here.
func (c charging) Take(take func(bytes int64) bool) (taken, gone bool) {
	b := &c.state().bill
	if !c.pending() {
		return false, true
	}
	if !take(b.cost) {
		return false, false
	}
	b.paid.Store(true)
	if !c.pending() {
		b.refund()
		return false, true
	}
	return true, false
}

// letsOnly reports whether every buffer in the stream's memory is charged to a tenant. It looks at each while requests wait. While none does
// it says so where it may be: it is asked again before a deadlock is declared.
func (s *Stream) letsOnly() bool {
	if !s.lets.Load() || s.core.Lanes() > 0 || s.core.PendingBytes() > 0 {
		return false
	}
	if s.core.UncoveredBytes() > 0 { // kept for the callers' next request
		return false
	}
	if !s.wanted {
		return true
	}
	some, only := false, true
	s.core.Live(func(_ cudadrv.Ptr, _ int64, slot *magazine.Slot) {
		some, only = true, only && slot.IsCharged()
	})
	return some && only
}
