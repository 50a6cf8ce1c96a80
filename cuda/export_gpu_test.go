//go:build gpu

package cuda

import "github.com/go-vram/vram/cudadrv"

// Handles of the driver's, for comparisons with calls past this package.

// FunctionHandle returns CUDA's handle of a kernel.
func FunctionHandle(f *Function) uintptr { return uintptr(f.handle) }

// GraphHandle returns CUDA's handle of a graph.
func GraphHandle(g *Graph) uintptr { return uintptr(g.exec) }

// Kernels returns the driver's interface of a context.
func Kernels(c *Context) cudadrv.Kernels { return c.kernels }

// RecordAndWait makes two driver calls: an event is recorded on one context, and the other one waits for it.
func RecordAndWait(from, to *Context, e *Event) error {
	if err := from.device.EventRecord(e.handle, from.handle); err != nil {
		return err
	}
	return to.device.StreamWaitEvent(to.handle, e.handle)
}

// RawCopyPeer returns the driver's copy between two devices, without any order.
func RawCopyPeer(c *Context, dst cudadrv.Ptr, from *Context, src cudadrv.Ptr, bytes int64) error {
	return c.peers.MemcpyPeerAsync(dst, c.peers.Context(), src, from.peers.Context(), bytes, c.handle)
}
