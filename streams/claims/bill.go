package claims

import "sync/atomic"

// payer is an account that claims are charged to.
type payer interface {
	// TooLarge reports whether so many bytes are more than the tenant may have in all.
	TooLarge(bytes int64) bool
	// Charge takes so many bytes of the quota, if it allows them and nobody waits for it before.
	Charge(bytes int64) bool
	// Refund gives them back.
	Refund(bytes int64)
}

// Bill is what a claim's tenant is charged, if it names one. The stream's turn, the pool's and the end of a context use it at once.
type Bill struct {
	tenant payer
	cost   int64       // bytes; 0 of an empty batch
	paid   atomic.Bool // the tenant was charged, and neither have the buffers the cost nor was it refunded
}

// Open charges the tenant, and reports whether the claim may go on: with its cost paid, or, if it waits, owing it.
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

// Cost is what the tenant is charged.
func (b *Bill) Cost() int64 { return b.cost }

// Owes reports whether the tenant has still to be charged.
func (b *Bill) Owes() bool { return b.tenant != nil && !b.paid.Load() }

// Refund returns to the tenant what it was charged, unless the buffers have it.
func (b *Bill) Refund() {
	if b.tenant != nil && b.paid.Swap(false) {
		b.tenant.Refund(b.cost)
	}
}

// Settle hands what was charged to the buffers. It reports whether it could: not if the claim was given up.
func (b *Bill) Settle() bool { return b.tenant == nil || b.paid.Swap(false) }

// Pay has the tenant charged by take, for a claim that wanted says somebody wants. A claim that is given up refunds what it finds
// paid; what is paid after that is refunded here. gone: nobody wants the claim, and nothing is charged.
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
