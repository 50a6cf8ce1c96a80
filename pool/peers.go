package pool

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/pool/core"
)

// ErrNoPeerAccess reports that another device cannot be given access to the memory.
var ErrNoPeerAccess = errors.New("vram: no peer access")

// sharing is a *peers, and nil before the first EnablePeer. The turn knows this interface alone, so that a program that gives
// no device access has no code for it.
type sharing interface {
	turnEnds() // is called at the end of each reception
}

// peers are the devices that have access to the memory of a pool.
type peers struct {
	pool   *Pool
	device cudadrv.Peers

	// Owned by the turn.
	wanted []*question // calls of EnablePeer that wait for a job
	begun  []*question // those that the last job with any makes, or has made: they have their answers, or get them

	ordinals []int // Owned by the driver goroutine: the device itself first.
}

// EnablePeer gives another device access to all memory that is mapped, now and later: each later mapping names it in the call
// that makes the memory accessible to the pool's own device, so that one that fails undoes the mapping. The calls for the
// memory that is mapped already are made between two jobs; it waits for them. Idempotent. Errors: ErrNoPeerAccess, ErrClosed,
// the cause of the pool's end, and the driver's, with which later memory is not accessible to the other device; some of the
// present memory may be.
func (p *Pool) EnablePeer(ordinal int) error {
	device, ok := p.device.(cudadrv.Peers)
	switch {
	case !ok || !p.device.Info().Capabilities.Has(cudadrv.PeerAccess):
		return fmt.Errorf("%w: the driver has none", ErrNoPeerAccess)
	case p.places != nil:
		return fmt.Errorf("%w: the device has plain segments", ErrNoPeerAccess)
	}
	q := &question{peer: ordinal}
	q.visit = func() {
		x, _ := p.sharing.(*peers)
		if x == nil {
			x = &peers{pool: p, device: device, ordinals: []int{p.device.Info().Ordinal}}
			p.sharing = x
		}
		x.wanted = append(x.wanted, q)
	}
	return p.question(context.Background(), q)
}

// turnEnds adds the wanted calls to the next job, before its own: the pages that are mapped then are the mapped pages of the
// books now. If no job is due, one without operations begins.
func (x *peers) turnEnds() {
	p := x.pool
	switch {
	case p.core.Closing():
		for _, q := range append(x.begun, x.wanted...) { // the job may never begin; where it does, the first answer counts
			q.Fail(x.ended())
		}
		x.begun, x.wanted = nil, nil
		return
	case len(x.wanted) == 0:
		return
	case p.out == nil || p.out.work == nil:
		fx := p.core.Pause()
		if fx.Job == nil {
			return // a job is in flight: its end is another turn
		}
		p.collect(fx)
	}
	w, wanted, mapped := p.out.work, x.wanted, p.core.Mapped()
	earlier := w.before // of this turn
	if earlier == nil {
		x.begun = nil
	}
	x.begun, x.wanted = append(x.begun, wanted...), nil
	w.before = func() {
		defer func() { // of those that have no answer yet, where the driver ends the goroutine
			for _, q := range wanted {
				q.Fail(ErrDriverPanic)
			}
		}()
		if earlier != nil {
			earlier()
		}
		for _, q := range wanted {
			if err := x.enable(q.peer, mapped); err != nil {
				q.Fail(err)
			} else {
				q.reply.Complete(struct{}{}, nil)
			}
		}
	}
}

// ended returns the reason for which the pool serves no more.
func (x *peers) ended() error {
	if failure := x.pool.Failure(); failure != nil {
		return failure
	}
	return ErrClosed
}

// enable gives a device access to pages, and to those that are mapped later. The driver goroutine calls it.
func (x *peers) enable(ordinal int, mapped []core.Run) error {
	if slices.Contains(x.ordinals, ordinal) {
		return nil
	}
	d := &x.pool.driver
	for _, r := range mapped {
		err := d.guard(func() error {
			return x.device.MemSetPeerAccess(x.pool.at(r.First), int64(r.Pages)*x.pool.pageBytes, ordinal)
		})
		if err != nil {
			return fmt.Errorf("pool: %w", err)
		}
	}
	x.ordinals = append(x.ordinals, ordinal)
	d.share = x.share
	return nil
}

// share makes pages accessible that were mapped: to the pool's own device and to its peers.
func (x *peers) share(at cudadrv.Ptr, bytes int64) error {
	return x.device.MemSetPeerAccess(at, bytes, x.ordinals...)
}
