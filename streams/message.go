package streams

import (
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
)

// message is a message to a stream's actor. The set is closed: these, and a claim.
type message interface {
	actors.Message
	isMessage()
}

// quiet is part of messages that need no answer when the actor has ended: the waiting claims were failed then.
type quiet struct{ actors.Link }

// Fail does nothing.
func (*quiet) Fail(error) {}

// granted brings runs from the pool.
type granted struct {
	actors.Link
	stream *wiring
	token  uint64
	runs   []poolcore.Run // not in the stream's books yet
	mapped bool           // the driver mapped pages for the request
	kept   bool           // the stream's own: no fence could be recorded for them
}

// Fail returns the runs if the stream was closed properly. Otherwise they stay with the stream: its
// work may still touch them, and no fence covers that.
func (g *granted) Fail(error) {
	w := g.stream
	if len(g.runs) == 0 || !w.cuda.synced.Load() {
		return
	}
	w.spawn(func() { w.pool.Return(poolcore.Return{Client: w.id, Runs: g.runs}, fence.Mark{}) })
}

// denied brings the pool's refusal.
type denied struct {
	quiet
	token uint64
	err   error
}

// reclaim is the pool's reclaim request. It is answered once all runs that the pool has granted
// have arrived.
type reclaim struct {
	actors.Link
	stream      *wiring
	runsGranted uint64
	pages       uint32 // as in core.Ask
	looked      bool   // at the fences of pending memory, before the answer
}

// Fail answers for a stream that has ended: it has no pages to return.
func (a *reclaim) Fail(error) {
	w := a.stream
	w.spawn(func() { w.pool.Return(poolcore.Return{Client: w.id, Answer: true}, fence.Mark{}) })
}

// offered asks the stream to serve a parked claim from its own memory.
type offered struct {
	actors.Link
	stream   *wiring
	offer    claims.Offer
	answered bool // a panic from here on needs no other answer
}

// Fail answers for a stream that has ended, and for a turn that has panicked.
func (o *offered) Fail(error) {
	w := o.stream
	if o.answered {
		return
	}
	w.spawn(func() { w.pool.AnswerOffer(w.id, o.offer.Token, false) })
}

// recorded brings the fence that orderFence ordered.
type recorded struct {
	actors.Link
	stream *wiring
	fence  poolcore.Fence
	mark   fence.Mark
	failed bool
}

// Fail releases the mark: the stream has ended.
func (m *recorded) Fail(error) {
	w, mark := m.stream, m.mark
	w.spawn(func() { w.cuda.discard(mark) })
}

// consulted brings the answer of the caller's handler.
type consulted struct {
	quiet
	token uint64
	retry bool
	err   error
}

// fenceWaited ends a wait for fences.
type fenceWaited struct {
	quiet
	passed bool
}

// woken reports that a buffer of a closed magazine was freed, or a buffer while memory is wanted.
type woken struct{ quiet }

func (*callback) isMessage()    {}
func (*granted) isMessage()     {}
func (*denied) isMessage()      {}
func (*reclaim) isMessage()     {}
func (*offered) isMessage()     {}
func (*recorded) isMessage()    {}
func (*consulted) isMessage()   {}
func (*fenceWaited) isMessage() {}
func (*woken) isMessage()       {}
