package vram

import (
	"context"
	"errors"

	"github.com/go-vram/vram/pool"
)

// Collect does now the work that the device does by itself ten times a second: each stream takes
// home freed buffers whose announced uses have finished, and the excess over the cache bounds goes
// to the pool and to the driver. It never waits: memory that the device still works on stays
// pending, and a stream that is busy with a request at this moment is passed over. The error is
// ErrClosed.
func (d *Device) Collect() error {
	if !d.opened() {
		return ErrNotOpen
	}
	if d.closed.Load() {
		return ErrClosed
	}
	e := d.engine.Load()
	if e == nil { // nothing was allocated
		return nil
	}
	for _, s := range d.streams.Load().open {
		s.Collect()
		s.Tick()
	}
	e.pool.Tick()
	return nil
}

// Coalesce merges neighbouring free blocks in each stream, those in magazines included, so that its
// free ranges are as long as they can be: for a large request after many small ones. The streams
// keep their memory; the next small requests fill magazines anew, at the cost of a miss each. It
// waits for the request that each stream is serving. Errors: ErrClosed, or the context's.
func (d *Device) Coalesce(ctx context.Context) error {
	if err := d.callable(ctx); err != nil {
		return err
	}
	if d.closed.Load() {
		return ErrClosed
	}
	for _, s := range d.streams.Load().open {
		_ = s.Coalesce(ctx) // a stream that has ended meanwhile has nothing to merge
	}
	return ctx.Err()
}

// closedOr is ErrClosed for a pool that was closed.
func closedOr(err error) error {
	if errors.Is(err, pool.ErrClosed) {
		return ErrClosed
	}
	return err
}
