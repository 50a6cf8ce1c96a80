package cuda

import (
	"sync"
	"sync/atomic"
)

// gate counts the calls that use a graph, and lets one that changes or ends the graph have it alone. The driver forbids that a
// graph is changed while it is launched.
//
//	open     --change-->  changing   enter waits; change waits for the calls that have entered
//	changing --changed--> open
//	open     --close-->   closed     enter is refused; close waits for the calls that have entered
//
// A call that enters an open gate takes no lock: one atomic operation to enter, one to leave.
type gate struct {
	state atomic.Int64  // calls that have entered, and changingGate or closedGate
	mu    sync.Mutex    // held from change to changed, in close, and by cold calls that read the guarded fields
	left  chan struct{} // has an element where the last call has left a gate that is changing or closed
}

const (
	changingGate = int64(1) << 61
	closedGate   = int64(1) << 62
)

func (g *gate) init() { g.left = make(chan struct{}, 1) }

// enter begins a call. Its error is ErrGraphClosed.
func (g *gate) enter() error {
	if g.state.Add(1) < changingGate {
		return nil
	}
	return g.enterLater()
}

// enterLater enters after a change.
func (g *gate) enterLater() error {
	g.leave()
	if g.closed() {
		return ErrGraphClosed
	}
	g.mu.Lock() // until the change is over
	defer g.mu.Unlock()
	if g.state.Add(1) >= closedGate {
		g.leave()
		return ErrGraphClosed
	}
	return nil
}

func (g *gate) leave() {
	if n := g.state.Add(-1); n == changingGate || n == closedGate {
		select {
		case g.left <- struct{}{}:
		default: // waiters check again
		}
	}
}

func (g *gate) closed() bool { return g.state.Load() >= closedGate }

// change waits for the calls that have entered, and has others wait until changed. Precondition: mu is held, and the gate not
// closed.
func (g *gate) change() { g.alone(changingGate) }

func (g *gate) changed() { g.state.Add(-changingGate) }

// close refuses further calls, and waits for those that have entered. False: the gate was closed before.
func (g *gate) close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed() {
		return false
	}
	g.alone(closedGate)
	return true
}

func (g *gate) alone(mark int64) {
	g.state.Add(mark)
	for g.state.Load() != mark {
		<-g.left
	}
}
