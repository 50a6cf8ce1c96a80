// Package actors runs state machines one turn at a time, without locks, on an actor framework:
// protoactor-go, or a small one of its own.
//
// It is for state that has one owner and many clients that cannot afford to wait for a goroutine
// switch. A client runs an idle actor on its own goroutine; a busy actor gets a message. The
// framework provides spawning, addresses, watching, restart and the delivery to the behavior; this
// package provides the mailbox, the worker and the handling of panics, because a request must never
// be dropped in silence and never cost an allocation. No other package of the module imports
// protoactor.
//
// # The framework
//
// Without build tags it is protoactor-go. With the tag vram_builtin it is the built-in one, a
// screen of code, and protoactor with its dependencies (OpenTelemetry, Prometheus, protobuf,
// net/http) is not linked:
//
//	go build -tags vram_builtin ./...
//
// A caller of this module sees no difference but in size: the sections below hold for both, and the
// same tests run on both. Only protoactor has addresses: PID and Root, by which others may
// watch, stop and send. docs/decisions/009 has the reasons and the figures.
//
// # Words
//
//   - A Behavior is supplied by the owner; it holds the state and outlives protoactor's actor
//     object.
//   - A Message embeds a Link and is queued by that link: the queue allocates nothing.
//   - A turn is exclusive access to the behavior's state. It handles waiting messages, or runs the
//     code of a caller of TryEnter. It never blocks, calls no driver and no foreign code, and never
//     holds another turn.
//   - Effects are the actions of a turn that are performed after it: answers to deliver, other
//     actors to call, drivers to call. The goroutine that ran the turn performs them after leaving
//     it.
//   - The framework knows an actor, hands messages to its behavior and ends it: protoactor, or the
//     built-in one.
//   - A Worker is a goroutine that runs tasks one after the other. Each actor has one, which is
//     also protoactor's dispatcher for it, and runs the turns that no caller ran inline; the pool
//     has one for its driver calls.
//   - A Host takes the place of the Go scheduler: workers become runs of its own, and it sees the
//     turns.
//   - To quarantine is to close the mailbox because the state can no longer be trusted.
//
// # The mailbox
//
// Its state is one word:
//
//	from       to         by
//	running    idle       the holder of the turn leaves it (the word starts as running, held by Spawn)
//	idle       running    a Call, TryEnter, or a message that wakes the worker: one compare-and-swap
//	running    suspended  the holder leaves, and protoactor suspended the actor; the built-in framework never does
//	suspended  running    a system message, nothing else
//	running    closed     the holder leaves after the actor stopped; the worker ends
//	closed     running    a late system message (a watch of an actor that has ended); it is answered and closed again
//
// Holding running is holding the turn. A holder either leaves or hands running over to the worker,
// through a channel with room for the one turn there is, so that handing over never blocks. A
// goroutine that has left looks at the queues again: of a poster that pushed and then saw running,
// and a holder that left and then looked, at least one sees the other.
//
// User messages are a stack that posters push with one compare-and-swap and that the holder takes
// whole and reverses. Its head also shows whether the mailbox is open:
//
//	open     anything else
//	last     the poison of Stop is on top: messages below it are still handled, no more are accepted
//	shut     nothing is queued and nothing is accepted
//
// Open goes to last by Stop, and to shut by quarantine or the end of the actor; last goes to shut
// when the holder takes the stack.
//
// # Lifecycle
//
//  1. Spawn makes the mailbox, has the framework take the actor in (protoactor: as a root actor
//     under a guardian of our own), runs the first turn on the caller (protoactor's Started), and
//     starts the worker. Then the Ref is handed out, and not before.
//  2. Messages are received and turns are entered.
//  3. A panic in a turn is recovered. The current message fails with a *PanicError first; then
//     Behavior.Panicked audits the books. If they balance, the next message is received as if
//     nothing had happened. If not, the mailbox shuts, everything queued and later fails with the
//     error that Panicked gave, and the actor is stopped through its framework.
//  4. The actor is stopped: by Stop, after the queued messages; by StopNow or a quarantine, at
//     once. Protoactor's Poison is like Stop, except that messages after the poison are queued
//     before they fail; protoactor's Stop is StopNow.
//  5. The mailbox shuts, queued messages fail, Behavior.Stopped is called, the last effects are
//     performed.
//  6. The worker ends and Done is closed. The state then belongs to the goroutine that saw that.
//
// A restart by protoactor makes a new actor object over the same Behavior: state and queue stay.
//
// # Concurrency properties
//
//  1. Turns of one actor never overlap, and each sees all writes of those before it.
//  2. Messages of one sender are received in the order in which they were posted, by Call and Tell
//     alike.
//  3. Every message that was posted is either received or failed, exactly once; one that panics its
//     turn is both.
//  4. A message that was accepted while the actor was about to go idle is received without a
//     further message.
//  5. Effects are performed after their turn was left, so they may call any actor.
//  6. No posting, entering or leaving waits. A goroutine that is held up inside a turn delays this
//     actor's messages, and nothing else; one that is held up inside a Call or Tell outside the
//     turn delays no other.
//  7. A panic, also in effects, in an audit, in Fail or in Stopped, never reaches a sender or the
//     process.
//  8. After Done is closed no turn runs and no goroutine of the actor is left.
//
// Not promised: an order between senders; an order between effects of different turns; that a turn
// entered by TryEnter comes after a message that its goroutine sent by Tell before; that Call has
// run its message when it returns.
//
// Under the race detector, or with the build tag invariants, entering a turn while holding one and
// queueing a message that is queued already panic.
package actors
