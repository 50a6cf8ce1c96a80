package actors

// Behavior is what the owner of an actor supplies. Its methods are called inside turns, never two at a time. They
// must not block, call a driver or foreign code, or enter another turn; Tell is allowed. Panicked, Stopped and the Fail of messages
// must not call runtime.Goexit.
type Behavior interface {
	// Receive handles one message. From here on the message's answer is the behavior's affair, unless Receive panics: then
	// the message is failed.
	Receive(m Message)

	// Detach is called at the end of every turn and gives what the turn leaves to be performed outside, nil when there is
	// nothing. The effects belong to whoever ran the turn: another turn may begin before they are performed. It is
	// called after a panic too, so that what earlier messages of that turn achieved is not lost. If it panics itself the actor
	// is quarantined and it is not called again.
	Detach() Effects

	// Panicked audits the books after a panic. Nil means that they balance and the actor goes on; an error
	// quarantines it with that error. A panic in Panicked quarantines with a *PanicError.
	Panicked(p Panic) error

	// Stopped is called once, when the mailbox is closed and everything in it has failed. Cause is what Stop or Panicked
	// gave, or ErrStopped.
	Stopped(cause error)
}

// Effects are performed outside of any turn by the goroutine that ran the turn: a caller's or the actor's worker, which
// receives nothing meanwhile. They must not wait for an answer of the actor that left them.
// A panic in Perform is reported to Panicked.
type Effects interface{ Perform() }

// Panic says what went wrong in a turn.
type Panic struct {
	Value   any     // What was given to panic; an error when the turn ended its goroutine.
	Stack   []byte  // The stack at that place, as debug.Stack prints it.
	Message Message // The message at hand, failed already; nil in a turn entered by TryEnter, and in effects.
}
