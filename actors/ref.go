package actors

// Ref is an actor that was spawned. Any number of goroutines may use it.
type Ref struct{ box mailbox }

// Call posts m and, when the actor is idle, receives it and other waiting messages on the caller's
// goroutine, then performs the effects. When the actor is busy, the holder of the turn receives m.
// Either way m may be answered before or after Call returns. It must not be called inside a turn. A
// closed mailbox fails m at once.
func (r *Ref) Call(m Message) {
	checkNesting(r.box.name)
	r.box.call(m)
}

// Tell posts m; the actor's worker receives it. It may be called inside a turn. A closed mailbox
// fails m at once.
func (r *Ref) Tell(m Message) { r.box.tell(m) }

// TryEnter enters a turn without a message, for the caller's own code, when the actor is idle. It
// does not wait. True obliges the caller to end the turn by exactly one of Leave, End, Exit and
// Fault, on the same goroutine. It must not be called inside a turn.
func (r *Ref) TryEnter() bool {
	if checked {
		return r.tryEnterChecked()
	}
	return r.box.state.CompareAndSwap(idle, running)
}

// Leave ends a turn that TryEnter began, and returns its effects, nil when there are none: the
// caller performs them, by Perform, after Leave. It must not be reached by a panic: callers that
// recover themselves end the turn by Fault then.
func (r *Ref) Leave() Effects {
	effects := r.box.behavior.Detach()
	r.box.leaveEntered()
	return effects
}

// End is Leave for a caller that knows that Detach would have nothing to do, or has called it: it saves the call for a turn
// without effects.
func (r *Ref) End() { r.box.leaveEntered() }

// Exit ends a turn that TryEnter began, also one that panicked, and is meant to be deferred. It
// stores the turn's effects, for the caller to perform after the function that defers it has
// returned, and after a panic the *PanicError; failed may be nil. A panic goes no further. A turn
// that calls runtime.Goexit counts as one that returned.
func (r *Ref) Exit(effects *Effects, failed *error) {
	if value := recover(); value != nil {
		left, err := r.Fault(value)
		*effects = left
		if failed != nil {
			*failed = err
		}
		return
	}
	*effects = r.box.detach()
	r.box.leaveEntered()
}

// Fault ends a turn that TryEnter began and that panicked with value, as a panic in Receive would end it: the books are
// audited, and the actor continues or is quarantined. The error is a *PanicError.
func (r *Ref) Fault(value any) (Effects, error) {
	err := newPanicError(r.box.name, value)
	r.box.fault(err)
	effects := r.box.detach()
	r.box.leaveEntered()
	return effects, err
}

// Perform performs effects that Leave, Exit or Fault returned, nil included. A panic in them is
// reported to the behavior.
func (r *Ref) Perform(effects Effects) {
	if effects != nil {
		r.box.perform(effects)
	}
}

// Stop closes the mailbox: later messages fail with cause, nil standing for ErrStopped; messages
// that are queued are still received; then the actor ends. It does not wait, see Done. Only the
// first Stop counts. A suspension by the framework is lifted.
func (r *Ref) Stop(cause error) { r.box.stop(cause) }

// StopNow ends the actor after the message that it is receiving: messages that are queued, and
// later ones, fail with the cause of an earlier Stop, or else with ErrStopped. It does not wait,
// see Done.
func (r *Ref) StopNow() { r.box.framework.stop() }

// Done returns a channel that is closed when the actor has stopped, its last effects were
// performed, and its worker has ended.
func (r *Ref) Done() <-chan struct{} { return r.box.worker.Done() }

// Name returns the name given to Spawn.
func (r *Ref) Name() string { return r.box.name }

func (r *Ref) tryEnterChecked() bool {
	checkNesting(r.box.name)
	if !r.box.state.CompareAndSwap(idle, running) {
		return false
	}
	enterTurn(r.box.name)
	return true
}

// leaveEntered leaves a turn that was entered from idle: it cannot have been suspended or stopped since.
func (b *mailbox) leaveEntered() {
	leaveTurn()
	if b.mustHandOver() {
		b.handOver(running)
		return
	}
	b.release(idle)
	if b.head.Load() != nil || b.system.Load() != nil {
		b.resume()
	}
}

// mustHandOver reports whether the worker takes over a turn that was entered, so that no other
// goroutine enters in between: after a quarantine none may before the actor stops. The caller holds
// the turn.
func (b *mailbox) mustHandOver() bool {
	return b.taken != nil || b.system.Load() != nil
}
