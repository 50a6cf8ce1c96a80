//go:build linux && (amd64 || arm64)

package dynamic

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// MemsetD16Async calls cuMemsetD16Async.
func (d *device) MemsetD16Async(p cudadrv.Ptr, value uint16, count int64, s cudadrv.Stream) error {
	return d.fill(call.MemsetD16Async, p, uintptr(value), count, s)
}

// MemsetD32Async calls cuMemsetD32Async.
func (d *device) MemsetD32Async(p cudadrv.Ptr, value uint32, count int64, s cudadrv.Stream) error {
	return d.fill(call.MemsetD32Async, p, uintptr(value), count, s)
}

func (d *device) fill(c call.Call, p cudadrv.Ptr, value uintptr, count int64, s cudadrv.Stream) error {
	f, err := d.enterFeature(c, cudadrv.WideFills)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if count <= 0 {
		return d.noWork(c, count)
	}
	f.args = [mostArgs]uintptr{uintptr(p), value, uintptr(count), uintptr(s)}
	if r := d.callCurrent(c, f, 4); r != cudadrv.Success {
		return d.failed(f, c, r, "%d values at %#x", count, uint64(p))
	}
	return nil
}

// Memcpy2DAsync calls cuMemcpy2DAsync between places in device memory.
func (d *device) Memcpy2DAsync(c cudadrv.Copy2D, s cudadrv.Stream) error {
	f, err := d.enterFeature(call.Memcpy2DAsync, cudadrv.WideFills)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if c.WidthBytes <= 0 || c.Rows <= 0 {
		return d.noWork(call.Memcpy2DAsync, min(c.WidthBytes, c.Rows))
	}
	rows := (*copyRows)(unsafe.Pointer(&f.block))
	*rows = copyRows{
		srcKind: deviceMemory, src: c.Src, srcPitch: c.SrcPitch,
		dstKind: deviceMemory, dst: c.Dst, dstPitch: c.DstPitch, width: c.WidthBytes, rows: c.Rows,
	}
	f.args[0], f.args[1] = uintptr(unsafe.Pointer(rows)), uintptr(s)
	if r := d.callCurrent(call.Memcpy2DAsync, f, 2); r != cudadrv.Success {
		return d.copyFailed(f, r, c)
	}
	return nil
}

// copyFailed is separate from Memcpy2DAsync: its format arguments would be in the heap at every copy.
func (d *device) copyFailed(f *frame, r cudadrv.Result, c cudadrv.Copy2D) error {
	return d.failed(f, call.Memcpy2DAsync, r, "%d rows of %d bytes, %d apart at %#x, to %d apart at %#x",
		c.Rows, c.WidthBytes, c.SrcPitch, uint64(c.Src), c.DstPitch, uint64(c.Dst))
}
