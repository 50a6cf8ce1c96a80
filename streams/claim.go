package streams

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/pool/core/admission"
	"github.com/go-vram/vram/streams/claims"
	"github.com/go-vram/vram/streams/magazine"
)

// claim is a request that did not end on the fast path: the message that brings it to its stream, and its state from then on. The
// package claims decides about it.
type claim struct {
	actors.Link
	claims.Claim
	want wants

	// Set before the stream has it.
	stream         *wiring
	tenant         *Tenant
	draws          *Reservation // nil: none
	priority       int
	align          int64
	hint           int
	forbiddenCalls uint64 // calls that captures had forbidden when it began
	createdAt      time.Time
	from           site.Stack
	unwatch        func() // ends the watch over the caller's context; nil without one

	awaiting atomic.Int32 // goroutines that wait for the answer and do nothing else

	// Owned by the turn.
	age            uint64    // its place among those that wait; 0: it has not waited yet
	parkedAt       time.Time // zero: it does not wait
	longReported   bool      // see LongWait
	blockedReports uint64    // how often the pool was told who waits for it
}

// wants is the part in which a buffer and a batch differ. All but pending and fail are called in the turn.
type wants interface {
	unanswered() bool                 // nobody has answered or cancelled it
	fail(err error)                   // answers it, and frees what it has got
	tag() string                      // of its buffer
	missingBytes() int64              // that the pool is asked for; the same for as long as it waits
	partBytes() int64                 // blocks that it has got; the same for as long as it waits
	blockBytes() int64                // of all its blocks
	requestedBytes() int64            // all that the caller asked for
	search(s *searches) bool          // takes what there is, and reports whether nothing is missing
	searchAlone(s *searches) bool     // the same of blocks of their own
	searchParked(s *searches) bool    // both, of a parked claim: all or nothing
	missingRuns(s *searches) []uint32 // runs of pages that the last search did not find, to be asked for
	parkedRuns(s *searches) []uint32  // runs of pages that it wants where it holds nothing
	deliver(s *searches) bool         // answers it with what it has got; false: it was cancelled, and that was put back
	putBack(s *searches)              // gives up what it has got, as if it had never been asked for
}

// begin readies a claim of the stream.
func (c *claim) begin(w *wiring, want wants, from site.Stack) {
	c.want, c.Owner, c.stream, c.from = want, c, w, from
	c.hint, c.forbiddenCalls = magazine.Hint(), w.cuda.forbiddenCalls.Load()
}

// charge charges the claim to a tenant, or says why it cannot be; one that waits may go on without.
func (c *claim) charge(t *Tenant, cost int64) error {
	c.tenant = t
	if !c.Open(t, cost, c.Waits) {
		return t.Refuse(cost)
	}
	return nil
}

// settle hands what was charged to the buffers. It reports whether it could: not if the claim was given up.
func (c *claim) settle(buffers ...Buffer) bool {
	if c.tenant == nil {
		return true
	}
	if !c.Settle() {
		return false
	}
	for _, x := range buffers {
		n := blockBytes(x.bytes)
		c.tenant.Hold(n)
		x.slot.SetCharge(x.word, c.tenant, n)
	}
	c.stream.charged.Store(true)
	return true
}

// Fail answers the claim in the stream's place. Of one that was answered it does nothing: a turn may panic when it has answered, and
// two may report the panic.
func (c *claim) Fail(err error) {
	c.Refund()
	c.want.fail(err)
}

func (c *claim) isWanted() bool { return c.want.unanswered() }

// Tenant implements pool.Charger.
func (c *claim) Tenant() *Tenant { return c.tenant }

// Take implements pool.Charger.
func (c *claim) Take(take func(bytes int64) bool) (taken, gone bool) { return c.Pay(take, c.isWanted) }

// account is where the pool books the wait.
func (c *claim) account() admission.Account {
	if c.tenant != nil {
		return c.tenant.Account()
	}
	return admission.Account(c.stream.id)
}

// blocked reports whether the only goroutine that could free does nothing but wait for the claim.
func (c *claim) blocked() bool {
	exclusive := c.stream.suspensions.exclusive.Load()
	if c.tenant != nil {
		exclusive = c.tenant.Exclusive()
	}
	return exclusive && c.awaiting.Load() > 0
}

// await notes that a goroutine begins to wait for the answer of the claim, or gives that up.
func (c *claim) await(begun bool) {
	if begun {
		c.awaiting.Add(1)
	} else {
		c.awaiting.Add(-1)
	}
	c.stream.ref.Tell(c.changed())
}

// cancelled gives up what the claim has of its tenant and in the pool.
func (c *claim) cancelled() {
	c.Refund()
	if c.Waits {
		c.stream.ref.Tell(c.changed())
	}
}

// changed is the message for it.
func (c *claim) changed() message { return &changed{claim: c} }

// changed says that the goroutines which wait for a claim have changed, or that nobody wants it any more.
type changed struct {
	actors.Link
	claim *claim
}

// Fail has nobody to tell: the claim has its answer.
func (*changed) Fail(error) {}

// ended is the error of a claim whose context has ended: of one that waits it says for how long, and which streams hold memory. It
// takes no turn, since the end of a context waits for nobody.
func (c *claim) ended(err error) error {
	if !c.Waits {
		return err
	}
	e := &pool.WaitError{
		RequestedBytes: c.wantedBytes(), Waited: time.Since(c.createdAt), Err: err, Holders: c.stream.peers.holders(),
	}
	return c.stream.pool.EndWait(e, c.tenant)
}

// wantedBytes are those that a wait is for.
func (c *claim) wantedBytes() int64 { return max(c.want.requestedBytes(), 1) }

// refill is the request to the pool for runs of pages under a token.
func (c *claim) refill(s *searches, token uint64, runs []uint32) poolcore.Refill {
	m := poolcore.Refill{
		Client: s.id, Token: token, Pages: runs[0], LiveBytes: s.core.LiveBytes(), OpenBytes: s.core.OpenBytes(),
		RequestedBytes: c.want.requestedBytes(), BlockBytes: c.want.blockBytes(), Lanes: s.lanes(),
		Place: poolcore.Place{Account: c.account(), ChargedBytes: c.Cost(), Priority: c.priority},
	}
	if len(runs) > 1 {
		m.More = runs[1:]
	}
	return m
}

// askRefill is the Refill of a claim that is asked for; it fails where memory is short.
func (c *claim) askRefill(s *searches, token uint64, runs []uint32) poolcore.Refill {
	m := c.refill(s, token, runs)
	m.Most, m.Bytes = s.core.MostPages(m.Pages), c.want.missingBytes()
	if c.Waits {
		m.Patience = poolcore.Patient
	} else {
		m.Place.Priority = 0
	}
	if c.draws != nil {
		m.From = c.draws.ID()
	}
	return m
}

// parkRefill is the Refill of a claim that is parked.
func (c *claim) parkRefill(s *searches, token uint64, runs []uint32) poolcore.Refill {
	m := c.refill(s, token, runs)
	m.Bytes, m.Patience = c.wantedBytes(), poolcore.Waiting
	m.Place.Age, m.Place.Align, m.Place.Blocked, m.Place.Unready = c.age, c.align, c.blocked(), c.Owes()
	return m
}

// report is what a handler is asked with about an error; nil: it is not asked.
func report(err error) *pool.OutOfMemoryError {
	var short *pool.OutOfMemoryError
	if errors.As(err, &short) {
		return short
	}
	return nil
}

func (*claim) isMessage()   {}
func (*changed) isMessage() {}
