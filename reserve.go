package vram

import (
	"context"
	"errors"

	poolcore "github.com/go-vram/vram/pool/core"
)

// Reserve takes memory now and sets it aside for the requests that name the reservation
// (Request.Reservation, BatchRequest.Reservation). Such a request is served by its stream's cache
// where that has a block; else it draws from the reservation, as long as that has all it wants. So
// it succeeds however much others hold, without a driver call.
//
// A request draws whole pages (Info().GranularityBytes): buffers fit as long as their sizes, each
// rounded up to pages, add up to no more than the reservation. When they are freed their memory is
// like any other; it does not go back into the reservation. Undrawn memory counts as held
// (Stats.SetAsideBytes) until Reservation.Release or the end of the device.
//
// Reserve waits for the driver, not for other callers' frees. While a reservation has memory left,
// requests that wait are not refused as a deadlock, since its owner may release it: give their
// contexts a deadline. Errors: *ConfigError unless bytes are 1 or more, *SizeError,
// *OutOfMemoryError, the context's, ErrClosed, and those of the first use of the device; after an
// error nothing is set aside.
func (d *Device) Reserve(ctx context.Context, bytes int64) (*Reservation, error) {
	if err := d.callable(ctx); err != nil {
		return nil, err
	}
	if bytes < 1 {
		return nil, badArgument("Device.Reserve", "bytes", bytes, "1 or more")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e, err := d.use() //nolint:contextcheck // the first use is not this caller's alone
	if err != nil {
		return nil, err
	}
	if limit := d.limit.Load(); bytes > limit {
		return nil, &SizeError{RequestedBytes: bytes, LimitBytes: limit}
	}
	for {
		r, err := e.pool.Reserve(ctx, poolcore.Client(d.lastID.Add(1)), bytes)
		if err == nil {
			return r, nil
		}
		short := (*OutOfMemoryError)(nil)
		if !errors.As(err, &short) {
			return nil, closedOr(err)
		}
		if !d.askNeighbours(ctx, short) {
			short.Largest = e.peers.Largest()
			return nil, err
		}
	}
}
