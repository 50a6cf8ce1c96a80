package pool

import (
	"context"
	"errors"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
)

// Apart makes all memory of a client lie in handles without pages of others: see core.Apart. Call it after Join and before the
// client's first Refill.
func (p *Pool) Apart(id core.Client) { p.tell(core.Apart(id), fence.Mark{}) }

// Sleep releases the physical memory of a client's pages: see core.Sleep. The device must have finished all work on them, and
// none may come before Wake. It waits for the driver calls of other requests, and for its own. The end of ctx ends the waiting
// only. It returns the bytes that sleep then.
func (p *Pool) Sleep(ctx context.Context, id core.Client) (sleepingBytes int64, err error) {
	return p.request(ctx, func(token uint64) core.Message { return core.Sleep(id, token) })
}

// Wake makes new memory for a client's sleeping pages: see core.Wake. Errors: *OutOfMemoryError, ErrClosed, and the driver's.
func (p *Pool) Wake(ctx context.Context, id core.Client) error {
	_, err := p.request(ctx, func(token uint64) core.Message { return core.Wake(id, token) })
	if short := (*core.ShortError)(nil); errors.As(err, &short) {
		return p.quotas.denialError(core.Denial{Client: id, Shortage: short.Shortage, Err: short.Err}, nil)
	}
	return err
}
