//go:build linux && (amd64 || arm64)

package dynamic

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// MemAllocAsync is cuMemAllocAsync.
func (d *device) MemAllocAsync(bytes int64, s cudadrv.Stream) (cudadrv.Ptr, error) {
	f, err := d.enterFeature(call.MemAllocAsync, cudadrv.StreamOrdered)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	if bytes <= 0 {
		return 0, refuse(call.MemAllocAsync, cudadrv.InvalidValue, "%d bytes", bytes)
	}
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(bytes), uintptr(s)
	if r := d.callOn(s, cuMemAllocAsync, f, 3); r != cudadrv.Success {
		return 0, d.failed(f, call.MemAllocAsync, r, "%d bytes", bytes)
	}
	return cudadrv.Ptr(f.out[0]), nil
}

// MemFreeAsync is cuMemFreeAsync. Address 0 is no memory.
func (d *device) MemFreeAsync(p cudadrv.Ptr, s cudadrv.Stream) error {
	f, err := d.enterFeature(call.MemFreeAsync, cudadrv.StreamOrdered)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if p == 0 {
		return nil
	}
	f.args[0], f.args[1] = uintptr(p), uintptr(s)
	if r := d.callOn(s, cuMemFreeAsync, f, 2); r != cudadrv.Success {
		return d.failed(f, call.MemFreeAsync, r, "address %#x", uint64(p))
	}
	return nil
}

// MemPoolTrimTo is cuMemPoolTrimTo of the default pool.
func (d *device) MemPoolTrimTo(keepBytes int64) error {
	f, err := d.enterPool(call.MemPoolTrimTo, keepBytes)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = d.pool, uintptr(keepBytes)
	return d.done(f, call.MemPoolTrimTo, d.lib.call(cuMemPoolTrimTo, f, 2))
}

// MemPoolSetThreshold is cuMemPoolSetAttribute of the default pool's release threshold.
func (d *device) MemPoolSetThreshold(bytes int64) error {
	f, err := d.enterPool(call.MemPoolSetAttribute, bytes)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.out[0] = uint64(bytes)
	f.args[0], f.args[1], f.args[2] = d.pool, poolThreshold, f.pointer(0)
	return d.done(f, call.MemPoolSetAttribute, d.lib.call(cuMemPoolSetAttribute, f, 3))
}

// MemPoolUsage is cuMemPoolGetAttribute, once for each figure.
func (d *device) MemPoolUsage() (reservedBytes, usedBytes int64, err error) {
	f, err := d.enterPool(call.MemPoolGetAttribute, 0)
	if err != nil {
		return 0, 0, err
	}
	defer d.gate.leave(f)
	for i, attribute := range [...]uintptr{poolReserved, poolUsed} {
		f.args[0], f.args[1], f.args[2] = d.pool, attribute, f.pointer(i)
		if r := d.lib.call(cuMemPoolGetAttribute, f, 3); r != cudadrv.Success {
			return 0, 0, d.failed(f, call.MemPoolGetAttribute, r, "attribute %d", attribute)
		}
	}
	return int64(f.out[0]), int64(f.out[1]), nil
}

// enterPool is enterFeature for a call that takes a number of bytes, 0 or more.
func (d *device) enterPool(c call.Call, bytes int64) (*frame, error) {
	f, err := d.enterFeature(c, cudadrv.StreamOrdered)
	if err == nil && bytes < 0 {
		d.gate.leave(f)
		return nil, refuse(c, cudadrv.InvalidValue, "%d bytes", bytes)
	}
	return f, err
}
