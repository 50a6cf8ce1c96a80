package streams

import (
	"context"
	"runtime"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/fence"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/stream/claims"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// A stream as the packages below see it. The adapters keep their methods off the Stream that
// callers hold.
type (
	behavior   turn // of the actor
	poolClient turn
	peerClient turn
	waker      Stream // of the magazines
)

var (
	_ actors.Behavior = (*behavior)(nil)
	_ pool.Client     = (*poolClient)(nil)
	_ peerTurn        = (*peerClient)(nil)
	_ magazine.Waker  = (*waker)(nil)
)

// Receive implements actors.Behavior.
func (b *behavior) Receive(m actors.Message) { (*turn)(b).receive(m) }

// Detach implements actors.Behavior.
func (b *behavior) Detach() actors.Effects {
	if e := (*turn)(b).detach(); e != nil {
		return e
	}
	return nil
}

// Panicked implements actors.Behavior.
func (b *behavior) Panicked(p actors.Panic) error { return b.ending.panicked(p) }

// Stopped implements actors.Behavior.
func (b *behavior) Stopped(cause error) { b.ending.stopped(cause) }

// Granted implements pool.Client.
func (c *poolClient) Granted(token uint64, runs []poolcore.Run, mapped bool) {
	c.wiring.ref.Call(&granted{stream: c.wiring, token: token, runs: runs, mapped: mapped})
}

// Denied implements pool.Client.
func (c *poolClient) Denied(token uint64, err error) {
	c.wiring.ref.Tell(&denied{token: token, err: err})
}

// Asked implements pool.Client.
func (c *poolClient) Asked(runsGranted uint64, pages uint32) {
	c.wiring.ref.Call(&reclaim{stream: c.wiring, runsGranted: runsGranted, pages: pages})
}

// Offered implements pool.Client.
func (c *poolClient) Offered(token, runsGranted uint64) {
	c.wiring.ref.Call(&offered{stream: c.wiring, offer: claims.Offer{Token: token, RunsGranted: runsGranted}})
}

// Demanded implements pool.Client.
func (c *poolClient) Demanded() { c.wiring.post(c.dispatch.updateDemand) }

// Look implements pool.Client: a turn drains freed blocks, and publishes. While another goroutine is in the
// turn Look does nothing, and the figures may stay stale.
func (c *poolClient) Look() { c.wiring.tryTurn(c.state.core.Drain) }

// Usage implements pool.Client.
func (c *poolClient) Usage() poolcore.Usage { return c.wiring.peer.usage(c.state.core.Alert()) }

// Follow implements pool.Client.
func (c *poolClient) Follow(m fence.Mark) error { return c.wiring.cuda.precede(m) }

// Idle implements pool.Client.
func (c *poolClient) Idle() bool { return c.wiring.cuda.idle() }

func (c *peerClient) pendingFences() ([]fencing, error) {
	var all []fencing
	if err := c.wiring.inTurn(context.Background(), func() { all = c.state.pendingFences() }); err != nil {
		return nil, err
	}
	return all, nil
}

func (c *peerClient) fencePassed() {
	if !c.wiring.tryTurn(c.lent.takePassed) {
		c.wiring.post(c.lent.takePassed)
	}
}

func (c *peerClient) retryDelayed(passed bool) { c.wiring.ref.Call(&fenceWaited{passed: passed}) }

// maxLooks is how often a look that must not wait tries to enter a stream's turn. The end of a context wakes the goroutine
// that waits, too, and the turn in which the stream hears of that takes microseconds.
const maxLooks = 64

func (c *peerClient) largestBlocks(l *core.Largest, wait bool) {
	look := func() { c.state.core.Largest(l, c.wiring.cuda.id) }
	for range maxLooks {
		if c.wiring.tryTurn(look) {
			return
		}
		if wait {
			_ = c.wiring.inTurn(context.Background(), look) // a stream that has failed has no list
			return
		}
		runtime.Gosched()
	}
}

// Wake implements magazine.Waker. It may be called inside a turn that puts a batch's slots back.
func (k *waker) Wake() { k.turn.state.wake() }

// Piled implements magazine.Waker: the goroutine of a free sorts the blocks that other streams
// used, if no goroutine is in the turn.
func (k *waker) Piled() { k.tryTurn(k.turn.sort) }

// Freed implements magazine.Waker: the pool did not know of a freed block.
func (k *waker) Freed() { k.peer.reporter.Changed() }

// Refused implements magazine.Waker.
func (k *waker) Refused() { k.tally.BadFree() }
