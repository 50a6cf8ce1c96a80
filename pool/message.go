package pool

import (
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
)

// Client is a stream, or a reservation, as the pool knows it. The methods are called outside every
// turn, from any goroutine, and must not wait.
type Client interface {
	// Granted lends runs to the client: those for a Refill's token, or, with token 0, runs that it
	// had returned at a reclaim request and may keep, or a part of a refused batch. mapped: the
	// driver mapped pages for the request. The client owns the slice.
	Granted(token uint64, runs []core.Run, mapped bool)
	// Denied refuses the Refill with that token. It may be called inside the pool's turn.
	Denied(token uint64, err error)
	// Asked is a reclaim request: the client returns its longest free runs, up to so many pages, or with 0 all its free pages,
	// by a Return with Answer, once it has been Granted that many runs since it joined, including runs on their way to it.
	Asked(runsGranted uint64, pages uint32)
	// Offered proposes that the client serve its waiting Refill with that token from its own
	// memory, once it has been Granted that many runs since it joined. It answers with
	// Pool.AnswerOffer.
	Offered(token, runsGranted uint64)
	// Demanded reports that Pool.Demand has become positive, or 0: while there is demand, the client sends an empty Return with
	// Stirred as soon as memory is freed to it.
	Demanded()
	// Look asks the client to collect freed blocks at once: without waiting for its turn.
	Look()
	// Usage is the memory of the client's stream, as of the client's last turn. The pool calls it
	// inside its own turn, after a Changed of the client's Reporter.
	Usage() core.Usage
	// Idle reports whether the client's stream has no work. It is called on the driver goroutine
	// and makes two driver calls at most; false if the stream cannot be queried now.
	Idle() bool
	// Follow makes later work of the client's stream wait, on the device, for a mark of another
	// client, while a Refill of this one waits. It is called on the driver goroutine, makes one
	// driver call, and returns an error if it cannot.
	Follow(m fence.Mark) error
}

// enlist adds tenants.
type enlist struct {
	actors.Link
	tenants []*Tenant
}

// Fail does nothing: the requests fail with the pool.
func (*enlist) Fail(error) {}

// recharge retries the requests that wait for a tenant's quota.
type recharge struct {
	actors.Link
	tenant *Tenant
}

// Fail does nothing: the requests fail with the pool.
func (*recharge) Fail(error) {}

// refused reports that a Refill waits for no quota any more.
type refused struct {
	actors.Link
	pool   *Pool
	client core.Client
	token  uint64
}

// Fail does nothing.
func (*refused) Fail(error) {}

// step is a message for the core, with the shell's part of it.
type step struct {
	actors.Link
	pool     *Pool
	message  core.Message
	client   Client     // of a Join and a Refill
	reporter *Reporter  // of a Join
	charger  charger    // of a Refill that waits for its quota
	mark     fence.Mark // of a Return
	token    uint64     // of a Warm, Trim or Close
	promise  *futures.Promise[int64]
}

// question runs a function inside a turn.
type question struct {
	actors.Link
	visit func() // leads to the answer; nil: the answer follows run
	run   func() // if visit is nil
	peer  int    // the ordinal, for EnablePeer
	reply futures.Promise[struct{}]
}

// Fail answers in the pool's place.
func (s *step) Fail(err error) {
	if m, ok := s.message.(core.Refill); ok {
		s.client.Denied(m.Token, err)
	}
	if s.promise != nil {
		s.promise.Complete(0, err)
	}
	if p, mark := s.pool, s.mark; !mark.Zero() {
		actors.Go(p.host, "", func() { _ = p.fences.Release(mark) }) // an event that the driver keeps does no harm
	}
}

// Fail answers in the pool's place.
func (q *question) Fail(err error) { q.reply.Complete(struct{}{}, err) }

// effects are the actions of a turn of the pool that are performed after it, in field order.
type effects struct {
	pool     *Pool
	work     *work
	home     effect.List[grant] // of runs that go back to the clients that returned them
	grants   effect.List[grant]
	denials  effect.List[denial]
	demands  effect.List[Client]
	offers   effect.List[offer]
	reclaims effect.List[reclaimRequest]
	looks    effect.List[Client]
	looked   bool // the core gets Looked once all have looked
	ends     effect.List[completion]
}

type grant struct {
	client Client
	id     core.Client
	token  uint64
	runs   []core.Run
	mapped bool
}

type reclaimRequest struct {
	client      Client
	runsGranted uint64
	pages       uint32
}

type denial struct {
	client Client
	token  uint64
	err    error
	quiet  bool
}

type offer struct {
	client      Client
	token       uint64
	runsGranted uint64
}

type completion struct {
	promise *futures.Promise[int64]
	bytes   int64
	err     error
}

// Perform implements actors.Effects. A client, or an observer, that panics keeps no other from an answer.
func (e *effects) Perform() {
	returned := false
	defer func() {
		if !returned { // the panic continues afterwards
			e.Perform()
		}
	}()
	e.pool.reports.pass(e.pool.observer.JobDone) // before the turn's own job can begin, unless another goroutine passes them on
	if w := e.work; w != nil {
		e.work = nil
		e.pool.driver.submit(w)
	}
	for e.deliver() || e.tell() {
	}
	returned = true
	e.recycle()
}

// deliver gives the next answer to a Refill. It reports whether there was one.
func (e *effects) deliver() bool {
	g, ok := effect.Pop(&e.home)
	if !ok {
		g, ok = effect.Pop(&e.grants)
	}
	if ok {
		g.client.Granted(g.token, g.runs, g.mapped)
		return true
	}
	if d, ok := effect.Pop(&e.denials); ok {
		defer d.client.Denied(d.token, d.err) // also where the observer panics
		if !d.quiet {
			e.observeDenial(d.err)
		}
		return true
	}
	return false
}

// tell makes the next other call of a client, or completes a request of the pool's own. It reports
// whether there was one.
func (e *effects) tell() bool {
	if c, ok := effect.Pop(&e.demands); ok {
		c.Demanded()
		return true
	}
	if o, ok := effect.Pop(&e.offers); ok {
		o.client.Offered(o.token, o.runsGranted)
		return true
	}
	if a, ok := effect.Pop(&e.reclaims); ok {
		a.client.Asked(a.runsGranted, a.pages)
		return true
	}
	if c, ok := effect.Pop(&e.looks); ok {
		c.Look()
		return true
	}
	if e.looked {
		e.looked = false
		e.pool.tell(core.Looked{}, fence.Mark{})
		return true
	}
	if x, ok := effect.Pop(&e.ends); ok {
		x.promise.Complete(x.bytes, x.err)
		return true
	}
	return false
}

// recycle empties the effects and stores them for reuse.
func (e *effects) recycle() {
	effect.Reset(&e.home)
	effect.Reset(&e.grants)
	effect.Reset(&e.denials)
	effect.Reset(&e.demands)
	effect.Reset(&e.offers)
	effect.Reset(&e.reclaims)
	effect.Reset(&e.looks)
	effect.Reset(&e.ends)
	e.pool.spare.Store(e)
}
