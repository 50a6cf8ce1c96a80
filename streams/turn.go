package streams

import (
	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/effect"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/stream/core"
)

// turn handles the messages of a stream's actor, and the calls that callers make in a turn. Its parts call each
// other one way: ending, reclaims, dispatch, searches, lent, state, wiring.
type turn struct {
	wiring   *wiring
	state    turnState
	lent     lentMemory
	searches searches
	dispatch dispatcher
	reclaims reclaims
	ending   ending
	debug    bool
}

// receive processes one message.
func (t *turn) receive(m actors.Message) {
	switch m := m.(type) {
	case *claim:
		t.dispatch.serve(m)
	case *granted:
		t.granted(m)
	case *denied:
		t.dispatch.denied(m)
	case *reclaim:
		t.reclaims.handle(m)
	case *recorded:
		t.lent.recorded(m)
	case *callback:
		t.call(m)
	case *fenceWaited:
		t.dispatch.retryDelayed(m.passed)
	case *woken:
		t.state.wakeDue.Store(false) // first: a later free sends woken again
		t.state.core.DrainAll()
		t.lent.returnWhenClosed()
	case *claimChanged:
		t.dispatch.changed(m.claim)
	case *offered:
		t.dispatch.offered(m)
	case *consulted:
		t.dispatch.consulted(m)
	}
}

// call runs a caller's function in the turn.
func (t *turn) call(c *callback) {
	c.run()
	if c.awaitsReturns {
		effect.Push(&t.state.effects().replies, c)
		return
	}
	c.promise.Complete(struct{}{}, nil)
}

// granted adds runs to the core, and serves their claim.
func (t *turn) granted(g *granted) {
	c := t.dispatch.waiting(g.token)
	t.dispatch.current = c // its grant is used up, also if the turn panics from here on
	if !g.kept {
		t.state.claims.Receive(len(g.runs))
	}
	for len(g.runs) > 0 {
		run := g.runs[0]
		g.runs = g.runs[1:] // first: Fail must not return runs that are in the books
		t.state.core.Grant(run)
	}
	t.dispatch.updateDemand()
	t.lent.returnWhenClosed()
	if c != nil && g.mapped {
		c.mapped = true
	}
	if c != nil {
		t.dispatch.endWaiting(c)
		t.dispatch.serve(c)
		t.state.core.NoteSpare()
	} else if g.token != 0 { // the claim was cancelled
		t.state.core.Note()
	} else if !g.kept && !t.state.draining { // kept runs stay until the next turn: the driver refuses just now
		t.lent.returnExcess(inBackground)
	}
	t.reclaims.resume()
	t.dispatch.reoffer()
}

// tick does the periodic work.
func (t *turn) tick(level pressure.Level) (usedBytes int64, waits []LongWait) {
	waits = t.dispatch.longWaits()
	t.state.core.SetPressure(level)
	t.state.core.Tick()
	t.dispatch.fenceWait.Tick()
	usedBytes = t.state.core.UsedBytes()
	t.audit()
	t.lent.lookAtTick()
	if t.state.draining {
		t.lent.returnWhenClosed()
		return usedBytes, waits
	}
	t.lent.returnExcess(inBackground)
	t.lent.decay()
	t.lent.age()
	return usedBytes, waits
}

// audit checks the books, with Debug.
func (t *turn) audit() {
	if !t.debug {
		return
	}
	if err := t.state.core.Check(); err != nil {
		panic(err) // ends the turn by an audit, which quarantines
	}
}

// endService makes every later request fail.
func (t *turn) endService() {
	t.state.draining = true
	t.dispatch.failAll(t.wiring.cuda.closed())
	t.state.core.Close()
}

// endFrees makes every later free return ErrClosed.
func (t *turn) endFrees() {
	t.state.draining = true
	t.state.core.End()
	t.state.saveStats()
}

// finished notes that the device has finished the closed stream's work: no fence is needed from then on.
func (t *turn) finished() {
	t.wiring.cuda.synced.Store(true)
	t.lent.returnWhenClosed()
}

// configure replaces the settings of the cache.
func (t *turn) configure(s core.Settings) {
	t.state.core.Drain() // frees since the last turn count against the new budget
	t.state.core.SetSettings(s)
	t.lent.returnExcess(inBackground)
}

// returnFree returns all free memory to the pool.
func (t *turn) returnFree() error {
	if t.state.draining {
		return t.wiring.cuda.closed()
	}
	t.lent.pushReturn(t.state.core.Release(^uint32(0), false), poolcore.Return{Final: true}, false)
	return nil
}

// sort drains freed blocks.
func (t *turn) sort() {
	t.state.core.Drain()
	t.lent.returnWhenClosed()
}

// hasEffects reports whether detachOutdated may have anything to do.
func (t *turn) hasEffects() bool {
	return t.state.out != nil || t.state.wanted || t.state.core.Waits() || t.wiring.peer.waits.Load()
}

// outdate ends the turn of an allocation. It does not publish the figures, since their atomic stores would
// cost a good part of such a turn.
func (t *turn) outdate() {
	t.state.core.NoteMinFree()
	t.wiring.peer.outdate()
}

// detach ends a turn and returns its effects, or nil if there are none.
func (t *turn) detach() *effects {
	t.ending.detaching = true
	defer t.ending.detachPanicked()
	t.wiring.peer.publish(t.state.core)
	left := t.detachOutdated()
	t.ending.detaching = false
	return left
}

// detachOutdated is detach after outdate.
func (t *turn) detachOutdated() *effects {
	t.lent.publish()
	if t.state.wanted || t.state.draining && t.state.core.Waits() && t.wiring.pool.Demand() > 0 {
		t.dispatch.report()
	}
	return t.state.detach()
}
