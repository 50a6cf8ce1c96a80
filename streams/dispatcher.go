package streams

import (
	"errors"
	"time"

	"github.com/go-vram/vram/internal/effect"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/pool"
)

// dispatcher carries out, in the turn, the decisions of the package claims.
type dispatcher struct {
	wiring          *wiring
	state           *turnState
	lent            *lentMemory
	searches        *searches
	current         *claim // of this turn: a panic ends its wait, and fails it
	fenceWait       claims.FenceWait
	longWait        func(LongWait) // nil: no observer
	reportedSuspend uint64         // last suspend sequence number that was sent to the pool in a turn
}

// endWaiting ends the wait of a claim, and returns its state before.
func (d *dispatcher) endWaiting(c *claim) claims.State {
	from := d.state.claims.Take(&c.Claim)
	if from != claims.Served && from != claims.Parked {
		d.state.core.Wait(-c.want.missingBytes())
	}
	return from
}

// hold keeps a claim until its answer comes, and counts its missing bytes.
func (d *dispatcher) hold(c *claim, s claims.State) (token uint64) {
	token = d.state.claims.Hold(&c.Claim, s)
	d.state.core.Wait(c.want.missingBytes())
	return token
}

// waiting returns the claim that waits under a token, or nil.
func (d *dispatcher) waiting(token uint64) *claim { return claimOf(d.state.claims.Find(token)) }

func claimOf(c *claims.Claim) *claim {
	if c == nil {
		return nil
	}
	own, _ := c.Owner.(*claim) // the claims of a stream have no other owner
	return own
}

// serve answers a claim, or makes it wait.
func (d *dispatcher) serve(c *claim) {
	d.current = c
	switch c.Arrive(c.isWanted(), d.state.facts()) {
	case claims.Drop:
		c.want.putBack(d.searches)
	case claims.Close:
		c.want.putBack(d.searches)
		c.Fail(d.wiring.tally.Refuse(d.wiring.cuda.closed()))
	case claims.Park:
		d.park(c)
	case claims.Search:
		d.search(c)
	case claims.Consult, claims.Delay, claims.Fail: // not for an arriving claim
	}
	d.current = nil
}

// search answers a claim from the stream's memory. If that fails it adds an effect: a query of fences after
// which the claim is served again, or a Refill.
func (d *dispatcher) search(c *claim) {
	d.state.reach(beforeSearch)
	whole := c.want.search(d.searches)
	c.After = d.searches.seek(c.After, whole, c.want.missingBytes())
	switch {
	case whole:
		d.complete(c)
	case c.After != claims.First:
		effect.Push[message](&d.state.effects().again, c)
	default:
		runs := c.want.missingRuns(d.searches)
		token := d.hold(c, claims.Asked)
		effect.Push(&d.state.effects().refills, outgoingRefill{Refill: c.askRefill(d.searches, token, runs)})
	}
}

// complete answers a claim that misses nothing.
func (d *dispatcher) complete(c *claim) {
	if d.answer(c) {
		d.lent.returnExcess(forCaller)
	}
}

// answer answers a claim that misses nothing, and reports whether it was still wanted.
func (d *dispatcher) answer(c *claim) bool {
	d.countWait(c)
	delivered := c.want.deliver(d.searches)
	d.current = nil // a later panic does not fail it
	return delivered
}

// refuse searches again, since memory may have become free since, and then fails the claim or parks it.
// last: no wait for fences helps.
func (d *dispatcher) refuse(c *claim, err error, last bool) {
	d.current = c
	if !c.isWanted() {
		c.want.putBack(d.searches)
		d.current = nil
		return
	}
	if !d.state.draining {
		d.state.reach(beforeSearch)
		if c.want.search(d.searches) || c.want.searchAlone(d.searches) {
			d.complete(c)
			return
		}
	}
	facts, why := d.state.facts(), claims.Refusal{Memory: errors.Is(err, pool.ErrOutOfMemory), Last: last}
	var short *pool.OutOfMemoryError
	if facts.Handler {
		if short = asOutOfMemory(err); short != nil {
			c.sign(short)
		}
		why.Report = short != nil
	}
	facts.Pending = why.Memory && !last && d.wiring.peers.anyPending()
	switch c.Refused(why, facts) {
	case claims.Consult:
		c.want.putBack(d.searches)
		effect.Push(&d.state.effects().consults, consulting{token: d.hold(c, claims.Consulted), short: short, largest: &short.Largest})
	case claims.Delay:
		c.Refusal = err
		d.hold(c, claims.Delayed)
		if d.fenceWait.Begin() {
			d.state.effects().waitFences = true
		}
	case claims.Park:
		d.park(c)
	case claims.Drop, claims.Close, claims.Search, claims.Fail: // the first three are not for a refused claim
		c.want.putBack(d.searches)
		d.countWait(c)
		d.fail(c, err)
	}
	d.current = nil
}

// park makes a claim wait in the pool. A parked claim holds nothing.
func (d *dispatcher) park(c *claim) {
	c.want.putBack(d.searches)
	again := c.age != 0
	if !again {
		c.age, c.parkedAt = d.wiring.pool.NextAge(), time.Now()
		c.place.Store(c.age)
	}
	token := d.state.claims.Hold(&c.Claim, claims.Parked)
	runs := c.want.parkedRuns(d.searches)
	m := c.parkRefill(d.searches, token, runs)
	m.Place.Again = again
	effect.Push(&d.state.effects().refills, outgoingRefill{m, c})
}

// unpark takes a parked claim back from the pool.
func (d *dispatcher) unpark(c *claim) {
	if c.State() == claims.Parked {
		effect.Push(&d.state.effects().withdrawals, c.Token())
		d.endWaiting(c)
	}
}

// countWait counts the wait of a claim that has its answer.
func (d *dispatcher) countWait(c *claim) {
	if !c.parkedAt.IsZero() {
		waited := time.Since(c.parkedAt)
		d.wiring.pool.NoteWait(waited)
		if c.tenant != nil {
			(*pool.TenantControl)(c.tenant).NoteWait(waited)
		}
		c.parkedAt = time.Time{}
	}
}

// denied handles the pool's denial: a parked claim fails, any other may still wait.
func (d *dispatcher) denied(m *denied) {
	c := d.waiting(m.token)
	if c == nil {
		return
	}
	d.current = c
	if d.endWaiting(c) != claims.Parked {
		d.state.core.Press()
		d.refuse(c, m.err, false)
		return
	}
	d.countWait(c) // a parked claim holds nothing
	d.fail(c, m.err)
	d.current = nil
}

// fail answers a claim that the pool has refused. It counts a claim for which there is no memory, unless it
// was cancelled. If the error names the largest buffers, an effect answers the claim after the turn.
func (d *dispatcher) fail(c *claim, err error) {
	if errors.Is(err, pool.ErrOutOfMemory) && c.isWanted() {
		d.wiring.tally.OutOfMemory()
		if c.tenant != nil {
			(*pool.TenantControl)(c.tenant).OutOfMemory()
		}
	}
	short := asOutOfMemory(err)
	if short != nil {
		c.sign(short)
	}
	failed := d.wiring.cuda.shortage(c.forbiddenCalls, err)
	if largest := pool.LargestOf(err); largest != nil && *largest == nil && !d.state.draining {
		effect.Push(&d.state.effects().consults, consulting{short: short, largest: largest, refused: c, failed: failed})
		return
	}
	c.Fail(failed)
}

// offered serves a parked claim from the stream's memory, once all runs that the pool granted
// before the offer have arrived.
func (d *dispatcher) offered(m *offered) {
	if !d.state.claims.Offered(m.offer) {
		return
	}
	taken := d.answerOffer(m.offer)
	if m.answered = true; taken {
		d.lent.returnExcess(forCaller)
	}
}

// answerOffer adds the answer to an offer to the effects, and reports whether its claim was served.
func (d *dispatcher) answerOffer(o claims.Offer) (taken bool) {
	taken = d.serveOffer(o)
	effect.Push(&d.state.effects().offers, answeredOffer{o.Token, taken})
	return taken
}

func (d *dispatcher) serveOffer(o claims.Offer) bool {
	c := claimOf(d.state.claims.Serves(o))
	if c == nil {
		effect.Push(&d.state.effects().withdrawals, o.Token)
		return false
	}
	d.state.core.DrainAll()
	if !c.isWanted() {
		return false
	}
	d.current = c
	d.state.reach(beforeSearch)
	if !c.want.searchParked(d.searches) {
		d.current = nil
		return false
	}
	if !d.answer(c) {
		return false
	}
	d.endWaiting(c)
	return true
}

// reoffer answers the offers that waited for runs, one by one: after a panic the rest are in the table, and
// are made again.
func (d *dispatcher) reoffer() {
	for o, due := d.state.claims.DueOffer(); due; o, due = d.state.claims.DueOffer() {
		taken := d.answerOffer(o)
		if d.state.claims.Answered(o); taken {
			d.lent.returnExcess(forCaller)
		}
	}
}

// changed drops a claim that was cancelled, or tells the pool whether a goroutine waits for it.
func (d *dispatcher) changed(c *claim) {
	switch {
	case !c.isWanted():
		d.unpark(c)
		d.countWait(c)
	case c.State() == claims.Parked:
		c.blockedReports++
		effect.Push(&d.state.effects().blocks, poolcore.Block{
			Client: d.wiring.id, Token: c.Token(), Number: c.blockedReports, Blocked: c.blocked(),
		})
	}
}

// consulted serves a claim again, or refuses it.
func (d *dispatcher) consulted(m *consulted) {
	c := d.waiting(m.token)
	if c == nil { // Close has failed it
		return
	}
	d.endWaiting(c)
	if m.retry {
		d.wiring.tally.Retry()
		d.serve(c)
		return
	}
	c.Settled()
	d.refuse(c, m.err, false)
}

// retryDelayed serves the delayed claims, or refuses them.
func (d *dispatcher) retryDelayed(passed bool) {
	if !d.fenceWait.Resume() {
		return
	}
	for _, delayed := range d.state.claims.In(claims.Delayed) {
		c := claimOf(delayed)
		if d.endWaiting(c); passed {
			d.wiring.tally.Retry()
			d.serve(c)
		} else {
			d.refuse(c, c.Refusal, true)
		}
	}
	d.fenceWait.Resumed(passed)
}

// failAll fails all waiting claims.
func (d *dispatcher) failAll(cause error) {
	for _, waits := range d.state.claims.In(claims.Asked, claims.Consulted, claims.Delayed) {
		c := claimOf(waits)
		d.endWaiting(c)
		c.want.putBack(d.searches)
		c.Fail(cause)
	}
	for _, parked := range d.state.claims.In(claims.Parked) {
		c := claimOf(parked)
		d.unpark(c)
		d.countWait(c)
		c.Fail(cause)
	}
}

// updateDemand switches the reports of frees on while requests of the device wait, and off again. It
// reports suspensions that the pool does not know.
func (d *dispatcher) updateDemand() {
	if d.state.draining {
		return
	}
	on := d.wiring.pool.Demand() > 0
	if on != d.state.wanted {
		d.state.wanted = on
		d.state.core.SetWanted(on)
	}
	p := d.wiring.suspensions.progress.Load()
	if on && p != nil && p.number != d.reportedSuspend { // also after an unseen end of demand
		d.reportedSuspend = p.number
		d.state.effects().suspends = len(p.all) > 0 || len(p.freedBy) > 0
	}
}

// report tells the pool that memory has become free, and begins to wait for the fences of pending memory.
// Each turn calls it last while requests wait. A draining stream returns its memory instead.
func (d *dispatcher) report() {
	if !d.state.draining {
		d.lent.reportCame()
	}
	if d.fenceWait.BeginForOthers(d.state.core.PendingBytes()) {
		d.state.effects().waitFences = true
	}
}

// longWaits returns the long waits that were not reported yet.
func (d *dispatcher) longWaits() (found []LongWait) {
	if d.longWait == nil || d.state.claims.ParkedLen() == 0 {
		return nil
	}
	now := time.Now()
	for _, parked := range d.state.claims.In(claims.Parked) {
		c := claimOf(parked)
		waited := now.Sub(c.parkedAt)
		if c.longReported || waited < longWaitAfter || !c.isWanted() {
			continue
		}
		c.longReported = true
		found = append(found, LongWait{
			Stream: d.wiring.cuda.id, Bytes: c.wantedBytes(), Waited: waited, Priority: c.priority, Tag: c.want.tag(),
			Tenant: c.tenant.Name(), ForQuota: c.Owes(),
		})
	}
	return found
}
