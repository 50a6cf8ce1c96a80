package streams

import (
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/claims"
)

// message is anything that a stream's actor receives. The set is closed: these, and a claim.
type message interface {
	actors.Message
	isMessage()
}

// call is something to do in the stream's turn.
type call struct {
	actors.Link
	run           func()
	awaitsReturns bool // it gives memory back, and is answered when the pool has that
	promise       futures.Promise[struct{}]
}

// Fail answers the call in the stream's place.
func (c *call) Fail(err error) { c.promise.Complete(struct{}{}, err) }

// granted brings runs from the pool.
type granted struct {
	actors.Link
	stream *wiring
	token  uint64
	runs   []poolcore.Run // those that are not in the stream's books yet
	kept   bool           // they come from the stream itself: no fence could be recorded for them
}

// Fail gives the runs back if the stream was closed properly. Those of a stream that ended otherwise stay
// with it, since no fence covers what its work may still touch.
func (g *granted) Fail(error) {
	w := g.stream
	if len(g.runs) == 0 || !w.cuda.synced.Load() {
		return
	}
	w.spawn(func() { w.pool.Return(poolcore.Return{Client: w.id, Runs: g.runs}, fence.Mark{}) })
}

// denied brings the pool's refusal.
type denied struct {
	actors.Link
	token uint64
	err   error
}

// Fail has nobody to tell: the waiting claims were failed when the actor ended.
func (*denied) Fail(error) {}

// reclaim wants back what the stream does not use, once it has got as many runs as the pool has granted.
type reclaim struct {
	actors.Link
	stream      *wiring
	runsGranted uint64
	looked      bool // at the fences that keep memory
}

// Fail answers for a stream that ended: it has nothing to give.
func (a *reclaim) Fail(error) {
	w := a.stream
	w.spawn(func() { w.pool.Return(poolcore.Return{Client: w.id, Answer: true}, fence.Mark{}) })
}

// offered wants a parked claim served with what the stream keeps.
type offered struct {
	actors.Link
	stream *wiring
	offer  claims.Offer
}

// Fail answers for a stream that ended.
func (o *offered) Fail(error) {
	w := o.stream
	w.spawn(func() { w.pool.AnswerOffer(w.id, o.offer.Token, false) })
}

// recorded brings a fence that a caller's turn has left.
type recorded struct {
	actors.Link
	stream *wiring
	fence  poolcore.Fence
	mark   fence.Mark
	failed bool
}

// Fail gives the mark up: the stream has ended.
func (m *recorded) Fail(error) {
	w, mark := m.stream, m.mark
	w.spawn(func() { w.cuda.discard(mark) })
}

// consulted brings the answer of the caller's handler.
type consulted struct {
	actors.Link
	token uint64
	retry bool
	err   error
}

// Fail has nobody to tell: the waiting claims were failed when the actor ended.
func (*consulted) Fail(error) {}

// fenceWaited ends a wait for fences.
type fenceWaited struct {
	actors.Link
	passed bool
}

// Fail has nobody to tell: the waiting claims were failed when the actor ended.
func (*fenceWaited) Fail(error) {}

// woken says that a buffer came home that somebody waits for.
type woken struct{ actors.Link }

// Fail has nobody to tell.
func (*woken) Fail(error) {}

func (*call) isMessage()        {}
func (*granted) isMessage()     {}
func (*denied) isMessage()      {}
func (*reclaim) isMessage()     {}
func (*offered) isMessage()     {}
func (*recorded) isMessage()    {}
func (*consulted) isMessage()   {}
func (*fenceWaited) isMessage() {}
func (*woken) isMessage()       {}
