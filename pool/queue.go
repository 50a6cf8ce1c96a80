package pool

import (
	"context"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/pool/core"
)

// Queue is the requests that wait for memory or for a quota, in the order in which they would be
// served, and the streams and tenants that hold memory, the largest first.
type Queue struct {
	Waiters []Waiter
	Holders []Holder
}

// Queue reads the queue. It waits for the current turn only.
func (p *Pool) Queue(ctx context.Context) (Queue, error) {
	found := new(Queue)
	err := p.inTurn(ctx, func() {
		p.core.SetTenants(p.quotas.accounts(false))
		all := p.quotas.deadlockError(p.core.Queue()) // as reported if no account were runnable
		*found = Queue{all.Waiters, ChargeHolders(all.Holders, p.handedOver())}
		byBytes(found.Holders)
	})
	if err != nil {
		return Queue{}, err // the turn may still write
	}
	return *found, nil
}

// mostTries is how often placeOf tries to enter the turn. Not fewer: where many contexts end at once
// each needs the turn. Not more: the end of a context must not wait.
const mostTries = 32

// placeOf returns the place of a request that waits, by its age, from 1 on, and the request directly
// before it; 0 where another goroutine is in the pool's turn, or no such request waits. It does not
// wait.
func (p *Pool) placeOf(age uint64) (place int, ahead *Waiter) {
	if age == 0 {
		return 0, nil
	}
	for tries := 1; !p.ref.TryEnter(); tries++ { // turns are short
		if tries == mostTries {
			return 0, nil
		}
		actors.Yield(p.host)
	}
	var left actors.Effects
	defer func() { p.ref.Perform(left) }()
	defer p.ref.Exit(&left, nil) // a panic is reported, and costs the figures
	place, before := p.core.PlaceOf(age)
	if before != nil {
		ahead = &p.quotas.deadlockError(core.Denial{Deadlock: before}).Waiters[0]
	}
	return place, ahead
}
