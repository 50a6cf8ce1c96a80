package actors

// stop puts the poison on the stack, after which nothing is accepted.
func (b *mailbox) stop(cause error) {
	if cause == nil {
		cause = ErrStopped
	}
	if !b.cause.CompareAndSwap(nil, &cause) {
		return
	}
	for {
		top := b.head.Load()
		if top == &b.shut {
			return
		}
		b.last.next = top
		if b.head.CompareAndSwap(top, &b.last) {
			break
		}
	}
	// A suspended actor would keep the poison waiting.
	b.postSystem(unsuspend{})
}

// close is the end of the actor, inside its last turn.
func (b *mailbox) close() {
	if b.stopped {
		return
	}
	b.stopped = true
	cause := b.reason()
	b.failQueued(cause)
	// A framework may bring an actor that panics here back to life: protoactor does.
	returned := false
	defer func() {
		if !returned {
			b.panics.Report(newPanicError(b.name, recover()).report())
		}
	}()
	b.behavior.Stopped(cause)
	returned = true
}

// fault handles a panic inside the turn: it reports the panic, answers the current message, and
// audits the books. A finding of the audit quarantines the actor.
func (b *mailbox) fault(err *PanicError) {
	b.panics.Report(err.report())
	p := Panic{Value: err.Value, Stack: err.Stack, Message: b.current}
	b.current = nil
	if p.Message != nil {
		b.fail(p.Message, err)
	}
	if b.stopped {
		return
	}
	finding := error(err) // After a panic in Detach the effects are in an unknown state.
	if !b.detaching {
		finding = b.audit(p)
	}
	if finding != nil {
		b.quarantine(finding)
	}
}

func (b *mailbox) audit(p Panic) (finding error) {
	returned := false
	defer func() {
		if !returned {
			err := newPanicError(b.name, recover())
			b.panics.Report(err.report())
			finding = err
		}
	}()
	finding = b.behavior.Panicked(p)
	returned = true
	return finding
}

// quarantine shuts the mailbox with err and stops the actor through its framework.
func (b *mailbox) quarantine(err error) {
	b.cause.Store(&err)
	b.failQueued(err)
	b.framework.stop()
}
