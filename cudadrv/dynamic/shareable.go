//go:build linux && (amd64 || arm64)

package dynamic

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// MemCreateShareable calls cuMemCreate for memory on this device that can be exported as a file descriptor.
func (d *device) MemCreateShareable(bytes int64) (cudadrv.Handle, error) {
	return d.create(cudadrv.ShareableHandles, &d.shareable, bytes)
}

// MemExportToShareableHandle calls cuMemExportToShareableHandle.
func (d *device) MemExportToShareableHandle(h cudadrv.Handle) (int, error) {
	f, err := d.enterFeature(call.MemExportToShareableHandle, cudadrv.ShareableHandles)
	if err != nil {
		return -1, err
	}
	defer d.gate.leave(f)
	if h == 0 {
		return -1, refuse(call.MemExportToShareableHandle, cudadrv.InvalidValue, "no handle")
	}
	f.args = [mostArgs]uintptr{f.pointer(0), uintptr(h), uintptr(posixHandle), 0}
	if r := d.outside(anywhere, call.MemExportToShareableHandle, f, 4); r != cudadrv.Success {
		return -1, d.failed(f, call.MemExportToShareableHandle, r, "handle %#x", uint64(h))
	}
	return int(f.int32()), nil
}

// MemImportFromShareableHandle calls cuMemImportFromShareableHandle.
func (d *device) MemImportFromShareableHandle(fd int) (cudadrv.Handle, error) {
	f, err := d.enterFeature(call.MemImportFromShareableHandle, cudadrv.ShareableHandles)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	if fd < 0 {
		return 0, refuse(call.MemImportFromShareableHandle, cudadrv.InvalidValue, "descriptor %d", fd)
	}
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(fd), uintptr(posixHandle)
	if r := d.outside(anywhere, call.MemImportFromShareableHandle, f, 3); r != cudadrv.Success {
		return 0, d.failed(f, call.MemImportFromShareableHandle, r, "descriptor %d", fd)
	}
	return cudadrv.Handle(f.out[0]), nil
}
