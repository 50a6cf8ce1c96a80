package actors

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/go-vram/vram/internal/recovered"
)

// system is protoactor's world. It costs 2.8 MB and has no use for a second one, so there is one in a process, made by the first
// Spawn. It is never shut down: that would only close a channel, and it holds no goroutine.
type system struct {
	*actor.ActorSystem
	root *actor.RootContext // Spawns under our guardian.
}

var shared = sync.OnceValue(newSystem) //nolint:gochecknoglobals // One world in a process, made on first use.

func newSystem() *system {
	s := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		// Each burst of dead letters keeps a goroutine for this long. Shorter buys nothing; longer outlives tests.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	root := s.Root.Copy().WithGuardian(guardian{})
	_ = root.Self() // Registers the guardian before two Spawns could do so at once.
	s.EventStream.Subscribe(failDeadLetter)
	return &system{ActorSystem: s, root: root}
}

// failDeadLetter answers messages of ours that were sent to the address of an actor that is gone.
func failDeadLetter(event any) {
	letter, ok := event.(*actor.DeadLetterEvent)
	if !ok {
		return
	}
	if m, ok := letter.Message.(Message); ok {
		fail(nil, m, ErrStopped)
	}
}

// guardian supervises the root actors. Panics are dealt with in the mailbox and do not get here; what protoactor
// itself reports is answered by a restart, which keeps state and queue, without a limit after which it
// would stop the actor in silence.
type guardian struct{}

// HandleFailure restarts the child.
func (guardian) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, _, _ any,
) {
	supervisor.RestartChildren(child)
}

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

// Spawn starts an actor and returns it idle. The name is for people; it need not be unique. The owner must Stop the
// actor, which holds a goroutine until then.
func Spawn(name string, behavior Behavior) (*Ref, error) { return SpawnOn(nil, nil, name, behavior) }

// SpawnOn is Spawn on a host, where the name must be unique; nil is the Go scheduler. Every panic that the actor recovers is
// reported to panics, which may be nil.
func SpawnOn(host Host, panics *recovered.Log, name string, behavior Behavior) (*Ref, error) {
	if behavior == nil {
		return nil, errNoBehavior
	}
	if host != nil {
		behavior = host.Behavior(name, behavior)
	}
	r := new(Ref)
	b := &r.box
	b.init(name, behavior, host, panics)
	s := shared()
	props := actor.PropsFromProducer(
		func() actor.Actor { return &shell{box: b} },
		actor.WithMailbox(func() actor.Mailbox { return b }),
		actor.WithDispatcher(b.worker),
		actor.WithOnInit(func(ctx actor.Context) { b.pid = ctx.Self() }),
	)
	if _, err := s.root.SpawnNamed(props, name+s.ProcessRegistry.NextId()); err != nil {
		return nil, fmt.Errorf("actors: spawn %s: %w", name, err)
	}
	b.worker.Start()
	return r, nil
}
