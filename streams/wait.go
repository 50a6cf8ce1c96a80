package streams

import (
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/batch"
	"github.com/go-vram/vram/pool"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/pool/core/admission"
)

// patience is what a claim has that waits for other people's frees rather than fail.
type patience struct {
	wait     bool
	priority int
	align    int64
	draws    *Reservation // nil: none
	bill
	awaiting atomic.Int32 // goroutines that wait for the answer and do nothing else
	asked    time.Time    // when it was made; set before the stream has it

	// Owned by the turn.
	age   uint64 // 0: it has not waited yet
	token uint64 // under which it waits; 0: it does not just now
	since time.Time
	told  bool // see LongWait

	consults int // how often the caller's handler was asked

	blocks uint64 // how often the pool was told who waits
}

// patient is the claim's, nil if it never waits.
func (p *patience) patient() *patience {
	if !p.wait {
		return nil
	}
	return p
}

// state is the same of any claim.
func (p *patience) state() *patience { return p }

// await tells the stream that a goroutine begins to wait for the answer of a claim, or gives that up.
func (s *Stream) await(c claim, begun bool) {
	p := c.patient()
	if begun {
		p.awaiting.Add(1)
	} else {
		p.awaiting.Add(-1)
	}
	s.ref.Tell(&awaited{claim: c})
}

// ended is the error of a claim whose context has ended: of one that waits it says for how long, and who has what it waits for. It takes no
// turn, since the end of a context waits for nobody.
func (s *Stream) ended(c claim, err error) error {
	p := c.patient()
	if p == nil {
		return err
	}
	e := &pool.WaitError{RequestedBytes: c.wantedBytes(), Waited: time.Since(p.asked), Err: err}
	for _, other := range s.peers.list() {
		if held := other.heldBytes.Load(); held > 0 {
			e.Holders = append(e.Holders, pool.Holder{Stream: uint32(other.id), HeldBytes: held})
		}
	}
	return s.pool.EndWait(e, p.tenant)
}

// awaited says that the goroutines which wait for a claim have changed.
type awaited struct {
	actors.Link
	claim claim
}

// Fail has nobody to tell.
func (*awaited) Fail(error) {}

// withdrawn says that nobody wants a claim any more.
type withdrawn struct {
	actors.Link
	claim claim
}

// Fail has nobody to tell: the claim has its answer.
func (*withdrawn) Fail(error) {}

// demanded says that requests of the device have begun to wait, or none does any more.
type demanded struct{ actors.Link }

// Fail has nobody to tell.
func (*demanded) Fail(error) {}

// offered wants a claim that waits served with what the stream keeps.
type offered struct {
	actors.Link
	stream      *Stream
	token       uint64
	runsGranted uint64
}

// Fail answers for a stream that ended.
func (o *offered) Fail(error) {
	s := o.stream
	actors.Go(s.host, "", func() { s.pool.AnswerOffer(s.id, o.token, false) })
}

// Offered implements pool.Client.
func (s *Stream) Offered(token, runsGranted uint64) {
	s.ref.Call(&offered{stream: s, token: token, runsGranted: runsGranted})
}

// Demanded implements pool.Client.
func (s *Stream) Demanded() { s.ref.Call(&demanded{}) }

// heed begins or ends to tell the pool of all that comes home, as the pool wants it now.
func (s *Stream) heed() {
	if s.draining {
		return
	}
	on := s.pool.Demand() > 0
	if on != s.wanted {
		s.wanted = on
		s.core.SetWanted(on)
	}
	if st := s.standing.Load(); on && st != nil && st.number != s.said { // also where nothing waited for a while, unseen
		s.said = st.number
		s.effects().suspends = len(st.all) > 0 || len(st.freedBy) > 0
	}
}

// park lets a claim wait in the pool that was refused with that error, or with none since it has yet to be charged. It keeps nothing. It reports whether the claim waits.
func (s *Stream) park(c claim, err error) bool {
	p := c.patient()
	if p == nil || s.draining || err != nil && !errors.Is(err, pool.ErrOutOfMemory) {
		return false
	}
	c.drop(s)
	if p.age == 0 {
		p.age, p.since = s.pool.NextAge(), time.Now()
	}
	s.lastToken++
	p.token = s.lastToken
	s.parked = append(s.parked, c)
	runs := c.missingRuns(s)
	e := s.effects()
	e.refills = append(e.refills, refilling{poolcore.Refill{
		Client: s.id, Token: p.token, Pages: runs[0], More: runs[1:], LiveBytes: s.core.LiveBytes(), OpenBytes: s.core.OpenBytes(),
		Bytes: c.wantedBytes(), RequestedBytes: c.requestedBytes(), BlockBytes: c.blockBytes(), Lanes: s.lanes(), Patience: poolcore.Waiting,
		Place: poolcore.Place{
			Account: s.account(p), Priority: p.priority, Age: p.age, Align: p.align, Blocked: s.blocked(p),
			Unready: p.owes(), ChargedBytes: p.cost,
		},
	}, c})
	return true
}

// repeat says again what a later turn may have told the pool of a claim before its Refill had got there.
func (s *Stream) repeat(r refilling) {
	if !r.waits.pending() {
		s.pool.Withdraw(s.id, r.Token)
	} else if s.blocked(r.waits.patient()) != r.Place.Blocked {
		s.ref.Tell(&awaited{claim: r.waits})
	}
}

func (r *request) pending() bool  { return r.promise.Pending() }
func (r *batching) pending() bool { return r.promise.Pending() }

// queues reports whether a tenant's request that may wait takes its place among those that do, whatever the stream keeps: what
// comes home to a stream belongs to whoever is next, not to whoever asks that stream next.
func (s *Stream) queues(waits bool) bool { return waits && s.pool.Demand() > 0 }

// behind is the same of a claim that comes to be served for the first time.
func (s *Stream) behind(c claim) bool {
	p := c.patient()
	return p != nil && p.tenant != nil && p.age == 0 && s.queues(true)
}

// account is who waits by a claim.
func (s *Stream) account(p *patience) admission.Account {
	if p.tenant != nil {
		return p.tenant.Account()
	}
	return admission.Account(s.id)
}

// blocked reports whether the only goroutine that could free does nothing but wait for a claim.
func (s *Stream) blocked(p *patience) bool {
	exclusive := s.single.Load()
	if p.tenant != nil {
		exclusive = p.tenant.Exclusive()
	}
	return exclusive && p.awaiting.Load() > 0
}

// unpark takes out the claim that waits under a token; nil if there is none.
func (s *Stream) unpark(token uint64) claim {
	at := slices.IndexFunc(s.parked, func(c claim) bool { return c.patient().token == token })
	if token == 0 || at < 0 {
		return nil
	}
	c := s.parked[at]
	s.parked = slices.Delete(s.parked, at, at+1)
	c.patient().token = 0
	return c
}

// waited counts the wait of a claim that has its answer.
func (s *Stream) waited(p *patience) {
	if !p.since.IsZero() {
		s.pool.NoteWait(time.Since(p.since))
		p.since = time.Time{}
	}
}

// tellBlocked tells the pool whether a goroutine waits for a claim.
func (s *Stream) tellBlocked(a *awaited) {
	if p := a.claim.patient(); p.token != 0 {
		p.blocks++
		s.effects().blocks = append(s.effects().blocks, poolcore.Block{
			Client: s.id, Token: p.token, Number: p.blocks, Blocked: s.blocked(p),
		})
	}
}

// withdraw takes a claim back that nobody wants any more.
func (s *Stream) withdraw(w *withdrawn) {
	p := w.claim.patient()
	if p.token != 0 {
		s.effects().withdrawals = append(s.effects().withdrawals, p.token)
		s.unpark(p.token)
	}
	s.waited(p)
}

// offered serves a claim that waits, if what the stream keeps does so, once what the pool had granted before has arrived.
func (s *Stream) offered(o *offered) {
	if s.received < o.runsGranted {
		s.offers = append(s.offers, o)
		return
	}
	taken := s.serveOffer(o.token)
	s.effects().offers = append(s.effects().offers, answeredOffer{o.token, taken})
}

// answeredOffer is what the pool is told of an offer.
type answeredOffer struct {
	token uint64
	taken bool
}

func (s *Stream) serveOffer(token uint64) bool {
	at := slices.IndexFunc(s.parked, func(c claim) bool { return c.patient().token == token })
	if at < 0 { // the effects with its withdrawal may be held up, and the pool would offer it whatever this stream returns
		s.effects().withdrawals = append(s.effects().withdrawals, token)
		return false
	}
	c := s.parked[at]
	s.core.DrainAll()
	if !c.serveHere(s) {
		return false
	}
	s.unpark(token)
	s.waited(c.patient())
	return true
}

// reoffer goes on with the offers that waited for what has arrived.
func (s *Stream) reoffer() {
	for _, o := range s.takeOffers() {
		s.offered(o)
	}
}

func (s *Stream) takeOffers() []*offered {
	offers := s.offers
	s.offers = nil
	return offers
}

// report tells the pool, while requests wait, that something has come home, and sees to what is pending. It ends every turn.
func (s *Stream) report() {
	if s.draining {
		return
	}
	if s.core.TakeCame() {
		e := s.effects()
		e.returns = append(e.returns, giving{Return: poolcore.Return{
			Client: s.id, LiveBytes: s.core.LiveBytes(), OpenBytes: s.core.OpenBytes(), Lanes: s.lanes(), Sent: s.sent, Stirred: true,
		}})
	}
	if s.core.PendingBytes() > 0 && !s.outlasting && !s.vain {
		s.outlasting = true
		s.effects().outlast = true
	}
}

// serveHere serves a request with what the stream keeps, and reports whether that was enough.
func (r *request) serveHere(s *Stream) bool {
	if !r.promise.Pending() {
		return false
	}
	s.hand.request = r
	s.reach(beforeSearch)
	slot, _ := s.search(r.Bytes, r.Align, r.hint, r.wide)
	if slot == nil {
		slot = s.alone(r.Bytes, r.Align)
	}
	if slot != nil {
		return r.complete(s, slot)
	}
	s.hand.request = nil
	return false
}

// missingRuns are the pages that a request wants of the pool.
func (r *request) missingRuns(s *Stream) []uint32 {
	r.wide = true
	slot, pages := s.search(r.Bytes, r.Align, r.hint, true)
	if slot != nil { // nothing came home since the last search, but a block for the request alone may be in another place
		s.core.PutBack(slot)
		s.core.Note()
		pages = 1
	}
	return []uint32{pages}
}

func (r *request) wantedBytes() int64 { return max(r.requestedBytes(), 1) }

// serveHere serves a batch with what the stream keeps, all of it or nothing.
func (r *batching) serveHere(s *Stream) bool {
	if !r.promise.Pending() {
		return false
	}
	s.hand.request = r
	s.reach(beforeSearch)
	if s.core.Trial(func() bool { return r.fill(s) || r.fillAlone(s) }, func() { r.drop(s) }) {
		return r.complete(s)
	}
	s.hand.request = nil
	return false
}

// missingRuns are the pages that a batch wants of the pool, which holds nothing: the first time beside what lies in pages that the
// stream has to keep, then all, since that may have gone to others, and at last all in one run.
func (r *batching) missingRuns(s *Stream) []uint32 {
	if r.parks++; r.parks > 1 {
		return r.allRuns(s)
	}
	covered := s.covered(inBackground)
	s.giveBack(s.core.Release(^uint32(0), covered), poolcore.Return{}, covered)
	var runs []uint32
	s.core.Trial(func() bool {
		if !r.fill(s) {
			runs = slices.Clone(s.runs)
		}
		return false
	}, func() { r.drop(s) })
	if runs == nil {
		return r.allRuns(s)
	}
	return runs
}

// allRuns are the pages of a batch of which nothing is there.
func (r *batching) allRuns(s *Stream) []uint32 {
	missing := batch.NewPacking(s.pool.PageBytes(), nil)
	for at := 0; at < len(r.bytes); at += batch.Width {
		p := &s.plan
		p.Make(r.bytes[at:min(at+batch.Width, len(r.bytes))], batch.All)
		p.Order()
		for _, g := range p.Groups() {
			missing.Add(g.Units, int(g.Count))
		}
	}
	runs := missing.Runs()
	if r.parks <= 2 {
		return runs
	}
	var pages uint32
	for _, n := range runs { // the best fit did not put the blocks where they were meant to go
		pages += n
	}
	return []uint32{pages}
}

func (r *batching) wantedBytes() int64 { return max(r.requestedBytes(), 1) }
