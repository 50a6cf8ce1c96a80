package core

import (
	"fmt"

	"github.com/go-vram/vram/internal/effect"
)

// close denies waiting requests and gives all memory back in one job, after the job in flight.
func (c *Core) close(m Close) {
	p := &c.phase
	if p.closed || p.closing && !p.abandoned {
		effect.Push(&c.fx.Ends, End{Token: m.Token, Err: ErrClosed})
		return
	}
	p.closing, p.abandoned, p.closeToken = true, false, m.Token
	c.denyAll(ErrClosed)
}

// denyAll answers everything that waits.
func (c *Core) denyAll(err error) {
	all := c.queue
	c.queue = queue{}
	all.each(func(r *request) {
		if !r.waits() {
			c.answers.deny(r, err)
		}
	})
	c.answers.denyAll(c.fences.take(0), err)
	c.answers.denyAll(c.waiters.of(0), err)
}

// finishClose starts the last job once nothing is in flight, and ends the close after it.
func (c *Core) finishClose() {
	p := &c.phase
	if !p.closing || p.closed || p.abandoned || c.jobs.inFlight != nil {
		return
	}
	if !p.tried {
		j := &Job{}
		c.memory.PlanClose(&j.Job)
		for _, cl := range c.clients.all { // every page is part of the job, or a hole
			cl.reserved = nil
			c.clients.release(cl, cl.heldPages)
		}
		if len(j.Ops) > 0 {
			p.tried = true
			c.jobs.start(j)
			return
		}
	}
	p.closed = true
	var err error
	if reserved := c.memory.ReservedBytes(); reserved > 0 {
		err = fmt.Errorf("pool: the driver did not take back %d bytes", reserved)
	}
	effect.Push(&c.fx.Ends, End{Token: p.closeToken, Err: err})
}

// Abandon denies everything that waits, for a pool whose actor has ended. Afterwards only the outcome of
// the job in flight and a Close do anything.
func (c *Core) Abandon(cause error) *Effects {
	c.fx.reset()
	token, open := c.phase.closeToken, !c.phase.closed
	c.phase.closing, c.phase.abandoned, c.phase.closeToken = true, true, 0
	c.denyAll(cause)
	if token != 0 && open {
		effect.Push(&c.fx.Ends, End{Token: token, Err: cause})
	}
	return &c.fx
}
