package actors

import (
	"fmt"

	"github.com/go-vram/vram/internal/recovered"
)

// Spawn starts an actor and returns it idle. The name is for people; on a host it must be unique.
// Without a host, nil, the actor runs on the Go scheduler. Every panic that the actor recovers is
// reported to panics, which may be nil. The owner must Stop the actor, which holds a goroutine
// until then.
func Spawn(host Host, panics *recovered.Log, name string, behavior Behavior) (*Ref, error) {
	if behavior == nil {
		return nil, errNoBehavior
	}
	if host != nil {
		behavior = host.Behavior(name, behavior)
	}
	r := new(Ref)
	b := &r.box
	b.init(name, behavior, host, panics)
	if err := b.framework.spawn(b); err != nil {
		return nil, fmt.Errorf("actors: spawn %s: %w", name, err)
	}
	b.worker.Start()
	return r, nil
}
