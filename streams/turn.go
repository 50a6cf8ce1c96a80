package streams

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pressure"
	poolcore "github.com/go-vram/vram/pool/core"
	"github.com/go-vram/vram/streams/core"
	"github.com/go-vram/vram/streams/magazine/lane"
)

// turn is what runs in the turns of a stream's actor.
type turn struct {
	dispatcher
	debug           bool
	reclaim         *reclaim              // that waits for the last of the runs that were under way
	reportedSuspend uint64                // last suspend sequence number that a turn has had sent to the pool
	wakeDue         atomic.Bool           // a woken is on its way
	failure         atomic.Pointer[error] // why the stream has ended
}

// wake has a turn take home what was freed, soon. It may be called inside a turn, and from any goroutine.
func (t *turn) wake() {
	if !t.wakeDue.Swap(true) {
		t.ref.Tell(&woken{})
	}
}

// receive handles one message.
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
		t.wakeDue.Store(false) // first: what comes home from here on wakes again
		t.core.DrainAll()
		t.returnWhenClosed()
	case *changed:
		t.changed(m.claim)
	case *offered:
		t.offered(m.offer)
	case *consulted:
		t.consulted(m)
	}
}

// call does what somebody wants done in the turn.
func (t *turn) call(c *call) {
	c.run()
	if c.awaitsReturns {
		t.effects().replies.Push(c)
		return
	}
	c.promise.Complete(struct{}{}, nil)
}

// granted adds runs, and serves the claim that they were for.
func (t *turn) granted(g *granted) {
	if !g.kept {
		t.claims.Receive(len(g.runs))
	}
	for len(g.runs) > 0 {
		run := g.runs[0]
		g.runs = g.runs[1:] // first: what is in the books is not Fail's to give back
		t.core.Grant(run)
	}
	t.updateDemand()
	t.returnWhenClosed()
	if c := t.waiting(g.token); c != nil {
		t.endWaiting(c)
		t.serve(c)
		t.core.NoteSpare()
	} else if g.token != 0 { // nobody wants it any more
		t.core.Note()
	} else if !g.kept && !t.draining { // what was kept stays until the next turn: the driver refuses just now
		t.returnExcess(inBackground)
	}
	if t.reclaim != nil {
		t.handleReclaim(t.reclaim)
	}
	t.reoffer()
}

// asked answers the pool's reclaim request at once, or when what the pool had granted before has arrived. Where others want memory
// and fences keep some, it looks at these before it answers.
func (t *turn) handleReclaim(a *reclaim) {
	t.updateDemand()
	if !t.claims.Received(a.runsGranted) {
		t.reclaim = a
		return
	}
	others := t.claims.Len() == t.claims.ParkedLen()
	if others && !a.looked && !t.draining && t.core.PendingBytes() > 0 {
		a.looked, t.reclaim = true, nil
		t.core.Press()
		t.takeOwnFences()
		t.eachLook()
		t.effects().reclaim = a
		return
	}
	t.answerReclaim()
	t.reclaim = nil // now: if the turn panics before, it is still owed
}

// heed is desk.heed, and has the pool told of suspensions that it does not know.
func (t *turn) updateDemand() {
	t.dispatcher.updateDemand()
	p := t.suspensions.progress.Load()
	if !t.draining && t.wanted && p != nil && p.number != t.reportedSuspend { // also where nothing waited for a while, unseen
		t.reportedSuspend = p.number
		t.effects().suspends = len(p.all) > 0 || len(p.freedBy) > 0
	}
}

// tick does what is due.
func (t *turn) tick(level pressure.Level) (usedBytes int64, waits []LongWait) {
	waits = t.longWaits()
	t.core.SetPressure(level)
	t.core.Tick()
	t.fenceWait.Tick()
	usedBytes = t.core.UsedBytes()
	t.core.NudgeLanes()
	t.audit()
	t.lookAtTick()
	if t.draining {
		t.returnWhenClosed()
		return usedBytes, waits
	}
	t.returnExcess(inBackground)
	t.decay()
	return usedBytes, waits
}

// audit holds the books against themselves, where that was asked for.
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
	t.failAll(ErrClosed)
	t.core.Close()
}

// endFrees makes every later free say ErrClosed.
func (t *turn) endFrees() {
	t.draining = true
	t.failAll(ErrClosed)
	t.core.End()
	t.saveStats()
}

// finished says that the device has finished the closed stream's work: no fence is needed any more.
func (t *turn) finished() {
	t.cuda.synced.Store(true)
	t.returnWhenClosed()
}

// configure replaces the settings of the cache.
func (t *turn) configure(s core.Settings) {
	t.core.Drain() // what was freed since the last turn counts against the new budget
	t.core.SetSettings(s)
	t.returnExcess(inBackground)
}

// giveFree gives all that is free back to the pool.
func (t *turn) returnFree() error {
	if t.draining {
		return ErrClosed
	}
	t.core.AskLanes()
	t.pushReturn(t.core.Release(^uint32(0), false), poolcore.Return{Final: true}, false)
	return nil
}

// collect takes home what was freed, and sees to the fences for what others use.
func (t *turn) collect() {
	t.sort()
	t.look()
}

// sort takes home what was freed.
func (t *turn) sort() {
	t.core.Drain()
	t.returnWhenClosed()
}

// errand is what a lane comes to its stream for.
type laneRequest uint8

const (
	openLane laneRequest = iota
	allocLane
	settleLane
	closeLane
)

// attend does what a lane came for. Whatever that is, the lane takes home what is its own and gives back what it may not keep.
func (t *turn) serveLane(l *lane.Lane, what laneRequest, bytes int64) (b Buffer, err error) {
	if t.draining || what == closeLane {
		t.inTransit.lane = l
	}
	t.reach(beforeLane)
	if t.draining {
		t.core.CloseLane(l)
		t.inTransit.lane = nil
		t.returnWhenClosed()
		return Buffer{}, ErrClosed
	}
	wasAsked := false
	switch what {
	case openLane:
		t.core.OpenLane(l)
	case closeLane:
		wasAsked = t.core.CloseLane(l)
		t.inTransit.lane = nil
	case allocLane:
		wasAsked = t.core.SettleLane(l)
		if slot, word := t.core.LaneAlloc(l, max(bytes, 1)); slot != nil {
			t.core.Served(false)
			t.inTransit.slot = slot
			b = Buffer{slot, word, bytes}
		}
	case settleLane:
		wasAsked = t.core.SettleLane(l)
	}
	if wasAsked {
		t.releaseAll(false)
	} else {
		t.returnExcess(forCaller)
	}
	t.inTransit.slot = nil
	return b, nil
}

// leaves reports whether there is anything for detach to do.
func (t *turn) hasEffects() bool {
	return t.out != nil || t.wanted || t.core.Waits() || t.peer.waits.Load()
}

// detach ends a turn, and takes what it leaves; nil: nothing.
func (t *turn) detach() *effects {
	t.publish()
	if t.wanted {
		t.report()
	}
	return t.dispatcher.detach()
}

// panicked puts the books in order after a panic: the stream goes on if they balance.
func (t *turn) panicked(p actors.Panic) (finding error) {
	defer func() {
		if value := recover(); value != nil { // not even putting back works
			finding = fmt.Errorf("%w: %v", ErrQuarantined, value)
		}
	}()
	held, c := t.inTransit, t.current
	t.inTransit, t.current = inTransit{}, nil
	if t.wanted { // the turn may have been about to say so
		t.core.Note()
		t.wake()
	}
	if c != nil {
		t.unpark(c) // answered now
		c.Fail(&actors.PanicError{Actor: t.ref.Name(), Value: p.Value, Stack: p.Stack})
	}
	t.putBack(held)
	if err := t.core.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrQuarantined, err)
	}
	if t.fenceWait.Interrupted() {
		t.ref.Tell(&fenceWaited{passed: true})
	}
	if a := t.reclaim; a != nil { // the turn may have been about to answer it
		t.reclaim = nil
		t.ref.Tell(a)
	}
	return nil
}

// stopped ends the stream. Memory stays where it is, and no magazine serves it any more.
func (t *turn) stopped(cause error) {
	t.failure.Store(&cause)
	t.peers.leave(&t.peer)
	defer t.core.Shut() // also if the books are too broken to be read
	t.failAll(cause)
	if t.out != nil && !errors.Is(cause, ErrClosed) { // a turn that panicked when it was left leaves no effects to perform
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

// returnLeft returns what came to a closed stream after it was told to end, and stayed because a turn panicked.
func (t *turn) returnRest() {
	left := t.core.Return()
	if len(left) == 0 {
		return
	}
	r := poolcore.Return{Client: t.id, Runs: slices.Clone(left)} // left is the core's
	t.spawn(func() { t.pool.Return(r, fence.Mark{}) })
}
