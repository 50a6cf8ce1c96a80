//go:build gorgonia && cgo && linux && (amd64 || arm64)

package gorgonia

import (
	"math"
	"sync/atomic"
)

// closing is what close adds to the count: far enough below zero that callers who are refused meanwhile do not
// lift it, and far enough from the least number that it does not overflow.
const closing = math.MinInt64 / 2

// gate counts the calls that are under way and, once closed, lets no more in.
type gate struct {
	calls atomic.Int64  // calls under way, and closing once closed
	idle  chan struct{} // has a token once none was under way after the closing began
}

func newGate() gate { return gate{idle: make(chan struct{}, 1)} }

// enter counts a call, or reports false where the gate is closed.
func (g *gate) enter() bool {
	if g.calls.Add(1) > 0 {
		return true
	}
	g.leave()
	return false
}

// leave ends a call. The last one tells close.
func (g *gate) leave() {
	if g.calls.Add(-1) != closing {
		return
	}
	select {
	case g.idle <- struct{}{}:
	default:
	}
}

// close lets no call in any more and waits for those that are. It is called once.
func (g *gate) close() {
	if g.calls.Add(closing) != closing {
		<-g.idle
	}
}
