package fault

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.ShareableMemory = (*limited)(nil)

// MemCreateShareable calls cuMemCreate within the capacity.
func (d *limited) MemCreateShareable(bytes int64) (cudadrv.Handle, error) {
	inner, ok := d.Device.(cudadrv.ShareableMemory)
	if !ok {
		return 0, lacking(call.MemCreate)
	}
	return allocate(d, call.MemCreate, bytes, d.ledger.handles, inner.MemCreateShareable)
}

// MemExportToShareableHandle calls the wrapped device's method.
func (d *limited) MemExportToShareableHandle(h cudadrv.Handle) (int, error) {
	inner, ok := d.Device.(cudadrv.ShareableMemory)
	if !ok {
		return 0, lacking(call.MemExportToShareableHandle)
	}
	return inner.MemExportToShareableHandle(h)
}

// MemImportFromShareableHandle calls the wrapped device's method: the memory was counted where it was created.
func (d *limited) MemImportFromShareableHandle(fd int) (cudadrv.Handle, error) {
	inner, ok := d.Device.(cudadrv.ShareableMemory)
	if !ok {
		return 0, lacking(call.MemImportFromShareableHandle)
	}
	return inner.MemImportFromShareableHandle(fd)
}
