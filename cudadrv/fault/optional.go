package fault

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var (
	_ cudadrv.ShareableMemory     = (*limited)(nil)
	_ cudadrv.StreamOrderedMemory = (*limited)(nil)
)

// MemCreateShareable is cuMemCreate within the capacity.
func (d *limited) MemCreateShareable(bytes int64) (cudadrv.Handle, error) {
	inner, ok := d.Device.(cudadrv.ShareableMemory)
	if !ok {
		return 0, lacking(call.MemCreate)
	}
	return allocate(d, call.MemCreate, bytes, d.ledger.handles, inner.MemCreateShareable)
}

// MemExportToShareableHandle is the wrapped device's.
func (d *limited) MemExportToShareableHandle(h cudadrv.Handle) (int, error) {
	inner, ok := d.Device.(cudadrv.ShareableMemory)
	if !ok {
		return 0, lacking(call.MemExportToShareableHandle)
	}
	return inner.MemExportToShareableHandle(h)
}

// MemImportFromShareableHandle is the wrapped device's: the memory was counted where it was created.
func (d *limited) MemImportFromShareableHandle(fd int) (cudadrv.Handle, error) {
	inner, ok := d.Device.(cudadrv.ShareableMemory)
	if !ok {
		return 0, lacking(call.MemImportFromShareableHandle)
	}
	return inner.MemImportFromShareableHandle(fd)
}

// MemAllocAsync is cuMemAllocAsync within the capacity. What the driver's pool keeps is not counted.
func (d *limited) MemAllocAsync(bytes int64, s cudadrv.Stream) (cudadrv.Ptr, error) {
	inner, ok := d.Device.(cudadrv.StreamOrderedMemory)
	if !ok {
		return 0, lacking(call.MemAllocAsync)
	}
	return allocate(d, call.MemAllocAsync, bytes, d.ledger.plain,
		func(bytes int64) (cudadrv.Ptr, error) { return inner.MemAllocAsync(bytes, s) })
}

// MemFreeAsync gives back to the capacity what MemAllocAsync took, at once and not when the stream gets there.
func (d *limited) MemFreeAsync(p cudadrv.Ptr, s cudadrv.Stream) error {
	inner, ok := d.Device.(cudadrv.StreamOrderedMemory)
	if !ok {
		return lacking(call.MemFreeAsync)
	}
	return free(d, p, d.ledger.plain, func(p cudadrv.Ptr) error { return inner.MemFreeAsync(p, s) })
}

// MemPoolTrimTo is the wrapped device's.
func (d *limited) MemPoolTrimTo(keepBytes int64) error {
	inner, ok := d.Device.(cudadrv.StreamOrderedMemory)
	if !ok {
		return lacking(call.MemPoolTrimTo)
	}
	return inner.MemPoolTrimTo(keepBytes)
}

// MemPoolSetThreshold is the wrapped device's.
func (d *limited) MemPoolSetThreshold(bytes int64) error {
	inner, ok := d.Device.(cudadrv.StreamOrderedMemory)
	if !ok {
		return lacking(call.MemPoolSetAttribute)
	}
	return inner.MemPoolSetThreshold(bytes)
}

// MemPoolUsage is the wrapped device's.
func (d *limited) MemPoolUsage() (reservedBytes, usedBytes int64, err error) {
	inner, ok := d.Device.(cudadrv.StreamOrderedMemory)
	if !ok {
		return 0, 0, lacking(call.MemPoolGetAttribute)
	}
	return inner.MemPoolUsage()
}
