package pool

import (
	"context"
	"errors"

	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/pool/core"
)

// Charge counts memory that is had from the driver past the pool, for a client, in the limit: see core.Charge. It is called
// before the driver is asked. Errors: *OutOfMemoryError, ErrClosed, ctx's.
func (p *Pool) Charge(ctx context.Context, id core.Client, bytes int64) error {
	_, err := p.request(ctx, func(token uint64) core.Message { return core.Charge(id, bytes, token) })
	if short := (*core.ShortError)(nil); errors.As(err, &short) {
		return p.quotas.denialError(core.Denial{Client: id, Shortage: short.Shortage}, nil)
	}
	return err
}

// Uncharge takes back a Charge, when the driver has the memory. It does not wait.
func (p *Pool) Uncharge(bytes int64) { p.tell(core.Uncharge(bytes), fence.Mark{}) }
