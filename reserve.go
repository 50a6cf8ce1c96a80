package vram

import (
	"context"

	poolcore "github.com/go-vram/vram/pool/core"
)

// Reserve sets memory aside for requests that name the reservation (Request.Reservation, BatchRequest.Reservation): what their
// stream's cache does not serve they draw from it, for as long as it has all that they want, before anything else is tried. So they
// succeed whatever others have, and make no driver call. Each draws whole pages (Info().GranularityBytes): buffers that add up to no
// more than the reservation, each rounded up so, all fit. What was drawn is ordinary memory when it is freed. The rest goes back with Release,
// or when the device is closed, and until then it counts as held: Stats.SetAsideBytes.
//
// Reserve waits for the driver, and not for other people's frees. While a reservation has memory no wait is refused as a deadlock, since
// its owner may release it: give such waits a deadline. Errors: *ConfigError unless bytes are 1 or more, *SizeError, *OutOfMemoryError, the
// context's, after which nothing is held, ErrClosed, and those of the first use of the device.
func (d *Device) Reserve(ctx context.Context, bytes int64) (*Reservation, error) {
	if err := d.callable(ctx); err != nil {
		return nil, err
	}
	if bytes < 1 {
		return nil, &ConfigError{"Reserve", bytes, "1 or more"}
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
	r, err := e.pool.Reserve(ctx, poolcore.Client(d.lastID.Add(1)), bytes)
	if err != nil {
		return nil, closedOr(err)
	}
	return r, nil
}

// Expand has the device hold so many bytes more than it does, in whole pages, mapped ahead in the background of whatever else goes on. It
// waits until they are there, and returns how many were added: fewer where ctx or the limit ends it. Unlike Warm it counts nothing
// that is free already. Errors: *ConfigError unless bytes are 1 or more, *LimitError where the limit leaves no room, the context's,
// ErrClosed, what the driver said, and those of the first use of the device.
func (d *Device) Expand(ctx context.Context, bytes int64) (addedBytes int64, err error) {
	if err := d.callable(ctx); err != nil {
		return 0, err
	}
	if bytes < 1 {
		return 0, &ConfigError{"Expand", bytes, "1 or more"}
	}
	e, err := d.use() //nolint:contextcheck // the first use is not this caller's alone
	if err != nil {
		return 0, err
	}
	addedBytes, err = e.pool.Expand(ctx, bytes)
	if err != nil {
		return addedBytes, failed("expand", closedOr(err))
	}
	return addedBytes, nil
}
