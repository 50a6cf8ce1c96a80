package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/stream/core"
)

// turn has the state and the code of a stream's turns.
type turn struct {
	dispatcher
	debug           bool
	reclaim         *reclaim              // waits for runs that the pool has granted
	detaching       bool                  // inside detach, or it has panicked: it is not called again
	reportedSuspend uint64                // last suspend sequence number that was sent to the pool in a turn
	wakeDue         atomic.Bool           // a woken message is queued
	failure         atomic.Pointer[error] // the cause of the stream's end
}

// wake has a later turn take home freed memory. It may be called inside a turn, and from any
// goroutine.
func (t *turn) wake() {
	if !t.wakeDue.Swap(true) {
		t.ref.Tell(&woken{})
	}
}

// receive processes one message.
func (t *turn) receive(m actors.Message) {
	switch m := m.(type) {
	case *claim:
		t.serve(m)
	case *granted:
		t.granted(m)
	case *denied:
		t.denied(m)
	case *reclaim:
		t.handleReclaim(m)
	case *recorded:
		t.recorded(m)
	case *call:
		t.call(m)
	case *fenceWaited:
		t.retryDelayed(m.passed)
	case *woken:
		t.wakeDue.Store(false) // first: a later free sends woken again
		t.core.DrainAll()
		t.returnWhenClosed()
	case *changed:
		t.changed(m.claim)
	case *offered:
		t.offered(m)
	case *consulted:
		t.consulted(m)
	}
}

// call runs a caller's function in the turn.
func (t *turn) call(c *call) {
	c.run()
	if c.awaitsReturns {
		t.effects().replies.Push(c)
		return
	}
	c.promise.Complete(struct{}{}, nil)
}

// granted adds runs, and serves their claim.
func (t *turn) granted(g *granted) {
	c := t.waiting(g.token)
	t.current = c // its grant is used up, also if the turn panics from here on
	if !g.kept {
		t.claims.Receive(len(g.runs))
	}
	for len(g.runs) > 0 {
		run := g.runs[0]
		g.runs = g.runs[1:] // first: Fail must not return runs that are in the books
		t.core.Grant(run)
	}
	t.updateDemand()
	t.returnWhenClosed()
	if c != nil && g.mapped {
		c.mapped = true
	}
	if c != nil {
		t.endWaiting(c)
		t.serve(c)
		t.core.NoteSpare()
	} else if g.token != 0 { // the claim was cancelled
		t.core.Note()
	} else if !g.kept && !t.draining { // kept runs stay until the next turn: the driver refuses just now
		t.returnExcess(inBackground)
	}
	if t.reclaim != nil {
		t.handleReclaim(t.reclaim)
	}
	t.reoffer()
}

// handleReclaim answers the pool's reclaim request at once, or when the runs that the pool granted
// before have arrived. If others want memory and fences keep some, it looks at these before it
// answers.
func (t *turn) handleReclaim(a *reclaim) {
	t.updateDemand()
	if !t.claims.Received(a.runsGranted) {
		t.reclaim = a
		return
	}
	others := t.claims.Len() == t.claims.ParkedLen()
	if others && a.pages == 0 && !a.looked && !t.draining && t.core.PendingBytes() > 0 {
		a.looked = true
		t.core.Press()
		t.takeOwnFences()
		t.eachLook()
		t.effects().reclaim = a
		t.reclaim = nil // last, as below
		return
	}
	t.answerReclaim(a.pages)
	t.reclaim = nil // last: after a panic the answer is still to be sent
}

// updateDemand is dispatcher.updateDemand, and reports suspensions that the pool does not know.
func (t *turn) updateDemand() {
	t.dispatcher.updateDemand()
	p := t.suspensions.progress.Load()
	if !t.draining && t.wanted && p != nil && p.number != t.reportedSuspend { // also after an unseen end of demand
		t.reportedSuspend = p.number
		t.effects().suspends = len(p.all) > 0 || len(p.freedBy) > 0
	}
}

// tick does the periodic work.
func (t *turn) tick(level pressure.Level) (usedBytes int64, waits []LongWait) {
	waits = t.longWaits()
	t.core.SetPressure(level)
	t.core.Tick()
	t.fenceWait.Tick()
	usedBytes = t.core.UsedBytes()
	t.audit()
	t.lookAtTick()
	if t.draining {
		t.returnWhenClosed()
		return usedBytes, waits
	}
	t.returnExcess(inBackground)
	t.decay()
	t.age()
	return usedBytes, waits
}

// audit checks the books, with Debug.
func (t *turn) audit() {
	if !t.debug {
		return
	}
	if err := t.core.Check(); err != nil {
		panic(err) // ends the turn by an audit, which quarantines
	}
}

// endService refuses requests from here on.
func (t *turn) endService() {
	t.draining = true
	t.failAll(t.cuda.closed())
	t.core.Close()
}

// endFrees makes every later free return ErrClosed.
func (t *turn) endFrees() {
	t.draining = true
	t.failAll(t.cuda.closed())
	t.core.End()
	t.saveStats()
}

// finished notes that the device has finished the closed stream's work: no fence is needed any
// more.
func (t *turn) finished() {
	t.cuda.synced.Store(true)
	t.returnWhenClosed()
}

// configure replaces the settings of the cache.
func (t *turn) configure(s core.Settings) {
	t.core.Drain() // frees since the last turn count against the new budget
	t.core.SetSettings(s)
	t.returnExcess(inBackground)
}

// returnFree returns all free memory to the pool.
func (t *turn) returnFree() error {
	if t.draining {
		return t.cuda.closed()
	}
	t.pushReturn(t.core.Release(^uint32(0), false), poolcore.Return{Final: true}, false)
	return nil
}

// sort takes home freed memory.
func (t *turn) sort() {
	t.core.Drain()
	t.returnWhenClosed()
}

// hasEffects reports whether detachOutdated may have anything to do.
func (t *turn) hasEffects() bool {
	return t.out != nil || t.wanted || t.core.Waits() || t.peer.waits.Load()
}

// outdate ends the turn of an allocation, instead of publishing its figures: their atomic stores
// would cost a good part of it.
func (t *turn) outdate() {
	t.core.NoteMinFree()
	t.peer.outdate()
}

// detach ends a turn, and returns its effects; nil: none.
func (t *turn) detach() *effects {
	t.detaching = true
	defer func() {
		if t.detaching && t.failure.Load() != nil { // it panics, and the stream has ended before: nobody ends it again
			t.performLeft()
		}
	}()
	t.peer.publish(t.core)
	left := t.detachOutdated()
	t.detaching = false
	return left
}

// detachOutdated is detach after outdate.
func (t *turn) detachOutdated() *effects {
	t.publish()
	if t.wanted || t.draining && t.core.Waits() && t.pool.Demand() > 0 {
		t.report()
	}
	return t.dispatcher.detach()
}

// panicked repairs the books after a panic: the stream goes on if they balance.
func (t *turn) panicked(p actors.Panic) (finding error) {
	defer func() {
		if value := recover(); value != nil { // the repair panicked, too
			t.panics.Here(t.ref.Name(), value)
			finding = fmt.Errorf("%w: %v", ErrQuarantined, value)
		}
	}()
	held, c := t.inTransit, t.current
	t.inTransit, t.current = inTransit{}, nil
	if t.wanted { // the turn may have panicked before it reported a free
		t.core.Note()
		t.wake()
	}
	if c != nil {
		t.unpark(c) // answered now
		t.endWaiting(c)
		c.Fail(&actors.PanicError{Actor: t.ref.Name(), Value: p.Value, Stack: p.Stack})
	}
	t.putBack(held)
	if err := t.core.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrQuarantined, err)
	}
	if t.fenceWait.Interrupted() {
		t.ref.Tell(&fenceWaited{passed: true})
	}
	if a := t.reclaim; a != nil { // the turn may have panicked before the answer
		t.reclaim = nil
		t.ref.Tell(a)
	}
	for _, o := range t.claims.TakeOffers() { // likewise; one whose runs have not arrived waits again
		t.ref.Tell(&offered{stream: t.wiring, offer: o})
	}
	return nil
}

// stopped ends the stream. Its memory stays in place, and no magazine serves it any more.
func (t *turn) stopped(cause error) {
	t.failure.Store(&cause)
	t.peers.leave(&t.peer)
	defer t.performLeft() // last, and also if reading the books panics
	defer t.core.Shut()
	t.failAll(cause)
	if t.out != nil && !errors.Is(cause, ErrClosed) { // a call that returns memory learns of the end
		for t.out.reply(cause) {
		}
	}
	if t.reclaim != nil {
		t.reclaim.Fail(cause)
	}
	t.dropPrepared()
	if t.cuda.synced.Load() && !errors.Is(cause, ErrQuarantined) {
		t.returnRest()
	}
	t.saveStats()
}

// performLeft performs the effects of a turn whose detach has panicked, or panics: requests in them have no
// other answer, and the pool would keep those that wait.
func (t *turn) performLeft() {
	if !t.detaching || t.out == nil {
		return
	}
	e := t.dispatcher.detach()
	t.spawn(func() {
		defer func() {
			if value := recover(); value != nil {
				t.panics.Here(t.ref.Name(), value)
			}
		}()
		e.Perform()
	})
}

// returnRest returns pages that came home to a closed stream after its end, or stayed because a
// turn panicked.
func (t *turn) returnRest() {
	left := t.core.Return()
	if len(left) == 0 {
		return
	}
	r := poolcore.Return{Client: t.id, Runs: slices.Clone(left)} // left is the core's
	t.spawn(func() { t.pool.Return(r, fence.Mark{}) })
}
