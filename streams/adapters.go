package streams

import (
	"context"

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
func (b *behavior) Panicked(p actors.Panic) error { return (*turn)(b).panicked(p) }

// Stopped implements actors.Behavior.
func (b *behavior) Stopped(cause error) { (*turn)(b).stopped(cause) }

// Granted implements pool.Client.
func (c *poolClient) Granted(token uint64, runs []poolcore.Run, mapped bool) {
	c.ref.Call(&granted{stream: c.wiring, token: token, runs: runs, mapped: mapped})
}

// Denied implements pool.Client.
func (c *poolClient) Denied(token uint64, err error) { c.ref.Tell(&denied{token: token, err: err}) }

// Asked implements pool.Client.
func (c *poolClient) Asked(runsGranted uint64, pages uint32) {
	c.ref.Call(&reclaim{stream: c.wiring, runsGranted: runsGranted, pages: pages})
}

// Offered implements pool.Client.
func (c *poolClient) Offered(token, runsGranted uint64) {
	c.ref.Call(&offered{stream: c.wiring, offer: claims.Offer{Token: token, RunsGranted: runsGranted}})
}

// Demanded implements pool.Client.
func (c *poolClient) Demanded() { c.post((*turn)(c).updateDemand) }

// Look implements pool.Client: a turn takes home freed blocks, and publishes. While another
// goroutine is in the turn it does nothing, and the figures may stay stale.
func (c *poolClient) Look() { _, _ = c.tryTurn(c.core.Drain) } // the actor reports a panic

// Usage implements pool.Client.
func (c *poolClient) Usage() poolcore.Usage { return c.peer.usage(c.core.Alert()) }

// Follow implements pool.Client.
func (c *poolClient) Follow(m fence.Mark) error { return c.cuda.precede(m) }

// Idle implements pool.Client.
func (c *poolClient) Idle() bool { return c.cuda.idle() }

func (c *peerClient) pendingFences() (all []fencing, err error) {
	err = c.inTurn(context.Background(), func() { all = c.turnState.pendingFences() })
	if err != nil {
		return nil, err
	}
	return all, nil
}

func (c *peerClient) fencePassed() {
	if entered, _ := c.tryTurn(c.takePassed); !entered {
		c.post(c.takePassed)
	}
}

func (c *peerClient) retryDelayed(passed bool) { c.ref.Call(&fenceWaited{passed: passed}) }

func (c *peerClient) largestBlocks(l *core.Largest, wait bool) {
	look := func() { c.core.Largest(l, c.cuda.id) }
	if entered, _ := c.tryTurn(look); !entered && wait {
		_ = c.inTurn(context.Background(), look) // a stream that has failed has no list
	}
}

// Wake implements magazine.Waker. It may be called inside a turn that puts a batch's slots back.
func (k *waker) Wake() { k.turn.wake() }

// Piled implements magazine.Waker: the goroutine of a free sorts the blocks that other streams
// used, if no goroutine is in the turn.
func (k *waker) Piled() { _, _ = k.tryTurn(k.turn.sort) }

// Freed implements magazine.Waker: the pool has known of no such block.
func (k *waker) Freed() { k.peer.reporter.Changed() }

// Refused implements magazine.Waker.
func (k *waker) Refused() { k.tally.BadFree() }
