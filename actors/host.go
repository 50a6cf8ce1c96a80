package actors

import "runtime"

// Host takes the place of the Go scheduler: it chooses the next goroutine to run, and it sees the
// turns. A simulation is one; a nil Host is the Go scheduler itself, and costs nothing beyond a
// look at a nil.
//
// A function that a Host runs waits by the Host only. The Host's methods are called from such
// functions.
type Host interface {
	// Go runs f later, not on the caller's stack. Functions given under one name run one after the
	// other, in the order in which they were given; under the name "" each runs by itself. It does
	// not wait.
	Go(name string, f func())
	// Wait returns once one of the channels is closed. Nil ones never are.
	Wait(closed ...<-chan struct{})
	// Reach reports that the caller got to a place where others may run; place names it. Inside a
	// turn it may panic, where the caller allows that.
	Reach(place string)
	// Behavior wraps the behavior of the actor called name: the wrapper may look at the messages,
	// and let others run.
	Behavior(name string, b Behavior) Behavior
}

// Go runs f on a goroutine of its own, or on the host; see Host.Go. It does not wait.
func Go(h Host, name string, f func()) {
	if h != nil {
		h.Go(name, f)
		return
	}
	go f()
}

// Wait returns once closed is closed.
func Wait(h Host, closed <-chan struct{}) {
	if h != nil {
		h.Wait(closed)
		return
	}
	<-closed
}

// Yield lets other goroutines run. Call it in a loop that polls.
func Yield(h Host) {
	if h != nil {
		h.Reach("yield")
		return
	}
	runtime.Gosched()
}
