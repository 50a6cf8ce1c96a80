//go:build !vram_builtin

package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
)

// linkedFramework is protoactor's: the actor is a root actor of its, and has an address and watchers. It is a part of each Ref, and so
// names no type of protoactor: each package that imports a type with a Ref in it would compile protoactor's generic types again.
type linkedFramework struct {
	box     *mailbox
	pid     any // a *actor.PID
	invoker interface {
		InvokeSystemMessage(message any)
		InvokeUserMessage(message any)
	}
}

// boxOfProtoactor is the mailbox that protoactor knows.
type boxOfProtoactor struct{ *linkedFramework }

var (
	_ actor.Mailbox    = boxOfProtoactor{}
	_ actor.Dispatcher = (*Worker)(nil)
)

func (f *linkedFramework) spawn(b *mailbox) error {
	f.box = b
	s := shared()
	props := actor.PropsFromProducer(
		func() actor.Actor { return &shell{box: b} },
		actor.WithMailbox(func() actor.Mailbox { return boxOfProtoactor{f} }),
		actor.WithDispatcher(b.worker),
		actor.WithOnInit(func(ctx actor.Context) { f.pid = ctx.Self() }),
	)
	_, err := s.root.SpawnNamed(props, b.name+s.ProcessRegistry.NextId())
	if err != nil {
		return fmt.Errorf("protoactor: %w", err)
	}
	return nil
}

func (f *linkedFramework) receive(m Message) {
	if other, ok := m.(*foreign); ok {
		f.invoker.InvokeUserMessage(other.body)
		return
	}
	f.invoker.InvokeUserMessage(m)
}

func (f *linkedFramework) receivePoison() { f.invoker.InvokeUserMessage(&actor.PoisonPill{}) }

func (f *linkedFramework) receiveSystem(message any) {
	switch m := message.(type) {
	case *actor.SuspendMailbox:
		f.box.halted = true
	case *actor.ResumeMailbox:
		f.box.halted = false
	case *actor.Watch:
		f.invoker.InvokeSystemMessage(m)
	default:
		if !f.box.stopped { // A late Restart would bring the actor back.
			f.invoker.InvokeSystemMessage(m)
		}
	}
}

func (f *linkedFramework) stop() { shared().root.Stop(address(f)) }

// RegisterHandlers is called by protoactor during spawn.
func (f boxOfProtoactor) RegisterHandlers(invoker actor.MessageInvoker, _ actor.Dispatcher) {
	f.invoker = invoker
}

// Start is called by protoactor at the end of spawn. The first turn receives Started.
func (f boxOfProtoactor) Start() { f.box.runInline() }

// UserMessageCount is asked for by protoactor's metrics, which are off. One stands for any number:
// counting would cost each message an atomic.
func (f boxOfProtoactor) UserMessageCount() int {
	if f.box.waiting() {
		return 1
	}
	return 0
}

// PostUserMessage is protoactor's way in. It does not wait.
func (f boxOfProtoactor) PostUserMessage(message any) {
	m, ok := message.(Message)
	if !ok {
		m = &foreign{body: message}
	}
	f.box.tell(m)
}

// PostSystemMessage is protoactor's way in for Stop, Watch, Restart and the like. It does not wait.
func (f boxOfProtoactor) PostSystemMessage(message any) { f.box.postSystem(message) }

// PID returns an actor's address in protoactor, for watching it or stopping it through Root. Built with
// the tag vram_builtin an actor has none.
//
// PID and Root are functions, not methods: a method's types are part of Ref, and each package that imports
// a type with a Ref in it would compile generic types of protoactor again.
func PID(r *Ref) *actor.PID { return address(&r.box.framework) }

// address returns protoactor's address of an actor, nil before it has one.
func address(f *linkedFramework) *actor.PID {
	pid, _ := f.pid.(*actor.PID)
	return pid
}

// Root is protoactor's way in: Root().Stop(PID(r)) is r.StopNow, Root().Poison(PID(r)) stops the actor
// after the queued messages, and Root().Send(PID(r), m) is r.Tell(m). It is not there either with the
// tag vram_builtin.
func Root() *actor.RootContext { return shared().root }

// Throughput returns how many messages a turn on the worker handles at most. Protoactor asks for it.
func (w *Worker) Throughput() int { return maxWorkerMessages }

// shell is protoactor's actor object: it may be replaced at any time and holds nothing.
type shell struct{ box *mailbox }

// Receive is called by protoactor inside a turn.
func (s *shell) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case Message:
		s.box.behavior.Receive(m)
	case *actor.Stopped:
		s.box.close()
	case actor.SystemMessage, actor.AutoReceiveMessage, actor.AutoRespond:
		// Started, Restarting, Stopping, Terminated: the state does not depend on them.
	default:
		shared().DeadLetter.SendUserMessage(ctx.Self(), &actor.MessageEnvelope{Message: m, Sender: ctx.Sender()})
	}
}
