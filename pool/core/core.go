package core

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/internal/heap"
	"github.com/go-vram/vram/internal/sizeclass"
)

// ErrClosed refuses what comes after Close.
var ErrClosed = errors.New("pool: closed")

// Core is the state of a pool.
type Core struct {
	settings  Settings
	pageBytes int64
	maxPages  uint32 // of the arena
	plain     bool   // segments in place of virtual memory

	pages   *pages
	clients map[Client]*client
	ids     []Client // of clients, rising, so that a step is the same for the same history
	queue   queue
	job     *Job             // in flight
	held    []*request       // wait for fences and for nothing else, in order of arrival
	watches map[Client]watch // of those with a fence that is or was watched

	reservedBytes, peakReservedBytes int64
	lostBytes                        int64 // of handles that the driver would not take back
	livePeakBytes                    int64
	givenBytes, givenPeakBytes       int64 // of all clients
	driverGrants                     uint64
	forecast                         forecast
	standing                         standing
	steadyBytes                      int64 // added to the soft budget by recycling
	grandfatherBytes                 int64 // reserved when the limit was lowered below it
	closeTried                       bool
	homeless                         bool   // pages were asked for that may go home again
	progress                         uint64 // rises when waiting for a fence was, or may now be, of use
	boundFailed                      bool   // giving back what is over the budget failed: not before a Tick again
	closing                          bool
	closed                           bool
	abandoned                        bool // closing, but nobody may start anything before a Close
	closeToken                       uint64
	waiters                          waiters
	fx                               Effects

	// Scratch, within one step.
	scratch   []uint32
	found     []victim
	victimIDs []int32
	missing   []Run
}

// New makes the core of a pool over an arena of that many pages, at most those that the heaps of the clients can name: what is beyond
// stays a hole for ever.
func New(pageBytes int64, maxPages uint32, s Settings) *Core {
	maxPages = min(maxPages, heap.MostPages(uint32(max(1, pageBytes>>sizeclass.UnitShift)))) //nolint:gosec // a page is shorter than the arena
	c := &Core{settings: s, pageBytes: pageBytes, maxPages: maxPages, pages: newPages(), clients: map[Client]*client{}, watches: map[Client]watch{}, waiters: newWaiters()}
	return c
}

// NewPlain makes the core of a pool of plain segments. Its page numbers are names only: where a segment lies the
// driver decides, and Alloc says.
func NewPlain(pageBytes int64, maxPages uint32, s Settings) *Core {
	c := New(pageBytes, maxPages, s)
	c.plain = true
	return c
}

// Step takes one message and returns what must be performed. The result is valid until the next step.
func (c *Core) Step(m Message) *Effects {
	c.fx.reset()
	switch m := m.(type) {
	case Join:
		c.join(m)
	case Unreserve:
		c.endReservation(m)
	case Leave:
		c.leave(m)
	case Refill:
		c.refill(m)
	case Withdraw:
		c.withdraw(m)
	case Ready:
		c.ready(m)
	case Block:
		c.block(m)
	case Suspend:
		c.suspend(m)
	case Offered:
		c.offered(m)
	case Return:
		c.takeBack(m)
	case Warm:
		runs := slices.DeleteFunc(slices.Clone(m.Runs), func(n uint32) bool { return n == 0 })
		c.enqueue(&request{kind: warm, token: m.Token, warm: runs, rung: rungSearch})
	case Trim:
		c.forecast.spoil() // whoever gives memory back does not want it mapped again at once
		c.enqueue(&request{kind: trim, token: m.Token, keep: m.KeepBytes, rung: rungAskAll})
	case JobDone:
		c.jobDone(m)
	case WatchOver:
		c.watchOver(m)
	case Exclude:
		c.exclude(m)
	case Tick:
		c.boundFailed = false
		c.retry()
		c.obeyLimit()
		c.beat()
		c.advance()
		c.foresee()
		if c.job == nil && !c.closing {
			c.poll(nil)
		}
	case Close:
		c.close(m)
	}
	if c.settings.Predict {
		c.forecast.note(c.pages.counts[lent], c.reservedPages())
	}
	return &c.fx
}

// SetSettings replaces the settings. They hold from the next step on; the job in flight still ends as it
// was planned.
func (c *Core) SetSettings(s Settings) {
	if s.Predict != c.settings.Predict {
		c.forecast = forecast{}
	}
	c.settings = s
	c.grandfatherBytes = c.reservedBytes
	c.waiters.stir()
	if c.job == nil {
		return
	}
	for i := range c.job.Ops {
		if op := &c.job.Ops[i]; op.Verb == Create || op.Verb == Alloc {
			c.grandfatherBytes += c.bytes(op.Run.Pages)
		}
	}
}

// Abandon denies everything that waits, for a pool whose actor has ended. Afterwards only the outcome of
// the job in flight and a Close do anything.
func (c *Core) Abandon(cause error) *Effects {
	c.fx.reset()
	c.closing = true
	c.denyAll(cause)
	if c.closeToken != 0 && !c.closed {
		c.fx.Ends = append(c.fx.Ends, End{Token: c.closeToken, Err: cause})
	}
	c.closing, c.abandoned, c.closeToken = true, true, 0
	return &c.fx
}

// denyAll answers everything that waits.
func (c *Core) denyAll(err error) {
	all := c.queue
	c.queue = queue{}
	all.each(func(r *request) {
		if r.id == 0 {
			c.deny(r, err)
		}
	})
	for _, r := range c.held {
		c.deny(r, err)
	}
	c.held = nil
	c.denyWaiters(err)
}

// Closed reports whether a Close has ended.
func (c *Core) Closed() bool { return c.closed }

// InFlight is the job whose JobDone is still to come, or nil.
func (c *Core) InFlight() *Job { return c.job }

// Settings are those in force.
func (c *Core) Settings() Settings { return c.settings }

func (c *Core) refill(m Refill) {
	cl := c.clients[m.Client]
	r := &request{kind: refill, client: m.Client, token: m.Token, pages: max(1, m.Pages), more: m.More, most: m.Most, bytes: m.Bytes, rung: rungSearch}
	r.patience, r.place, r.requestedBytes, r.blockBytes = m.Patience, m.Place, m.RequestedBytes, m.BlockBytes
	if len(r.more) > 0 {
		r.wants = append([]uint32{r.pages}, r.more...)
	}
	if c.closing || cl == nil || cl.gone {
		c.deny(r, ErrClosed)
		return
	}
	cl.liveBytes, cl.usedBytes, cl.lanes = m.LiveBytes, m.LiveBytes, m.Lanes
	if !cl.reserves { // nobody has what is set aside
		c.setGiven(cl, m.LiveBytes-m.OpenBytes)
	}
	if r.wanted() > uint64(c.maxPages) { // no use in asking anybody
		c.deny(r, nil)
		return
	}
	if from := c.drawable(m); from != nil && c.draw(r, from) {
		return
	}
	switch {
	case m.Patience == Waiting:
		c.park(r)
	case c.ordered(r) && !c.waiters.table.MayPass(r.waiter()):
		c.deny(r, nil) // it comes back to wait
	default:
		c.enqueue(r)
		if r.patience == Patient && !r.done && !c.closing && c.queue.head() != r { // its place is not the last one of the queue
			c.queue.remove(r)
			c.deny(r, nil)
		}
	}
}

// ordered reports whether a request that does not wait yet comes in the order of those that do: if it would wait, or borrows.
func (c *Core) ordered(r *request) bool {
	table := &c.waiters.table
	return table.Waiting() > 0 && (r.patience == Patient || table.Borrows(r.waiter()))
}

func (c *Core) enqueue(r *request) {
	if c.closing {
		c.end(r, ErrClosed)
		return
	}
	c.queue.push(r)
	c.advance()
}

// advance serves what was asked for, first in first out, and then tries those that wait. Everything may use what is free;
// only the first may ask, grow or recycle, so that two requests never take from each other.
func (c *Core) advance() {
	c.unhold()
	c.serveFree()
	if c.yield() {
		c.serveFree()
	}
	for c.job == nil && !c.closing {
		if c.queue.empty() && !c.admit() {
			break
		}
		r := c.queue.head()
		if r.awaiting() {
			return
		}
		if c.climb(r) {
			c.queue.remove(r)
		} else if c.job != nil || r.awaiting() {
			return
		}
		c.serveFree()
	}
	if c.job == nil && !c.closing {
		if c.waiters.table.Waiting() == 0 && len(c.held) == 0 { // else it is collected for those
			c.giveHome()
		}
		c.bound()
	}
}

// serveFree grants what is free, in the order of the queue. Who wants several runs gets them one by one and
// only as the first refill: two that got parts could keep each other from the rest. Those that were searched for in vain are not
// searched for again before a free run comes, but for one that has become the first.
func (c *Core) serveFree() {
	q := &c.queue
	if q.vainInserts != c.pages.inserts {
		q.vain, q.vainInserts = 0, c.pages.inserts
	}
	for q.vain > 0 && q.promoted() && c.grantFree(q.refills[0]) {
		q.remove(q.refills[0])
	}
	kept := q.vain
	first := kept == 0 || kept == 1 && q.refills[0].offering
	for at := kept; at < len(q.refills); at++ {
		r := q.refills[at]
		if !r.offering {
			if (first || len(r.more) == 0) && c.grantFree(r) {
				continue
			}
			if first {
				first, q.first = false, r
			}
		}
		q.refills[kept] = r
		kept++
	}
	clear(q.refills[kept:])
	q.refills, q.vain = q.refills[:kept], kept
}

// climb takes the next rung for a request whose search failed. It reports whether the request is done;
// if not, either a job is in flight, or answers are awaited, or the next rung is to be tried.
func (c *Core) climb(r *request) bool {
	switch r.kind {
	case warm:
		return c.climbWarm(r)
	case trim:
		return c.climbTrim(r)
	case gather:
		return c.climbGather(r)
	case refill:
	}
	switch r.rung {
	case rungOffer:
		c.offer(r)
	case rungSearch, rungAskOwn:
		if r.id != 0 { // what others have is asked for as soon as they have said so
			r.rung = rungGrow
			r.raised, r.noted, r.askedAll = c.notePeak(r.bytes), true, true
			c.ask(r, func(cl *client) bool { return cl.dirty && cl.heldPages > 0 })
			break
		}
		if c.settings.Waits == WaitsAlways {
			if c.assemble(r) || c.borrow(r, 0) { // what needs no wait goes first
				return r.done
			}
		}
		r.rung = rungLook
		c.ask(r, func(cl *client) bool { return cl.id == r.client })
	case rungLook:
		r.rung = rungAskAll
		c.look(r)
	case rungAskAll:
		r.rung = rungGrow
		if !r.noted { // else it is the same request still
			r.raised, r.noted = c.notePeak(0), true
			c.standing.note(r.raised)
		}
		c.askOthers(r)
	case rungGrow:
		r.rung = rungPoll
		if c.assemble(r) {
			return r.done
		}
		if c.settings.Waits == WaitsAlways && c.borrow(r, 0) {
			r.rung = rungGrow
			return false
		}
		c.growFor(r)
	case rungPoll:
		r.rung = rungRecycle
		c.poll(r)
	case rungRecycle:
		if c.assemble(r) { // the fences that have passed, or what came meanwhile, may have made one
			return r.done
		}
		if c.borrow(r, c.softBudget()) {
			return false // to come back here if that brings nothing
		}
		r.rung = rungWait
		c.recycleFor(r)
	case rungWait:
		c.watch(r)
	case rungHold:
		return c.hold(r)
	case rungDeny:
		c.fail(r)
		return true
	}
	return false
}

// ask tells clients to return what they do not use.
func (c *Core) ask(r *request, want func(*client) bool) {
	for _, id := range c.ids {
		cl := c.clients[id]
		if cl.reserves || !want(cl) || (cl.gone && cl.heldPages == 0) {
			continue
		}
		r.awaits = append(r.awaits, id)
		if !cl.asked {
			cl.asked, cl.dirty, c.homeless = true, false, true
			c.fx.Asks = append(c.fx.Asks, cl.id)
		}
	}
	c.queue.awaits(r)
}

func (c *Core) bytes(pages uint32) int64 { return int64(pages) * c.pageBytes }
