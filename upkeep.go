package vram

import (
	"context"
	"errors"
	"math"

	"github.com/go-vram/vram/pool"
)

// Collect takes home what was freed and what announced uses kept that have finished, on all streams, and lets streams and pool do
// what is due: what ticks do ten times a second, now. It waits for nobody: what the device has not come to stays pending, and streams in
// whose turn somebody is, a tick for one, are passed over, so that a call that runs into one leaves that stream as it was.
// The error is ErrClosed.
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

// Coalesce merges what is free in each stream, also what magazines keep, so that
// ranges are as long as they can be. Nothing is given back. Small requests fill magazines anew. It waits for the turn at hand of each
// stream. Errors: ErrClosed, or the context's.
func (d *Device) Coalesce(ctx context.Context) error {
	if err := d.callable(ctx); err != nil {
		return err
	}
	if d.closed.Load() {
		return ErrClosed
	}
	for _, s := range d.streams.Load().open {
		_ = s.Coalesce(ctx) // one that has ended meanwhile has nothing to merge
	}
	return ctx.Err()
}

// CleanUp gives free memory back to the driver, as Trim does, where more than a share of what is held is free or cached; then no
// more than that share is. It returns the bytes given back. Errors: *ConfigError for a share that is not from 0 to 1, and those
// of Trim.
func (d *Device) CleanUp(ctx context.Context, freeShare float64) (int64, error) {
	if err := d.callable(ctx); err != nil {
		return 0, err
	}
	if !(freeShare >= 0 && freeShare <= 1) { // also what is no number
		return 0, &ConfigError{"freeShare", freeShare, "0 to 1"}
	}
	if err := d.Collect(); err != nil {
		return 0, err
	}
	e := d.engine.Load()
	if e == nil { // nothing is held
		return 0, ctx.Err()
	}
	books, err := e.pool.Snapshot(ctx)
	if err != nil {
		return 0, closedOr(err)
	}
	usedBytes := books.SetAsideBytes
	for _, s := range d.streams.Load().open {
		usedBytes += s.LastUsedBytes()
	}
	if float64(books.ReservedBytes-usedBytes) <= freeShare*float64(books.ReservedBytes) {
		return 0, nil
	}
	return d.Trim(ctx, int64(math.Ceil(float64(usedBytes)/(1-freeShare))))
}

// closedOr is ErrClosed for a pool that was closed.
func closedOr(err error) error {
	if errors.Is(err, pool.ErrClosed) {
		return ErrClosed
	}
	return err
}
