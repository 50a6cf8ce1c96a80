package core

import (
	"slices"

	"github.com/go-vram/vram/pool/core/admission"
)

// client is what the pool knows of a stream, from Join until it has left and holds nothing.
type client struct {
	id        Client
	heldPages uint64
	liveBytes int64 // as it said with its last Refill or Return: at most so much since
	usedBytes int64 // likewise, or what a look found since
	// givenBytes are those of liveBytes that its callers have. They rise with each grant.
	givenBytes int64
	lanes      Lanes
	uncovered  int64  // bytes, when it answered last
	passed     Fence  // the newest that has
	asked      bool   // an Ask is not answered yet
	looked     bool   // likewise a Look
	answering  bool   // an answer has come, and counts from answerAt on
	answerAt   uint64 // of arrived
	arrived    uint64 // runs that it sent
	dirty      bool   // may keep what it was not asked for yet
	pending    int64  // bytes, when it answered last
	letsOnly   bool   // all that it holds is charged to others, as it said when it answered last
	suspended  uint64 // the number of its last Suspend
	reserves   bool
	excluded   bool  // see Exclude
	reserved   []Run // that others may draw from
	gone       bool
	synced     bool // gone, and what it returns is clean
}

func (c *Core) join(m Join) {
	id := m.Client
	c.clients[id] = &client{id: id, dirty: !m.Reserves, reserves: m.Reserves}
	at, _ := slices.BinarySearch(c.ids, id)
	c.ids = slices.Insert(c.ids, at, id)
}

func (c *Core) leave(m Leave) {
	id := m.Client
	cl := c.clients[id]
	if cl == nil {
		return
	}
	cl.gone, cl.liveBytes, cl.usedBytes, cl.synced = true, 0, 0, m.Synced
	c.setGiven(cl, 0)
	if m.Synced {
		c.passed(Passed{Client: id, Fence: ^Fence(0)})
	}
	c.queue.searchAgain()
	c.queue.refills = slices.DeleteFunc(c.queue.refills, func(r *request) bool {
		if r.client != id {
			return false
		}
		if r.id == 0 {
			c.deny(r, ErrClosed)
		}
		return true
	})
	c.held = slices.DeleteFunc(c.held, func(r *request) bool {
		if r.client == id {
			c.deny(r, ErrClosed)
		}
		return r.client == id
	})
	c.denyWaitersOf(id, ErrClosed)
	c.waiters.stir() // its fences have passed, or it keeps memory that never comes
	c.forget(cl)
	c.advance()
}

// forget drops a client that is gone and holds nothing: whoever waits for its answer waits for nothing.
func (c *Core) forget(cl *client) {
	if !cl.gone || cl.heldPages > 0 {
		return
	}
	delete(c.clients, cl.id)
	delete(c.watches, cl.id)
	c.waiters.table.Forget(admission.Account(cl.id))
	if at, ok := slices.BinarySearch(c.ids, cl.id); ok {
		c.ids = slices.Delete(c.ids, at, at+1)
	}
	c.answered(cl.id)
	c.reported(cl.id)
	c.dropDomain(cl.id)
	c.fx.Gone = append(c.fx.Gone, cl.id)
}

// answered says that nobody needs to wait for that client's answer to an Ask any more.
func (c *Core) answered(id Client) {
	c.queue.answered(id, false)
}

// dropDomain forgets the index of a client's tagged runs, if the client is no more and has none.
func (c *Core) dropDomain(id Client) {
	if d := c.pages.tagged[id]; d != nil && d.bins.Count() == 0 && c.clients[id] == nil {
		delete(c.pages.tagged, id)
	}
}

func (c *Core) takeBack(m Return) {
	cl := c.clients[m.Client]
	for _, r := range m.Runs {
		if !c.lentTo(r, m.Client) {
			continue // a return of what is not lent would be a defect of the stream; Check finds the loss
		}
		cl.heldPages -= uint64(r.Pages)
		c.pages.addFree(r, c.tagOf(m), m.Fence)
		if !m.Final {
			c.pages.setHome(r, m.Client)
		}
		c.progress++
	}
	if cl == nil {
		return
	}
	switch {
	case m.Report:
		cl.noteLook(m.LiveBytes)
	case cl.gone:
		cl.lanes = m.Lanes
	default:
		cl.lanes = m.Lanes
		cl.liveBytes, cl.usedBytes = m.LiveBytes, m.LiveBytes
		c.setGiven(cl, m.LiveBytes-m.OpenBytes)
	}
	cl.arrived += uint64(len(m.Runs) + m.Kept)
	if m.Answer {
		cl.uncovered, cl.pending, cl.letsOnly = m.UncoveredBytes, m.PendingBytes, m.LetsOnly
	}
	cl.dirty = cl.dirty || m.Kept > 0
	if m.Stirred || len(m.Runs) > 0 && !m.Answer {
		c.waiters.stir()
		cl.dirty = cl.dirty || !m.Answer
	}
	if m.Answer && cl.asked {
		cl.answering, cl.answerAt = true, m.Sent
	}
	if m.Report && cl.looked {
		cl.looked = false
		c.reported(m.Client)
	}
	if cl.answering && cl.arrived >= cl.answerAt {
		cl.asked, cl.answering = false, false
		c.answered(m.Client)
	}
	c.forget(cl)
	c.advance()
}

// tagOf is the tag of returned runs: none where the fence has passed by itself.
func (c *Core) tagOf(m Return) Client {
	if cl := c.clients[m.Client]; m.Fence == 0 || cl != nil && (cl.synced || m.Fence <= cl.passed) {
		return 0
	}
	return m.Client
}

func (c *Core) lentTo(r Run, id Client) bool {
	if top := c.pages.top(); r.Pages == 0 || r.Pages > top || r.First > top-r.Pages {
		return false
	}
	for i := r.First; i < r.First+r.Pages; i++ {
		if t := &c.pages.table[i]; t.state != lent || t.client != id {
			return false
		}
	}
	return true
}

// isExcluded reports whether nobody may be made to wait for that client's fences.
func (c *Core) isExcluded(id Client) bool {
	cl := c.clients[id]
	return cl != nil && cl.excluded
}

func (c *Core) exclude(m Exclude) {
	if cl := c.clients[m.Client]; cl != nil {
		cl.excluded = m.Excluded
		c.progress++ // whoever waits for its fences looks anew whether there is anything to wait for
		c.advance()
	}
}
