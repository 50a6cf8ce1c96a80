package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
)

// ending handles panics in turns, and ends the stream.
type ending struct {
	_ [0]func() // is not compared, and programs have no code for it

	wiring    *wiring
	state     *turnState
	lent      *lentMemory
	dispatch  *dispatcher
	reclaims  *reclaims
	detaching bool                  // inside turn.detach, or it has panicked: it is not called again
	failure   atomic.Pointer[error] // the cause of the stream's end
}

// detachPanicked performs the effects that turn.detach leaves when it panics after the stream has ended: nobody
// ends the stream again.
func (e *ending) detachPanicked() {
	if e.detaching && e.failure.Load() != nil {
		e.performLeft()
	}
}

// panicked repairs the books after a panic. An error ends the stream: the books do not balance.
func (e *ending) panicked(p actors.Panic) (finding error) {
	defer func() {
		if value := recover(); value != nil { // the repair panicked, too
			e.wiring.panics.Here(e.wiring.ref.Name(), value)
			finding = fmt.Errorf("%w: %v", ErrQuarantined, value)
		}
	}()
	held, c := e.state.inTransit, e.dispatch.current
	e.state.inTransit, e.dispatch.current = inTransit{}, nil
	if e.state.wanted { // the turn may have panicked before it reported a free
		e.state.core.Note()
	}
	if c != nil {
		e.dispatch.endWaiting(c) // answered now; an offer to a parked one has it withdrawn
		c.Fail(&actors.PanicError{Actor: e.wiring.ref.Name(), Value: p.Value, Stack: p.Stack})
	}
	e.state.putBack(held)
	if err := e.state.core.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrQuarantined, err)
	}
	if e.dispatch.fenceWait.Interrupted() {
		e.wiring.ref.Tell(&fenceWaited{passed: true})
	}
	if a := e.reclaims.due; a != nil { // the turn may have panicked before the answer
		e.reclaims.due = nil
		e.wiring.ref.Tell(a)
	}
	for _, o := range e.state.claims.TakeOffers() { // likewise; one whose runs have not arrived waits again
		e.wiring.ref.Tell(&offered{stream: e.wiring, offer: o})
	}
	return nil
}

// stopped ends the stream. Its memory stays in place, and no magazine serves it from then on.
func (e *ending) stopped(cause error) {
	e.failure.Store(&cause)
	e.wiring.peers.leave(&e.wiring.peer)
	defer e.performLeft() // last, and also if reading the books panics
	defer e.state.core.Shut()
	e.dispatch.failAll(cause)
	if e.state.out != nil && !errors.Is(cause, ErrClosed) { // a call that returns memory learns of the end
		for e.state.out.reply(cause) {
		}
	}
	if e.reclaims.due != nil {
		e.reclaims.due.Fail(cause)
	}
	e.lent.dropPrepared()
	if e.wiring.cuda.synced.Load() && !errors.Is(cause, ErrQuarantined) {
		e.returnRest()
	}
	e.state.saveStats()
}

// performLeft performs the effects of a turn whose detach has panicked, or panics: the requests in them get
// no other answer, and the pool would keep the ones that wait.
func (e *ending) performLeft() {
	if !e.detaching || e.state.out == nil {
		return
	}
	left := e.state.detach()
	e.wiring.spawn(func() {
		defer func() {
			if value := recover(); value != nil {
				e.wiring.panics.Here(e.wiring.ref.Name(), value)
			}
		}()
		left.Perform()
	})
}

// returnRest returns pages that became free after the end of a closed stream, or that a turn kept when it
// panicked.
func (e *ending) returnRest() {
	left := e.state.core.Return()
	if len(left) == 0 {
		return
	}
	r := poolcore.Return{Client: e.wiring.id, Runs: slices.Clone(left)} // left is the core's
	e.wiring.spawn(func() { e.wiring.pool.Return(r, fence.Mark{}) })
}
