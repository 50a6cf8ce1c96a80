package core

import (
	"math"

	"github.com/go-vram/vram/internal/pool/admission"
)

// Queue returns the requests that wait, in the order in which they would be served, and the accounts that
// hold memory, as a Denial has them. SetTenants comes before.
func (c *Core) Queue() Denial {
	n := &c.scheduler.noProgress
	return Denial{
		Shortage: c.answers.shortage(&request{}),
		Deadlock: n.deadlock(n.accounts(), 0, math.MaxInt),
	}
}

// PlaceOf returns the place of the request of that age among those that wait, from 1 on, and the request
// directly before it, as a Denial has it; 0 and nil where there is none.
func (c *Core) PlaceOf(age uint64) (place int, ahead *Deadlock) {
	w, at := &c.waiters, 0
	var before admission.Waiter
	w.table.Each(func(x admission.Waiter) {
		if at++; x.Age == age {
			place = at
		} else if place == 0 {
			before = x
		}
	})
	if place > 1 {
		ahead = &Deadlock{Waiters: []admission.Waiter{before}, Clients: map[uint64]Client{before.ID: w.parked[before.ID].client}}
	}
	return place, ahead
}
