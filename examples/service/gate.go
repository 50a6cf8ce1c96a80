package main

import "sync/atomic"

// gate counts the handlers that are inside, and lets nobody in once it is shut. A sync.WaitGroup would
// not do: a request that was read just before the server was closed may still come while somebody waits.
//
// The lowest bit of state says shut; the rest is twice the count.
type gate struct {
	state atomic.Int64
	empty chan struct{} // closed when the gate is shut and nobody is inside
}

const (
	gateShut = 1
	gateOne  = 2
)

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports whether the caller is inside; it leaves then.
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

// busy reports whether somebody is inside.
func (g *gate) busy() bool { return g.state.Load() >= gateOne }

// shut lets nobody in any more. The channel is closed when all have left.
func (g *gate) shut() <-chan struct{} {
	if g.state.Or(gateShut) == 0 { // else somebody leaves last, or has shut it before
		close(g.empty)
	}
	return g.empty
}
