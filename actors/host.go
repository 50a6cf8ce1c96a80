package actors

import "runtime"

// Host takes the place of the Go scheduler: it decides what runs next, and it sees the turns. A simulation is one; a nil Host is
// the Go scheduler itself, and costs nothing beyond a look at a nil.
//
// Whoever is run by a Host waits by the Host only. Its methods are called from what it runs.
type Host interface {
	// Go runs f later, not on the caller's stack. What was given under one name runs one after the other, in the order in which
	// it was given; under the name "" everything runs by itself. It does not wait.
	Go(name string, f func())
	// Wait returns once one of the channels is closed. Nil ones never are.
	Wait(closed ...<-chan struct{})
	// Reach says that the caller got to a place where others may run, of which the place's name reminds. Inside a turn it may
	// panic, where the caller says that a panic does no harm.
	Reach(place string)
	// Behavior stands between the actor called name and its behavior: it may look at what passes, and let others run.
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

// Yield lets others run. It is for a loop that looks again.
func Yield(h Host) {
	if h != nil {
		h.Reach("yield")
		return
	}
	runtime.Gosched()
}
