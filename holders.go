package vram

import (
	"context"
	"errors"

	"github.com/go-vram/vram/internal/inventory"
	"github.com/go-vram/vram/streams"
)

// LiveBuffers is a list of a device's live buffers, the largest first, with sums by tag, tenant,
// stream and place. Its String is a table for people.
type LiveBuffers = inventory.List

// BufferGroup is the sum of live buffers that have a tag, a tenant, a stream or a place in common.
type BufferGroup = inventory.Group

// LiveBuffers lists the live buffers: who holds memory. Tags and tenants are those that requests
// named. The requested size and the age are known of buffers with a tag or a tenant, of those that had
// to wait for memory, and of those whose place is known: the sampled ones (Config.SampleBytes, which
// Reconfigure changes at run time, at about a nanosecond a request), and all with Config.Debug or an
// observer. Blocks of a batch that is being allocated are in the list.
//
// It asks the streams one after the other, and waits for the request that each is serving, as Stats
// does; it stops nothing else, and allocations and frees pay nothing for it. The buffers of one stream
// are of one moment. Its time grows with the number of live buffers: 10 to 100 ns for each. Errors:
// the context's, ErrClosed. Streams that have failed are in Unread.
func (d *Device) LiveBuffers(ctx context.Context) (LiveBuffers, error) {
	var buffers []LiveBuffer
	failed, err := d.eachStream(ctx, func(s *streams.Control) error {
		all, err := s.Live(ctx)
		buffers = append(buffers, all...)
		return err
	})
	if err != nil {
		return LiveBuffers{}, err
	}
	list := inventory.Of(buffers)
	list.Unread = failed
	return list, nil
}

// eachStream reads the streams one after the other. failed are those that serve no more requests.
func (d *Device) eachStream(ctx context.Context, read func(*streams.Control) error) (failed []uint32, err error) {
	if err := d.callable(ctx); err != nil {
		return nil, err
	}
	if d.closed.Load() {
		return nil, deviceClosed()
	}
	for _, s := range d.streams.Load().open {
		switch err := read(s); {
		case err == nil:
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case d.closed.Load():
			return nil, deviceClosed()
		case !errors.Is(err, ErrClosed): // else its last buffer was freed
			failed = append(failed, s.ID())
		}
	}
	return failed, ctx.Err()
}
