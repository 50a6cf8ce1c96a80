package vram

import (
	"context"
	"errors"

	"github.com/go-vram/vram/pool"
)

// Coalesce merges neighbouring free blocks in each stream, those in magazines included, so that its
// free ranges are as long as they can be: for a large request after many small ones. The streams
// keep their memory; the next small requests fill magazines anew, at the cost of a miss each. It
// waits for the request that each stream is serving. Errors: ErrClosed, or the context's.
func (d *Device) Coalesce(ctx context.Context) error {
	if err := d.callable(ctx); err != nil {
		return err
	}
	if d.closed.Load() {
		return deviceClosed()
	}
	for _, s := range d.streams.Load().open {
		_ = s.Coalesce(ctx) // a stream that has ended meanwhile has nothing to merge
	}
	return ctx.Err()
}

// closedOr is a *ClosedError for a pool that was closed.
func closedOr(err error) error {
	if errors.Is(err, pool.ErrClosed) {
		return deviceClosed()
	}
	return err
}
