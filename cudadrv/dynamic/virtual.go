//go:build linux && (amd64 || arm64)

package dynamic

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// granular checks the size of a reservation or handle.
func (d *device) granular(c call.Call, bytes int64) error {
	if bytes <= 0 || bytes%d.info.GranularityBytes != 0 {
		return refuse(c, cudadrv.InvalidValue, "%d bytes are no positive multiple of %d", bytes, d.info.GranularityBytes)
	}
	return nil
}

// MemAddressReserve calls cuMemAddressReserve, aligned to the granularity, at any address.
func (d *device) MemAddressReserve(bytes int64) (cudadrv.Ptr, error) {
	f, err := d.enterFeature(call.MemAddressReserve, cudadrv.VirtualMemory)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	if err := d.granular(call.MemAddressReserve, bytes); err != nil {
		return 0, err
	}
	f.args = [mostArgs]uintptr{f.pointer(0), uintptr(bytes), 0, 0, 0}
	if r := d.outside(anywhere, call.MemAddressReserve, f, 5); r != cudadrv.Success {
		return 0, d.failed(f, call.MemAddressReserve, r, "%d bytes", bytes)
	}
	return cudadrv.Ptr(f.out[0]), nil
}

// MemAddressFree calls cuMemAddressFree.
func (d *device) MemAddressFree(p cudadrv.Ptr, bytes int64) error {
	return d.onRange(call.MemAddressFree, p, bytes)
}

// MemUnmap calls cuMemUnmap.
func (d *device) MemUnmap(p cudadrv.Ptr, bytes int64) error {
	return d.onRange(call.MemUnmap, p, bytes)
}

// onRange makes a call that takes a range of addresses and nothing else.
func (d *device) onRange(c call.Call, p cudadrv.Ptr, bytes int64) error {
	f, err := d.enterFeature(c, cudadrv.VirtualMemory)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if p == 0 || bytes <= 0 {
		return refuse(c, cudadrv.InvalidValue, "%d bytes at %#x", bytes, uint64(p))
	}
	f.args[0], f.args[1] = uintptr(p), uintptr(bytes)
	if r := d.outside(anywhere, c, f, 2); r != cudadrv.Success {
		return d.failed(f, c, r, "%d bytes at %#x", bytes, uint64(p))
	}
	return nil
}

// MemCreate calls cuMemCreate for memory on this device.
func (d *device) MemCreate(bytes int64) (cudadrv.Handle, error) {
	return d.create(cudadrv.VirtualMemory, &d.plain, bytes)
}

func (d *device) create(feature cudadrv.Capability, prop *allocationProp, bytes int64) (cudadrv.Handle, error) {
	f, err := d.enterFeature(call.MemCreate, feature|cudadrv.VirtualMemory)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	if err := d.granular(call.MemCreate, bytes); err != nil {
		return 0, err
	}
	f.args = [mostArgs]uintptr{f.pointer(0), uintptr(bytes), uintptr(unsafe.Pointer(prop)), 0}
	if r := d.outside(anywhere, call.MemCreate, f, 4); r != cudadrv.Success {
		return 0, d.failed(f, call.MemCreate, r, "%d bytes", bytes)
	}
	return cudadrv.Handle(f.out[0]), nil
}

// MemRelease calls cuMemRelease.
func (d *device) MemRelease(h cudadrv.Handle) error {
	f, err := d.enterFeature(call.MemRelease, cudadrv.VirtualMemory)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if h == 0 {
		return refuse(call.MemRelease, cudadrv.InvalidValue, "no handle")
	}
	f.args[0] = uintptr(h)
	if r := d.outside(anywhere, call.MemRelease, f, 1); r != cudadrv.Success {
		return d.failed(f, call.MemRelease, r, "handle %#x", uint64(h))
	}
	return nil
}

// MemMap calls cuMemMap for the whole handle.
func (d *device) MemMap(p cudadrv.Ptr, bytes int64, h cudadrv.Handle) error {
	f, err := d.enterFeature(call.MemMap, cudadrv.VirtualMemory)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if p == 0 || bytes <= 0 || h == 0 {
		return refuse(call.MemMap, cudadrv.InvalidValue, "handle %#x of %d bytes at %#x", uint64(h), bytes, uint64(p))
	}
	f.args = [mostArgs]uintptr{uintptr(p), uintptr(bytes), 0, uintptr(h), 0}
	if r := d.outside(anywhere, call.MemMap, f, 5); r != cudadrv.Success {
		return d.failed(f, call.MemMap, r, "handle %#x of %d bytes at %#x", uint64(h), bytes, uint64(p))
	}
	return nil
}

// MemSetAccess calls cuMemSetAccess: this device may read and write.
func (d *device) MemSetAccess(p cudadrv.Ptr, bytes int64) error {
	f, err := d.enterFeature(call.MemSetAccess, cudadrv.VirtualMemory)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if p == 0 || bytes <= 0 {
		return refuse(call.MemSetAccess, cudadrv.InvalidValue, "%d bytes at %#x", bytes, uint64(p))
	}
	f.args = [mostArgs]uintptr{uintptr(p), uintptr(bytes), uintptr(unsafe.Pointer(&d.access)), 1}
	if r := d.outside(anywhere, call.MemSetAccess, f, 4); r != cudadrv.Success {
		return d.failed(f, call.MemSetAccess, r, "%d bytes at %#x", bytes, uint64(p))
	}
	return nil
}
