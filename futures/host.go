package futures

// Host takes the place of the Go scheduler for waits on a promise and for the functions that its
// completion starts. A simulation is one; nil is the Go scheduler.
type Host interface {
	// Go runs f later, not on the caller's stack. name is the actor's that f belongs to, "" for none. Go does not wait.
	Go(name string, f func())
	// Wait returns once one of the channels is closed. Nil ones never are.
	Wait(closed ...<-chan struct{})
}

// On puts the promise, and those that are made from its future, on a host. It is called before the
// future is handed out, or not at all.
func (p *Promise[T]) On(h Host) {
	if p == nil {
		return
	}
	p.core.host = h
}

// start runs a foreign function away from the goroutine that completes.
func (p *completion) start(fn func()) {
	if p.host != nil {
		p.host.Go("", fn)
		return
	}
	go fn()
}

// hostOf is the host of the first future that has one.
func hostOf[T any](fs []Future[T]) Host {
	for i := range fs {
		if p := fs[i].p; p != nil && p.core.host != nil {
			return p.core.host
		}
	}
	return nil
}
