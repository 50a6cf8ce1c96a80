package simulation

import (
	"github.com/go-vram/vram/actors"
)

// host is the world as actors, futures, streams and pool see it: it replaces the Go scheduler.
type host struct{ w *world }

var _ actors.Host = host{}

// Go makes a task.
func (h host) Go(worker string, f func()) {
	if h.w.lost(worker) {
		return
	}
	h.w.spawn(worker, f)
}

// Wait holds the current task up.
func (h host) Wait(closed ...<-chan struct{}) { h.w.wait(closed) }

// Reach lets other tasks run. At a place inside a turn for which a panic is planted it panics.
func (h host) Reach(place string) {
	h.w.turnPanic.spring(place)
	h.w.reach(place)
}

// Behavior lets other tasks run at the seams of every turn.
func (h host) Behavior(name string, b actors.Behavior) actors.Behavior {
	return &behavior{
		w: h.w, name: name, inner: b,
		receiving: name + " is about to receive", received: name + " has received",
		leaving: name + " is about to leave", performing: name + "'s effects are about to be performed",
	}
}

// behavior is an actor's, with places where others may run: they then find the turn taken, or left with its effects still
// to be performed.
type behavior struct {
	w                                        *world
	name                                     string
	inner                                    actors.Behavior
	receiving, received, leaving, performing string
}

// Receive implements actors.Behavior.
func (b *behavior) Receive(m actors.Message) {
	b.w.reach(b.receiving)
	if b.w.dropped(m) {
		return
	}
	b.inner.Receive(m)
	b.w.hiccup(b.name)
	b.w.reach(b.received)
}

// Detach implements actors.Behavior.
func (b *behavior) Detach() actors.Effects {
	b.w.reach(b.leaving)
	effects := b.inner.Detach()
	if effects == nil {
		return nil
	}
	return &performer{b, effects}
}

// Panicked implements actors.Behavior.
func (b *behavior) Panicked(p actors.Panic) error {
	if b.w.mutation == mutateAudit {
		return nil
	}
	return b.inner.Panicked(p)
}

// Stopped implements actors.Behavior.
func (b *behavior) Stopped(cause error) { b.inner.Stopped(cause) }

// performer lets others run between a turn and its effects.
type performer struct {
	behavior *behavior
	inner    actors.Effects
}

// Perform implements actors.Effects.
func (p *performer) Perform() {
	p.behavior.w.reach(p.behavior.performing)
	p.inner.Perform()
}

// trap is a panic that is planted at a place.
type trap struct {
	place string // "" for none
	left  uint32 // times that the place is passed before
	count uint64 // panics so far
}

// plantedError is the value of planted panics.
type plantedError struct{ place string }

func (e plantedError) Error() string { return "planted " + e.place }

// Planted marks the panic as meant.
func (plantedError) Planted() {}

func (t *trap) set(place string, left uint32) { t.place, t.left = place, left }

// spring panics if the trap is set for the place.
func (t *trap) spring(place string) {
	if t.place != place {
		return
	}
	if t.left > 0 {
		t.left--
		return
	}
	t.place = ""
	t.count++
	panic(plantedError{place})
}
