package streams

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv/site"
	"github.com/go-vram/vram/internal/pool/admission"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// claim is a request that did not end on the fast path: the message that brings it to its stream,
// and its state from then on. The package claims decides about it.
type claim struct {
	actors.Link
	claims.Claim
	want wants

	// Set before the stream has it.
	stream         *wiring
	tenant         *pool.Tenant
	draws          *pool.Reservation // nil: none
	priority       int
	align          int64
	hint           int
	forbiddenCalls uint64 // calls that captures had forbidden when the claim began
	createdAt      time.Time
	deadline       time.Time  // of the caller's context, if it may wait; zero: none
	from           site.Stack // of a buffer or batch that may be sampled; else nil
	unwatch        func()     // ends the watch over the caller's context; nil without one

	awaiting atomic.Int32  // goroutines that wait for the answer and do nothing else
	place    atomic.Uint64 // age, for reports

	// Owned by the turn.
	age            uint64    // position in the order of waiting requests; 0: it has not waited yet
	parkedAt       time.Time // zero: it does not wait
	longReported   bool      // see LongWait
	mapped         bool      // the driver mapped pages for it
	blockedReports uint64    // sequence number of the last Block message to the pool
}

// wants is the part in which a buffer and a batch differ. All methods but unanswered and fail are
// called in the turn.
type wants interface {
	unanswered() bool                 // neither answered nor cancelled
	fail(err error)                   // answers it, and frees its slots
	tag() string                      // of its buffers
	count() int                       // of its buffers
	missingBytes() int64              // to get from the pool; constant while it waits
	blockBytes() int64                // of all its blocks
	requestedBytes() int64            // the caller's sizes
	search(s *searches) bool          // takes free blocks, and reports whether none is missing
	searchAlone(s *searches) bool     // likewise, blocks outside of spans
	searchParked(s *searches) bool    // both, for a parked claim: all or nothing
	missingRuns(s *searches) []uint32 // runs of pages that the last search did not find
	parkedRuns(s *searches) []uint32  // runs of pages for the whole claim
	deliver(s *searches) bool         // answers it with its slots; false: it was cancelled, and they were put back
	putBack(s *searches)              // puts its slots back, uncounted
}

// begin readies a claim of the stream.
func (c *claim) begin(w *wiring, want wants) {
	c.want, c.Owner, c.stream = want, c, w
	c.hint, c.forbiddenCalls = magazine.Hint(), w.cuda.forbiddenCalls.Load()
}

// charge charges the claim to a tenant, or returns the quota's error; a claim that waits may
// continue uncharged.
func (c *claim) charge(t *pool.Tenant, cost int64) error {
	c.tenant = t
	if control := (*pool.TenantControl)(t); !c.Open(control, cost, c.Waits) {
		return c.stream.tally.Refuse(control.Refuse(cost))
	}
	return nil
}

// settle moves the charge from the claim to its buffers. It fails if the claim was cancelled.
func (c *claim) settle(buffers ...Buffer) bool {
	if c.tenant == nil {
		return true
	}
	if !c.Settle() {
		return false
	}
	payer, now := (*pool.TenantControl)(c.tenant), time.Now()
	for _, x := range buffers {
		n := blockBytes(x.bytes)
		payer.Hold(n)
		x.slot.SetCharge(x.word, payer, n, x.bytes, now)
	}
	c.stream.charged.Store(true)
	return true
}

// name names the buffers of a claim that is being answered, if it has a tag or has waited.
func (c *claim) name(buffers ...Buffer) {
	if tag := c.want.tag(); tag != "" || c.age != 0 {
		nameBuffers(buffers, tag)
	}
}

// Fail answers the claim with an error. On an answered claim it does nothing: a turn may panic
// after the answer, and two places may report the panic.
func (c *claim) Fail(err error) {
	c.Refund()
	c.want.fail(err)
}

func (c *claim) isWanted() bool { return c.want.unanswered() }

// Tenant implements the pool's charger.
func (c *claim) Tenant() *pool.Tenant { return c.tenant }

// Take implements the pool's charger: it charges the tenant where the quota allows it.
func (c *claim) Take(take func(bytes int64) bool) (taken, gone bool) { return c.Pay(take, c.isWanted) }

// account returns the account to which the pool charges the wait.
func (c *claim) account() admission.Account {
	if c.tenant != nil {
		return (*pool.TenantControl)(c.tenant).Account()
	}
	return admission.Account(c.stream.id)
}

// blocked reports whether the only goroutine that could free is waiting for the claim.
func (c *claim) blocked() bool {
	exclusive := c.stream.suspensions.exclusive.Load()
	if c.tenant != nil {
		exclusive = (*pool.TenantControl)(c.tenant).Exclusive()
	}
	return exclusive && c.awaiting.Load() > 0
}

// await notes that a goroutine begins to wait for the claim, or stops.
func (c *claim) await(begins bool) {
	change := int32(1)
	if !begins {
		change = -1
	}
	c.awaiting.Add(change)
	c.stream.ref.Tell(c.changed())
}

// givenUp returns the error of a wait for the claim that the end of a context has ended.
func (c *claim) givenUp(ended error) error {
	e := c.waitError(ended)
	e.Pending = true
	return e
}

// cancelled refunds the claim's tenant, and withdraws the claim from the pool.
func (c *claim) cancelled() {
	c.Refund()
	if c.Waits {
		c.stream.ref.Tell(c.changed())
	}
}

// changed returns the message that makes the stream check the claim again.
func (c *claim) changed() message { return &claimChanged{claim: c} }

// claimChanged reports that a claim was cancelled, or that the goroutines that wait for it have changed.
type claimChanged struct {
	quiet
	claim *claim
}

// ended returns the error of a claim whose context has ended: a *pool.WaitError if it could wait. It
// waits for no turn, since the end of a context must not wait.
func (c *claim) ended(err error) error {
	if !c.Waits {
		return err
	}
	return c.waitError(err)
}

// waitError describes the wait of a claim that can wait.
func (c *claim) waitError(err error) *pool.WaitError {
	e := &pool.WaitError{
		RequestedBytes: c.wantedBytes(), Stream: uint32(c.stream.id), Tag: c.want.tag(), Waited: time.Since(c.createdAt), Err: err,
		Holders: c.stream.peers.holders(),
	}
	c.stream.peers.fill(&e.Largest, c.stream.host, false)
	if c.Owes() {
		e.Quota = (*pool.TenantControl)(c.tenant).Over(c.Cost())
	}
	return c.stream.pool.EndWait(e, c.tenant, c.place.Load())
}

// wantedBytes returns the size for which a claim waits.
func (c *claim) wantedBytes() int64 { return max(c.want.requestedBytes(), 1) }

// refill returns the Refill for runs of pages under a token.
func (c *claim) refill(s *searches, token uint64, runs []uint32) poolcore.Refill {
	m := poolcore.Refill{
		Client: s.wiring.id, Token: token, Pages: runs[0], LiveBytes: s.state.core.LiveBytes(), OpenBytes: s.state.core.OpenBytes(),
		RequestedBytes: c.want.requestedBytes(), BlockBytes: c.want.blockBytes(),
		Place: poolcore.Place{Account: c.account(), ChargedBytes: c.Cost(), Priority: c.priority},
	}
	if len(runs) > 1 {
		m.More = runs[1:]
	}
	return m
}

// askRefill returns the Refill of a claim that fails where memory is short, or is parked by another
// message then.
func (c *claim) askRefill(s *searches, token uint64, runs []uint32) poolcore.Refill {
	m := c.refill(s, token, runs)
	m.Most, m.Bytes = s.state.core.MostPages(m.Pages), c.want.missingBytes()
	if c.Waits {
		m.Patience = poolcore.Patient
	} else {
		m.Place.Priority = 0
	}
	if c.draws != nil {
		m.From = (*pool.ReservationControl)(c.draws).ID()
	}
	return m
}

// parkRefill returns the Refill of a claim that is parked.
func (c *claim) parkRefill(s *searches, token uint64, runs []uint32) poolcore.Refill {
	m := c.refill(s, token, runs)
	m.Bytes, m.Patience = c.wantedBytes(), poolcore.Waiting
	m.Place.Age, m.Place.Align, m.Place.Blocked, m.Place.Unready = c.age, c.align, c.blocked(), c.Owes()
	return m
}

// asOutOfMemory returns the error that a handler gets; nil: the handler is not asked.
func asOutOfMemory(err error) *pool.OutOfMemoryError {
	var short *pool.OutOfMemoryError
	if errors.As(err, &short) {
		return short
	}
	return nil
}

// sign writes the request's stream and tenant into its refusal.
func (c *claim) sign(short *pool.OutOfMemoryError) {
	short.Tag, short.Tenant = c.want.tag(), c.tenant.Name()
}

func (*claim) isMessage()        {}
func (*claimChanged) isMessage() {}
