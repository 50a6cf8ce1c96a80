package streams

import (
	"context"

	"github.com/go-vram/vram/internal/memorymap"
)

// Map lists the memory of the stream by state, as Stats counts it: see core.Map. Neighbours shorter than the
// resolution are one range. It waits for the current turn. Errors: ctx's, ErrClosed, or the cause of the
// stream's end.
func (c *Control) Map(ctx context.Context, resolutionBytes int64) ([]memorymap.Range, error) {
	return answered(ctx, c.Stream, func() []memorymap.Range {
		b := memorymap.Builder{ResolutionBytes: resolutionBytes}
		c.turn.state.core.Map(c.ID(), b.Add)
		return b.List()
	})
}
