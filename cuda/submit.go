package cuda

import "github.com/go-vram/vram/cudadrv"

// Submit makes driver calls that put work of the caller's own on the stream, which stays open meanwhile: copies from
// and to memory that is not vram's, waits for events of other processes. The ranges are the buffers that the work
// touches: they are checked, ordered and announced as those of Copy. In a capture it is ErrCapturing, and the calls are
// not made. Errors: those of CopyIn, and the function's.
func (c *Context) Submit(work func(device cudadrv.Device, on cudadrv.Stream) error, ranges ...Range) error {
	if !c.opened() {
		return ErrNotOpen
	}
	if c.capture.Load() != nil {
		return ErrCapturing
	}
	return c.on(func() error { return work(c.device, c.handle) }, ranges...)
}
