package streams

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
)

// ErrAsleep refuses work on a buffer whose memory was given back to the driver, or is about to be: see package cuda/sleep.
var ErrAsleep = errors.New("vram: the buffer is asleep")

// gate counts the works in submission that touch the memory of a stream, and refuses new ones while it is shut.
type gate struct {
	_ [0]func() // is not compared, and programs have no code for it

	word  atomic.Int64  // their number, and shutBit
	empty chan struct{} // of one place: a shut gate may have become empty
	// copies: the device may not have done all copies of the owner's. Written while the gate is shut.
	copies atomic.Bool
	// idle: the device has finished all work on the memory, and the shut gate lets no other begin. Written while the gate is shut.
	idle atomic.Bool
}

const shutBit = int64(1) << 62

// enter begins a work. leave ends it. Its error is ErrAsleep.
func (g *gate) enter() error {
	if g.word.Add(1) >= shutBit {
		g.leave()
		return ErrAsleep
	}
	return nil
}

func (g *gate) leave() {
	if g.word.Add(-1) == shutBit {
		select {
		case g.empty <- struct{}{}:
		default:
		}
	}
}

// shut refuses further works, and waits until the ones that have begun end. If ctx ends first, shut opens the gate.
func (g *gate) shut(ctx context.Context) error {
	g.word.Or(shutBit)
	for g.word.Load() != shutBit {
		select {
		case <-g.empty:
		case <-ctx.Done():
			g.open()
			return ctx.Err()
		}
	}
	return nil
}

func (g *gate) open() { g.word.And(^shutBit) }

// isShut reports whether works are refused.
func (g *gate) isShut() bool { return g.word.Load() >= shutBit }

// finished reports whether no work on the memory of a stream can be unfinished. A nil gate does not know.
func (g *gate) finished() bool { return g != nil && g.idle.Load() && g.isShut() && !g.copies.Load() }

// gates has the gates that a work has entered. It is for one goroutine.
type gates struct {
	few   [4]*gate
	count int
	more  []*gate
}

// enter enters a gate once. A nil gate is always open.
func (all *gates) enter(g *gate) error {
	if g == nil || slices.Contains(all.few[:all.count], g) || slices.Contains(all.more, g) {
		return nil
	}
	if err := g.enter(); err != nil {
		return err
	}
	if all.count < len(all.few) {
		all.few[all.count] = g
		all.count++
	} else {
		all.more = append(all.more, g)
	}
	return nil
}

// leave leaves all of them.
func (all *gates) leave() {
	for _, g := range all.few[:all.count] {
		g.leave()
	}
	for _, g := range all.more {
		g.leave()
	}
	all.count, all.more = 0, nil
}
