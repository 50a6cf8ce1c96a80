package actors

import "runtime"

const (
	// maxInlineMessages is how many messages a Call handles on its caller's goroutine. Fewer would wake the worker for the
	// messages that a few other callers have posted; more would hold this caller up for longer than a goroutine switch takes.
	maxInlineMessages = 32

	// maxWorkerMessages is how many messages a turn on the worker handles before its effects are
	// performed. Fewer would pay for leaving the turn too often; more would delay answers.
	maxWorkerMessages = 256
)

// Places where a Host may hold up the goroutine that leaves a turn.
const (
	beforeLeaving = "a turn was looked at and is still held"
	afterLeaving  = "a turn was left and is to be looked at"
)

// leaveResult is the state that the holder of a turn found when leaving it.
type leaveResult struct {
	rest uint32 // The state after leaving.
	more bool   // Messages wait, perhaps without a wake-up: try to take the turn from rest again.
	last bool   // The actor stopped in this turn: the worker must end.
}

// runInline runs the turn on a caller. The caller holds it; afterwards it was left and its effects
// were performed.
func (b *mailbox) runInline() {
	for left := maxInlineMessages; ; {
		effects := b.turn(&left)
		d := b.leave()
		if d.more && b.state.CompareAndSwap(d.rest, running) {
			if left > 0 && effects == nil && !d.last {
				continue
			}
			b.handOver(d.rest)
		}
		b.finish(effects, d.last)
		return
	}
}

// work runs turns on the worker until nothing waits. The caller holds the turn.
func (b *mailbox) work() {
	for {
		left := maxWorkerMessages
		effects := b.turn(&left)
		d := b.leave()
		b.finish(effects, d.last)
		// Looking at d after the effects is not too late: a message posted after leave wakes the
		// worker again.
		if !d.more || !b.state.CompareAndSwap(d.rest, running) {
			return
		}
		runtime.Gosched()
	}
}

// resume wakes the worker unless the turn is held: its holder looks at the queues when leaving it.
func (b *mailbox) resume() {
	rest := b.state.Load()
	if rest != running && b.state.CompareAndSwap(rest, running) {
		b.handOver(rest)
	}
}

// handOver hands the turn, taken from the state rest, to the worker; after the actor stopped there
// is none.
func (b *mailbox) handOver(rest uint32) {
	if rest == closed {
		Go(b.worker.host, "", b.work)
		return
	}
	b.worker.Schedule(b.workFunc)
}

// finish performs effects outside of the turn and ends the worker after the last ones, even if they
// panic.
func (b *mailbox) finish(effects Effects, last bool) {
	if last {
		defer b.worker.End()
	}
	b.perform(effects)
}

// turn receives messages until none waits, or left of them were received. The caller holds the turn
// and still does afterwards.
func (b *mailbox) turn(left *int) Effects {
	enterTurn(b.name)
	for !b.receive(left) {
		// A panic was handled; continue with the other messages.
	}
	effects := b.detach()
	if b.detaching { // It panicked: the actor stops before another goroutine can enter.
		for !b.receive(left) {
		}
	}
	return effects
}

// receive is one stretch of a turn without a panic: true when it is through, false after a panic.
func (b *mailbox) receive(left *int) (through bool) {
	defer func() {
		if through {
			return
		}
		value := recover()
		b.fault(newPanicError(b.name, value))
		if value == nil {
			b.abandon()
		}
	}()
	for {
		// Not counted, so that a turn does not end with its own quarantine still to come.
		if s := b.nextSystem(); s != nil {
			b.invokeSystem(s.body)
			continue
		}
		if b.halted || *left == 0 {
			break
		}
		l := b.next()
		if l == nil {
			break
		}
		*left--
		b.invoke(l)
	}
	return true
}

// abandon leaves a turn whose goroutine is being ended: the worker takes it over.
func (b *mailbox) abandon() {
	effects := b.detach()
	leaveTurn()
	b.handOver(running)
	b.perform(effects)
}

// invoke lets the framework receive one user message.
func (b *mailbox) invoke(l *Link) {
	if l == &b.last {
		b.framework.receivePoison()
		return
	}
	m := l.message
	l.message = nil
	b.current = m
	b.framework.receive(m)
	b.current = nil
}

// invokeSystem handles one system message, ours or the framework's.
func (b *mailbox) invokeSystem(message any) {
	switch m := message.(type) {
	case unsuspend:
		b.halted = false
	case *PanicError: // Of effects, see perform.
		b.fault(m)
	default:
		b.framework.receiveSystem(m)
	}
}

// detach ends the reception of a turn.
func (b *mailbox) detach() (effects Effects) {
	if b.detaching {
		return nil
	}
	defer func() {
		if !b.detaching {
			return
		}
		value := recover()
		b.fault(newPanicError(b.name, value))
		if value == nil { // The goroutine is being ended.
			leaveTurn()
			b.handOver(running)
		}
	}()
	b.detaching = true
	effects = b.behavior.Detach()
	b.detaching = false
	return effects
}

// leave ends the turn. The caller holds it, and must act on the result. turn has handled all system messages that it took.
func (b *mailbox) leave() (d leaveResult) {
	switch {
	case b.stopped:
		d.rest = closed
		d.last = !b.ended
		b.ended = true
	case b.halted:
		d.rest = suspended
	default:
		d.rest = idle
		d.more = b.taken != nil
	}
	leaveTurn()
	b.release(d.rest)
	d.more = d.more || b.system.Load() != nil || d.rest == idle && b.waiting()
	return d
}

// release gives the turn up, and leaves the mailbox in a state. The places are inside, so that a host sees a message lost where
// the queues were looked at before.
func (b *mailbox) release(rest uint32) {
	if b.host != nil {
		b.releaseOnHost(rest)
		return
	}
	b.state.Store(rest)
}

func (b *mailbox) releaseOnHost(rest uint32) {
	b.host.Reach(beforeLeaving)
	b.state.Store(rest)
	b.host.Reach(afterLeaving)
}

// perform runs effects outside of any turn. A panic in them, or the end of the goroutine, is left
// to the next turn, which also handles the messages that work would have handled now.
func (b *mailbox) perform(effects Effects) {
	if effects == nil {
		return
	}
	returned := false
	defer func() {
		if !returned {
			b.postSystem(newPanicError(b.name, recover()))
		}
	}()
	effects.Perform()
	returned = true
}
