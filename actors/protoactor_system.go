//go:build !vram_builtin

package actors

import (
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// system is protoactor's world. It costs 2.8 MB and has no use for a second one, so there is one in
// a process, made by the first Spawn. It is never shut down: that would only close a channel, and
// it holds no goroutine.
type system struct {
	*actor.ActorSystem
	root *actor.RootContext // Spawns under our guardian.
}

var shared = sync.OnceValue(newSystem) //nolint:gochecknoglobals // One world in a process, made on first use.

func newSystem() *system {
	s := actor.NewActorSystem(
		actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }),
		// Each burst of dead letters keeps a goroutine for this long. Shorter buys nothing; longer
		// outlives tests.
		actor.WithDeadLetterThrottleInterval(time.Millisecond),
	)
	root := s.Root.Copy().WithGuardian(guardian{})
	_ = root.Self() // Registers the guardian before two Spawns could do so at once.
	s.EventStream.Subscribe(failDeadLetter)
	return &system{ActorSystem: s, root: root}
}

// guardian supervises the root actors. The mailbox handles panics, so that none gets here; the
// guardian answers a failure that protoactor itself reports by a restart, which keeps state and
// queue, without a limit after which it would stop the actor in silence.
type guardian struct{}

// HandleFailure restarts the child.
func (guardian) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, child *actor.PID,
	_ *actor.RestartStatistics, _, _ any,
) {
	supervisor.RestartChildren(child)
}
