package vram

import "sync/atomic"

// callGate counts the calls that make streams. Close waits for those in progress before it releases
// the context: a CUDA stream whose caller came too late is destroyed in time, also in a context
// that others keep.
type callGate struct {
	_ [0]func() // is not compared, and programs have no code for it

	count  atomic.Int64
	closed atomic.Bool
	left   chan struct{} // has a token once a call has ended after the closing began
}

func newCallGate() *callGate { return &callGate{left: make(chan struct{}, 1)} }

// enter begins a call, which ends with leave. It is false once the gate is closed.
func (g *callGate) enter() bool {
	g.count.Add(1)
	if g.closed.Load() {
		g.leave()
		return false
	}
	return true
}

func (g *callGate) leave() {
	g.count.Add(-1)
	if g.closed.Load() {
		select {
		case g.left <- struct{}{}:
		default: // one token is enough for any number of calls that ended before the closer looks
		}
	}
}

// close refuses further calls and waits for those in progress. It is called once.
func (g *callGate) close() {
	g.closed.Store(true)
	for g.count.Load() > 0 {
		<-g.left
	}
}
