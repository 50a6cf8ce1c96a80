package main

import "sync/atomic"

// gate counts active handlers, and admits none once it is shut. A sync.WaitGroup cannot do that: a request that was read just
// before the server was closed may still arrive during the wait.
//
// The lowest bit of state means shut; the rest is twice the count.
type gate struct {
	state atomic.Int64
	empty chan struct{} // closed when the gate is shut and no handler is active
}

const (
	gateShut = 1
	gateOne  = 2
)

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports whether the gate admits the caller, which calls leave then.
func (g *gate) enter() bool {
	for {
		state := g.state.Load()
		if state&gateShut != 0 {
			return false
		}
		if g.state.CompareAndSwap(state, state+gateOne) {
			return true
		}
	}
}

func (g *gate) leave() {
	if g.state.Add(-gateOne) == gateShut {
		close(g.empty)
	}
}

// busy reports whether a handler is active.
func (g *gate) busy() bool { return g.state.Load() >= gateOne }

// shut closes the gate. The channel is closed when all handlers have left.
func (g *gate) shut() <-chan struct{} {
	if g.state.Or(gateShut) == 0 { // else the last handler closes the channel, or the gate was shut before
		close(g.empty)
	}
	return g.empty
}
