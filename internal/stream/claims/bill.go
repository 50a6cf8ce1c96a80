package claims

import "sync/atomic"

// payer is an account that claims are charged to.
type payer interface {
	// TooLarge reports whether the tenant's quota is smaller than that many bytes.
	TooLarge(bytes int64) bool
	// Charge charges the tenant, if the quota allows it and no other request waits for it.
	Charge(bytes int64) bool
	// Refund undoes a Charge.
	Refund(bytes int64)
}

// Bill is a claim's charge to its tenant, if it names one. It is safe for concurrent use by the stream's
// turn, the pool's and the end of a context.
type Bill struct {
	tenant payer
	cost   int64       // bytes; 0 of an empty batch
	paid   atomic.Bool // charged, and neither moved to the buffers nor refunded
}

// Open charges the tenant, and reports whether the claim may continue: with its cost paid, or owing it if the
// claim waits.
func (b *Bill) Open(t payer, cost int64, waits bool) bool {
	b.tenant, b.cost = t, cost
	if t.TooLarge(cost) {
		return false
	}
	if t.Charge(cost) {
		b.paid.Store(true)
		return true
	}
	return waits
}

// Charged reports whether there is a tenant.
func (b *Bill) Charged() bool { return b.tenant != nil }

// Cost returns the charge.
func (b *Bill) Cost() int64 { return b.cost }

// Owes reports whether the tenant is not charged yet.
func (b *Bill) Owes() bool { return b.tenant != nil && !b.paid.Load() }

// Refund undoes the charge, unless the buffers have it.
func (b *Bill) Refund() {
	if b.tenant != nil && b.paid.Swap(false) {
		b.tenant.Refund(b.cost)
	}
}

// Settle moves the charge to the buffers. It fails if the claim was cancelled.
func (b *Bill) Settle() bool { return b.tenant == nil || b.paid.Swap(false) }

// Pay charges the tenant by take, for a claim that is still wanted. A cancelled claim refunds a charge that
// it finds; Pay refunds a later charge itself. gone: the claim was cancelled, and nothing is charged.
func (b *Bill) Pay(take func(bytes int64) bool, wanted func() bool) (paid, gone bool) {
	if !wanted() {
		return false, true
	}
	if !take(b.cost) {
		return false, false
	}
	b.paid.Store(true)
	if !wanted() {
		b.Refund()
		return false, true
	}
	return true, false
}
