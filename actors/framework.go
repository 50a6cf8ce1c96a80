package actors

// framework is one actor's side of the linked actor framework: it knows the actor, hands messages
// to its behavior, and ends it. Queue, turn, worker and the answer to a panic are the mailbox's,
// the same with every framework.
//
// One framework is linked, as linkedFramework: protoactor's (protoactor.go), or with the build tag
// vram_builtin our own (builtin.go). The mailbox calls it by its type, since a call through the
// interface would cost each message one.
//
// The receive methods are called inside turns, never two at a time. A panic in them goes to the
// mailbox, which recovers it.
type framework interface {
	// spawn takes the actor in, under the mailbox's name, and lets the mailbox run its first turn,
	// which Spawn holds: that is over when spawn returns.
	spawn(b *mailbox) error

	// receive hands one user message to the behavior.
	receive(m Message)

	// receivePoison ends the actor: the messages before the poison were received. The mailbox is
	// closed (mailbox.close) by the end of the turn, before any other user message.
	receivePoison()

	// receiveSystem handles one system message of the framework's own, also when the mailbox is
	// closed.
	receiveSystem(message any)

	// stop posts the system message at which the mailbox closes. Any goroutine may call it, inside
	// a turn or outside. It does not wait. After the end it has no effect.
	stop()
}

var _ framework = (*linkedFramework)(nil)

// unsuspend is the system message that lifts a suspension by the framework, and wakes the actor
// where there is none.
type unsuspend struct{}
