package pool

import (
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/effect"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/pool/core"
)

// Client is a stream as the pool sees it. The methods are called outside every turn, from any goroutine,
// and must not wait.
type Client interface {
	// Granted lends runs to the client: those for a Refill's token, or, with token 0, what the client had
	// returned when asked and may have back, or a part of what it was refused. The slice is the client's.
	Granted(token uint64, runs []core.Run)
	// Denied refuses the Refill with that token. It may be called inside the pool's turn.
	Denied(token uint64, err error)
	// Asked wants the client to return what it does not use, by a Return with Answer, once it has been
	// Granted that many runs since it joined: those on their way to it are part of what it may not use.
	Asked(runsGranted uint64)
	// Offered wants the client to serve its Refill with that token, which waits, with what it keeps, once it has been
	// Granted that many runs since it joined. It answers with Pool.AnswerOffer.
	Offered(token, runsGranted uint64)
	// Demanded says that Pool.Demand has become more than 0, or 0: while there is demand, the client returns an empty
	// Stirred as soon as something comes home to it.
	Demanded()
	// Looked wants the client to say what it uses, by a Return with Report, and at once: whoever has its turn is not
	// waited for.
	Looked()
	// Idle reports whether the client's stream has no work. It is called on the driver goroutine and makes two driver calls at most;
	// false if the stream cannot be asked now.
	Idle() bool
	// Follow makes what is submitted to the client's stream from now on wait, on the device, for a mark of another
	// client's, while a Refill of this one waits. It is called on the driver goroutine, makes one driver call, and says
	// why where it cannot.
	Follow(m fence.Mark) error
}

// message is anything that the pool's actor receives. The set is closed.
type message interface {
	actors.Message
	isMessage()
}

var (
	_ message = (*step)(nil)
	_ message = (*question)(nil)
	_ message = (*recharge)(nil)
)

// recharge has the requests tried that wait for a tenant's quota.
type recharge struct {
	actors.Link
	tenant *Tenant
}

// Fail has nobody to tell: the requests are failed with the pool.
func (*recharge) Fail(error) {}

// refused says that a Refill waits for no quota any more.
type refused struct {
	actors.Link
	pool   *Pool
	client core.Client
	token  uint64
}

// Fail has nobody to tell.
func (*refused) Fail(error) {}

// step is a message for the core, with what the shell needs beside it.
type step struct {
	actors.Link
	pool    *Pool
	message core.Message
	client  Client     // of a Join and a Refill
	charger Charger    // of a Refill that waits for its quota
	mark    fence.Mark // of a Return
	token   uint64     // of a Warm, Trim or Close
	promise *futures.Promise[int64]
}

// question asks for a snapshot, or changes the settings, inside a turn.
type question struct {
	actors.Link
	settings  *core.Settings
	reset     bool
	liveBytes map[core.Client]int64 // for a reset
	reply     futures.Promise[Snapshot]
}

func (*step) isMessage()     {}
func (*question) isMessage() {}
func (*recharge) isMessage() {}
func (*refused) isMessage()  {}

// Fail answers in the pool's place.
func (s *step) Fail(err error) {
	if m, ok := s.message.(core.Refill); ok {
		s.client.Denied(m.Token, err)
	}
	if s.promise != nil {
		s.promise.Complete(0, err)
	}
}

// Fail answers in the pool's place.
func (q *question) Fail(err error) { q.reply.Complete(Snapshot{}, err) }

// effects are what a turn of the pool left, in the order in which it is carried out.
type effects struct {
	pool          *Pool
	reports       []JobReport
	work          *work
	home          effect.List[grant] // of runs that clients had returned
	grants        effect.List[grant]
	denials       effect.List[denial]
	demands       effect.List[Client]
	offers        effect.List[offer]
	reclaims      effect.List[reclaimRequest]
	usageRequests effect.List[Client]
	ends          effect.List[completion]
}

type grant struct {
	client Client
	id     core.Client
	token  uint64
	runs   []core.Run
}

type reclaimRequest struct {
	client      Client
	runsGranted uint64
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

// Perform implements actors.Effects. A client that panics keeps nobody else from an answer.
func (e *effects) Perform() {
	e.observe()
	if w := e.work; w != nil {
		e.work = nil
		e.pool.driver.submit(w)
	}
	returned := false
	defer func() {
		if !returned { // the panic goes on afterwards
			e.Perform()
		}
	}()
	for e.deliver() || e.tell() {
	}
	returned = true
	e.recycle()
}

// deliver gives the next answer to a Refill. It reports whether there was one.
func (e *effects) deliver() bool {
	g, ok := e.home.Pop()
	if !ok {
		g, ok = e.grants.Pop()
	}
	if ok {
		g.client.Granted(g.token, g.runs)
		return true
	}
	if d, ok := e.denials.Pop(); ok {
		defer d.client.Denied(d.token, d.err) // also where the observer panics
		if !d.quiet {
			e.observeDenial(d.err)
		}
		return true
	}
	return false
}

// tell tells a client what the pool wants of it, or ends a request of the pool's own. It reports whether there was
// anything to tell.
func (e *effects) tell() bool {
	if c, ok := e.demands.Pop(); ok {
		c.Demanded()
		return true
	}
	if o, ok := e.offers.Pop(); ok {
		o.client.Offered(o.token, o.runsGranted)
		return true
	}
	if a, ok := e.reclaims.Pop(); ok {
		a.client.Asked(a.runsGranted)
		return true
	}
	if c, ok := e.usageRequests.Pop(); ok {
		c.Looked()
		return true
	}
	if x, ok := e.ends.Pop(); ok {
		x.promise.Complete(x.bytes, x.err)
		return true
	}
	return false
}

// recycle empties the effects, keeps their memory, and leaves them for another turn.
func (e *effects) recycle() {
	e.home.Reset()
	e.grants.Reset()
	e.denials.Reset()
	e.demands.Reset()
	e.offers.Reset()
	e.reclaims.Reset()
	e.usageRequests.Reset()
	e.ends.Reset()
	e.pool.spare.Store(e)
}
