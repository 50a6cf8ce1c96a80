package actors

import (
	"sync/atomic"

	"github.com/go-vram/vram/internal/recovered"
)

// The states of a mailbox; the package comment has their transitions.
const (
	idle uint32 = iota
	running
	suspended
	closed
)

// cacheLineBytes separates the posters' words from the words of the holder of the turn. Less
// shares a line; more only helps against prefetching in pairs, which did not show.
const cacheLineBytes = 64

// mailbox is the queue of one actor, and its turn.
type mailbox struct {
	// Written once by Spawn.
	name      string
	behavior  Behavior
	panics    *recovered.Log
	framework linkedFramework
	worker    *Worker
	host      Host   // Nil: the Go scheduler.
	workFunc  func() // The work method, bound once so that waking the worker allocates nothing.

	// Owned by the holder of the turn.
	taken       *Link          // User messages taken from the stack, oldest first.
	takenSystem *systemMessage // System messages likewise.
	current     Message        // The one being received.
	halted      bool           // The framework suspended the actor.
	detaching   bool           // Inside Detach, or it has panicked: then it is not called again.
	stopped     bool           // The mailbox is closed for good.
	ended       bool           // A holder of the turn ends the worker.

	_     [cacheLineBytes]byte
	state atomic.Uint32

	_      [cacheLineBytes]byte
	head   atomic.Pointer[Link]
	system atomic.Pointer[systemMessage]
	cause  atomic.Pointer[error] // Why the mailbox accepts nothing any more; nil is ErrStopped.

	// Marks on the stack: the poison of Stop, and the mailbox that is shut.
	last, shut Link
}

// systemMessage is a node of the stack of system messages. They are few; each costs an allocation.
type systemMessage struct {
	next *systemMessage
	body any
}

func (b *mailbox) init(name string, behavior Behavior, host Host, panics *recovered.Log) {
	b.name, b.behavior, b.panics = name, behavior, panics
	b.workFunc = b.work
	b.worker = NewWorker(host, name)
	b.host = host
	b.state.Store(running) // Held by Spawn until the framework has the actor, so that no turn runs without it.
}

// postSystem posts a system message, ours or the framework's. It does not wait.
func (b *mailbox) postSystem(message any) {
	n := &systemMessage{body: message}
	for {
		n.next = b.system.Load()
		if b.system.CompareAndSwap(n.next, n) {
			break
		}
	}
	for {
		rest := b.state.Load()
		if rest == running {
			return // The holder looks again after leaving.
		}
		if b.state.CompareAndSwap(rest, running) {
			b.handOver(rest)
			return
		}
	}
}

// tell posts m for the worker.
func (b *mailbox) tell(m Message) {
	if !b.push(m) {
		b.fail(m, b.reason())
		return
	}
	if b.state.Load() == idle && b.state.CompareAndSwap(idle, running) {
		b.handOver(idle)
	}
}

// call posts m and runs the turn here when the actor is idle.
func (b *mailbox) call(m Message) {
	l := m.link()
	checkUnqueued(l)
	if b.state.Load() != idle || !b.state.CompareAndSwap(idle, running) {
		if !b.push(m) {
			b.fail(m, b.reason())
		} else if b.state.Load() == idle && b.state.CompareAndSwap(idle, running) {
			b.runInline()
		}
		return
	}
	switch {
	case b.taken == nil && b.head.Load() == nil:
		// Nothing is before it: two atomic operations less than by way of the stack.
		l.message = m
		b.taken = l
	case !b.push(m):
		b.leaveEntered()
		b.fail(m, b.reason())
		return
	}
	b.runInline()
}

// push queues m. False: the mailbox accepts nothing any more.
func (b *mailbox) push(m Message) bool {
	l := m.link()
	checkUnqueued(l)
	l.message = m
	for {
		top := b.head.Load()
		if top == &b.last || top == &b.shut {
			l.next, l.message = nil, nil // An attempt before may have left another poster's message there.
			return false
		}
		l.next = top
		if b.head.CompareAndSwap(top, l) {
			return true
		}
	}
}

// reason returns why push refused.
func (b *mailbox) reason() error {
	if cause := b.cause.Load(); cause != nil {
		return *cause
	}
	return ErrStopped
}

// waiting reports whether user messages are on the stack.
func (b *mailbox) waiting() bool {
	top := b.head.Load()
	return top != nil && top != &b.shut
}

// next takes the oldest user message. The caller holds the turn.
func (b *mailbox) next() *Link {
	if b.taken == nil && b.waiting() {
		b.taken = b.take()
	}
	l := b.taken
	if l != nil {
		b.taken = l.next
		l.next = nil
	}
	return l
}

// take empties the stack, oldest first; with the poison on top it shuts it.
func (b *mailbox) take() *Link {
	for {
		top := b.head.Load()
		var rest *Link
		if top == &b.last {
			rest = &b.shut
		}
		if b.head.CompareAndSwap(top, rest) {
			return reversed(top)
		}
	}
}

func reversed(l *Link) (oldest *Link) {
	for l != nil {
		next := l.next
		l.next = oldest
		oldest = l
		l = next
	}
	return oldest
}

// nextSystem takes the oldest system message. The caller holds the turn.
func (b *mailbox) nextSystem() *systemMessage {
	if b.takenSystem == nil && b.system.Load() != nil {
		for n := b.system.Swap(nil); n != nil; {
			next := n.next
			n.next = b.takenSystem
			b.takenSystem = n
			n = next
		}
	}
	n := b.takenSystem
	if n != nil {
		b.takenSystem = n.next
	}
	return n
}

// failQueued shuts the mailbox and fails the queued messages. The caller holds the turn.
func (b *mailbox) failQueued(err error) {
	b.failList(b.taken, err)
	b.taken = nil
	if top := b.head.Swap(&b.shut); top != &b.shut {
		b.failList(reversed(top), err)
	}
}

func (b *mailbox) failList(queued *Link, err error) {
	for queued != nil {
		l := queued
		queued = l.next
		m := l.message
		l.next, l.message = nil, nil
		if m != nil { // The poison carries none.
			b.fail(m, err)
		}
	}
}
