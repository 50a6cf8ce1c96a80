package streams

import (
	"errors"
	"time"

	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/claims"
)

// desk is where claims are served: it carries out, in the turn, what the package claims decides.
type dispatcher struct {
	searches
	current   *claim // neither answered nor waiting
	fenceWait claims.FenceWait
	longWait  func(LongWait) // nil: nobody is told
}

// endWaiting ends the wait of a claim, and says from what.
func (d *dispatcher) endWaiting(c *claim) claims.State {
	from := d.claims.Take(&c.Claim)
	if from != claims.Served && from != claims.Parked {
		d.core.Wait(-c.want.missingBytes())
		d.core.AddParts(-c.want.partBytes())
	}
	return from
}

// hold keeps a claim until its answer comes, and counts what it wants and what it has got.
func (d *dispatcher) hold(c *claim, s claims.State) (token uint64) {
	token = d.claims.Hold(&c.Claim, s)
	d.core.Wait(c.want.missingBytes())
	d.core.AddParts(c.want.partBytes())
	return token
}

// waiting is the claim that waits under a token; nil: none does.
func (d *dispatcher) waiting(token uint64) *claim { return claimOf(d.claims.Find(token)) }

func claimOf(c *claims.Claim) *claim {
	if c == nil {
		return nil
	}
	own, _ := c.Owner.(*claim) // the claims of a stream have no other owner
	return own
}

// serve answers a claim, or has it wait.
func (d *dispatcher) serve(c *claim) {
	switch c.Arrive(c.isWanted(), d.facts()) {
	case claims.Drop:
		c.want.putBack(&d.searches)
		d.core.Note()
	case claims.Close:
		c.want.putBack(&d.searches)
		c.Fail(ErrClosed)
	case claims.Park:
		d.park(c)
	case claims.Search:
		d.search(c)
	case claims.Consult, claims.Delay, claims.Fail: // not of one that arrives
	}
}

// search answers a claim with what there is, leaves a look at fences behind which it is served once more, or asks the pool.
func (d *dispatcher) search(c *claim) {
	d.current = c
	d.reach(beforeSearch)
	whole := c.want.search(&d.searches)
	c.After = d.seek(c.After, whole, c.want.missingBytes())
	switch {
	case whole:
		d.complete(c)
	case c.After != claims.First:
		d.effects().again.Push(c)
	default:
		runs := c.want.missingRuns(&d.searches)
		token := d.hold(c, claims.Asked)
		d.effects().refills.Push(outgoingRefill{Refill: c.askRefill(&d.searches, token, runs)})
	}
	d.current = nil
}

// complete answers a claim that has got all, and reports whether it was not cancelled meanwhile.
func (d *dispatcher) complete(c *claim) bool {
	d.countWait(c)
	delivered := c.want.deliver(&d.searches)
	d.current = nil
	if delivered {
		d.returnExcess(forCaller)
	}
	return delivered
}

// refuse searches once more, since memory may have come home meanwhile, and then fails the claim, or has it wait. last: no wait for
// fences helps.
func (d *dispatcher) refuse(c *claim, err error, last bool) {
	if !c.isWanted() {
		c.want.putBack(&d.searches)
		return
	}
	d.current = c
	if !d.draining {
		d.reach(beforeSearch)
		if c.want.search(&d.searches) || c.want.searchAlone(&d.searches) {
			d.complete(c)
			return
		}
	}
	facts, why := d.facts(), claims.Refusal{Memory: errors.Is(err, pool.ErrOutOfMemory), Last: last}
	var short *pool.OutOfMemoryError
	if facts.Handler {
		short = report(err)
		why.Report = short != nil
	}
	facts.Pending = why.Memory && !last && d.peers.anyPending()
	switch c.Refused(why, facts) {
	case claims.Consult:
		c.want.putBack(&d.searches)
		d.effects().consults.Push(consulting{d.hold(c, claims.Consulted), short})
	case claims.Delay:
		c.Refusal = err
		d.hold(c, claims.Delayed)
		if d.fenceWait.Begin() {
			d.effects().waitFences = true
		}
	case claims.Park:
		d.park(c)
	case claims.Drop, claims.Close, claims.Search, claims.Fail: // the first three are not of one that was refused
		c.want.putBack(&d.searches)
		d.countWait(c)
		c.Fail(d.cuda.shortage(c.forbiddenCalls, err))
	}
	d.current = nil
}

// park lets a claim wait in the pool. It keeps nothing.
func (d *dispatcher) park(c *claim) {
	c.want.putBack(&d.searches)
	if c.age == 0 {
		c.age, c.parkedAt = d.pool.NextAge(), time.Now()
	}
	token := d.claims.Hold(&c.Claim, claims.Parked)
	runs := c.want.parkedRuns(&d.searches)
	d.effects().refills.Push(outgoingRefill{c.parkRefill(&d.searches, token, runs), c})
}

// unpark takes a parked claim back from the pool.
func (d *dispatcher) unpark(c *claim) {
	if c.State() == claims.Parked {
		d.effects().withdrawals.Push(c.Token())
		d.endWaiting(c)
	}
}

// waitEnds counts the wait of a claim that has its answer.
func (d *dispatcher) countWait(c *claim) {
	if !c.parkedAt.IsZero() {
		d.pool.NoteWait(time.Since(c.parkedAt))
		c.parkedAt = time.Time{}
	}
}

// denied refuses a claim: one that has asked may go on, one that was parked has come to its end.
func (d *dispatcher) denied(m *denied) {
	c := d.waiting(m.token)
	if c == nil {
		return
	}
	if d.endWaiting(c) != claims.Parked {
		d.core.Press()
		d.refuse(c, m.err, false)
		return
	}
	d.countWait(c)
	c.want.putBack(&d.searches)
	c.Fail(d.cuda.shortage(c.forbiddenCalls, m.err))
}

// offered serves a parked claim, if what the stream keeps does so, once what the pool had granted before has arrived.
func (d *dispatcher) offered(o claims.Offer) {
	if !d.claims.Offered(o) {
		return
	}
	taken := d.serveOffer(o)
	d.effects().offers.Push(answeredOffer{o.Token, taken})
}

func (d *dispatcher) serveOffer(o claims.Offer) bool {
	c := claimOf(d.claims.Serves(o))
	if c == nil {
		d.effects().withdrawals.Push(o.Token)
		return false
	}
	d.core.DrainAll()
	if !c.isWanted() {
		return false
	}
	d.current = c
	d.reach(beforeSearch)
	if !c.want.searchParked(&d.searches) {
		d.current = nil
		return false
	}
	if !d.complete(c) {
		return false
	}
	d.endWaiting(c)
	return true
}

// reoffer goes on with the offers that waited for what has arrived.
func (d *dispatcher) reoffer() {
	for _, o := range d.claims.TakeOffers() {
		d.offered(o)
	}
}

// changed sees to a claim that nobody wants any more, or tells the pool whether a goroutine waits for it.
func (d *dispatcher) changed(c *claim) {
	switch {
	case !c.isWanted():
		d.unpark(c)
		d.countWait(c)
	case c.State() == claims.Parked:
		c.blockedReports++
		d.effects().blocks.Push(poolcore.Block{
			Client: d.id, Token: c.Token(), Number: c.blockedReports, Blocked: c.blocked(),
		})
	}
}

// consulted serves a claim once more, or refuses it.
func (d *dispatcher) consulted(m *consulted) {
	c := d.waiting(m.token)
	if c == nil { // failed by Close
		return
	}
	d.endWaiting(c)
	if m.retry {
		d.serve(c)
		return
	}
	c.Settled()
	d.refuse(c, m.err, false)
}

// retryDelayed serves the claims that were delayed, or refuses them.
func (d *dispatcher) retryDelayed(passed bool) {
	if !d.fenceWait.Resume() {
		return
	}
	for _, delayed := range d.claims.In(claims.Delayed) {
		c := claimOf(delayed)
		if d.endWaiting(c); passed {
			d.serve(c)
		} else {
			d.refuse(c, c.Refusal, true)
		}
	}
	d.fenceWait.Resumed(passed)
}

// failAll answers all claims that wait.
func (d *dispatcher) failAll(cause error) {
	for _, waits := range d.claims.In(claims.Asked, claims.Consulted, claims.Delayed) {
		c := claimOf(waits)
		d.endWaiting(c)
		c.want.putBack(&d.searches)
		c.Fail(cause)
	}
	for _, parked := range d.claims.In(claims.Parked) {
		c := claimOf(parked)
		d.unpark(c)
		d.countWait(c)
		c.Fail(cause)
	}
	for _, o := range d.claims.TakeOffers() {
		(&offered{stream: d.wiring, offer: o}).Fail(cause)
	}
}

// heed begins or ends to tell the pool of all that comes home, as the pool wants it now.
func (d *dispatcher) updateDemand() {
	if d.draining {
		return
	}
	on := d.pool.Demand() > 0
	if on != d.wanted {
		d.wanted = on
		d.core.SetWanted(on)
	}
}

// report tells the pool, while requests wait, that something has come home, and sees to what is pending. It ends every turn.
func (d *dispatcher) report() {
	if d.draining {
		return
	}
	d.reportCame()
	if d.fenceWait.BeginForOthers(d.core.PendingBytes()) {
		d.effects().waitFences = true
	}
}

// longWaits are those that were not reported yet.
func (d *dispatcher) longWaits() (found []LongWait) {
	if d.longWait == nil || d.claims.ParkedLen() == 0 {
		return nil
	}
	now := time.Now()
	for _, parked := range d.claims.In(claims.Parked) {
		c := claimOf(parked)
		waited := now.Sub(c.parkedAt)
		if c.longReported || waited < longWaitAfter || !c.isWanted() {
			continue
		}
		c.longReported = true
		found = append(found, LongWait{
			Stream: d.cuda.id, Bytes: c.wantedBytes(), Waited: waited, Priority: c.priority, Tag: c.want.tag(),
			Tenant: c.tenant.Name(), ForQuota: c.Owes(),
		})
	}
	return found
}
