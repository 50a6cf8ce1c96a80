package cuda

import (
	"context"

	"github.com/go-vram/vram"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/streams"
)

// AllocFor is Alloc with the options of a request, such as its Tag, as vram.Stream.AllocFor. In a capture the memory is the
// graph's hold's, and Request.Zero is a fill at each launch of the graph. It returns the errors of vram.Stream.AllocFor, and in
// a capture with Request.Zero the errors of Fill8.
func (c *Context) AllocFor(ctx context.Context, want vram.Request) (Buffer, error) {
	if !c.opened() {
		return Buffer{}, ErrNotOpen
	}
	p := c.capture.Load()
	if p == nil {
		b, err := c.Stream().AllocFor(ctx, want)
		return b, c.failure(err)
	}
	if ctx == nil {
		return Buffer{}, futures.ErrNilContext
	}
	zero := want.Zero
	want.Zero = false // the hold's stream is not captured
	b, err := p.allocBy(c.submission, func(h streams.Hold) (Buffer, error) { return h.AllocFor(ctx, want) })
	if err != nil || !zero {
		return b, c.failure(err)
	}
	return c.zeroed(p, b)
}
