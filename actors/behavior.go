package actors

// Behavior is the state and code of an actor, supplied by its owner. Its methods are called inside
// turns, never two at a time. They must not block, call a driver or foreign code, or enter another
// turn; Tell is allowed. Panicked, Stopped and the Fail of messages must not call runtime.Goexit.
type Behavior interface {
	// Receive handles one message. From here on the message's answer is the behavior's affair,
	// unless Receive panics: then the message is failed.
	Receive(m Message)

	// Detach is called at the end of every turn and returns the turn's effects, nil when there are
	// none. The goroutine that ran the turn performs them: another turn may begin before that. It
	// is called after a panic too, so that the effects of earlier messages of that turn are not
	// lost. If it panics itself the actor is quarantined and it is not called again.
	Detach() Effects

	// Panicked audits the books after a panic. Nil means that they balance and the actor continues; an error quarantines it
	// with that error. A panic in Panicked quarantines with a *PanicError.
	Panicked(p Panic) error

	// Stopped is called once, when the mailbox is closed and all queued messages have failed. Cause
	// is the argument of Stop, the error of Panicked, or ErrStopped.
	Stopped(cause error)
}

// Effects are performed outside of any turn by the goroutine that ran the turn: a caller's or the actor's worker, which
// receives nothing until then. They must not wait for an answer of the actor that left them. A panic in Perform is reported to
// Panicked.
type Effects interface{ Perform() }

// Panic describes a panic in a turn.
type Panic struct {
	Value   any     // The argument of panic; an error when the turn ended its goroutine.
	Stack   []byte  // The stack at that place, as debug.Stack prints it.
	Message Message // The current message, failed already; nil in a turn entered by TryEnter, and in effects.
}
