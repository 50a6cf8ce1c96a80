package sim

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

const (
	// plainStepBytes is the step of cuMemAlloc below a granule; its addresses are multiples of it.
	plainStepBytes = 512
	// plainAlignBytes is the alignment of plain allocations, as on an H200 for sizes that are multiples of it.
	plainAlignBytes = 2 << 20
)

// MemGetInfo returns the free part of the capacity. The total is Info.TotalBytes, or more if SetCapacity allows more.
func (d *Device) MemGetInfo() (freeBytes, totalBytes int64, err error) {
	const c = call.MemGetInfo
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enter(c); err != nil {
		return 0, 0, err
	}
	g.charge(c)
	return max(g.capacityBytes-g.usedBytes, 0), max(g.info.TotalBytes, g.capacityBytes), nil
}

// MemAlloc takes address space and memory in one. Memory is taken in steps of 512 bytes below a
// granule and in whole granules above.
func (d *Device) MemAlloc(bytes int64) (cudadrv.Ptr, error) {
	const c = call.MemAlloc
	return value(d, c, everyDevice, func(g *gpu) (cudadrv.Ptr, error) {
		r, err := g.allocate(c, bytes)
		if err != nil {
			return 0, err
		}
		g.chargeBytes(c, bytes)
		return r.start, nil
	})
}

// allocate takes address space and memory for a plain allocation.
func (g *gpu) allocate(c call.Call, bytes int64) (*region, error) {
	switch {
	case bytes <= 0:
		return nil, fail(c, cudadrv.InvalidValue, "%d bytes", bytes)
	case bytes > spaceEnd:
		return nil, fail(c, cudadrv.OutOfMemory, "%d bytes are more than the address space", bytes)
	}
	physicalBytes := roundUp(bytes, plainStepBytes)
	if bytes > g.granuleBytes() {
		physicalBytes = roundUp(bytes, g.granuleBytes())
	}
	if err := g.take(c, physicalBytes); err != nil {
		return nil, err
	}
	p, spanBytes, ok := g.driver.space.take(bytes)
	if !ok {
		g.usedBytes -= physicalBytes
		return nil, fail(c, cudadrv.OutOfMemory, "no %d bytes of address space side by side", bytes)
	}
	r := &region{start: p, bytes: bytes, spanBytes: spanBytes, physicalBytes: physicalBytes}
	if err := g.back(c, r); err != nil {
		g.usedBytes -= physicalBytes
		g.driver.space.give(p, spanBytes)
		return nil, err
	}
	g.regions.put(p, r)
	return r, nil
}

// release frees a plain allocation.
func (g *gpu) release(c call.Call, r *region) error {
	g.regions.drop(r.start)
	g.driver.space.give(r.start, r.spanBytes)
	g.usedBytes -= r.physicalBytes
	return g.unback(c, r)
}

// MemFree waits for all work queued on the device and gives a plain allocation back. Address 0 is no
// mistake and does nothing.
func (d *Device) MemFree(p cudadrv.Ptr) error {
	const c = call.MemFree
	return d.do(c, everyDevice, func(g *gpu) error {
		if p == 0 {
			return nil
		}
		r, err := g.plainAt(c, p)
		if err != nil {
			return err
		}
		if err := g.wait(c, g.drained); err != nil {
			return err
		}
		if now, ok := g.regions.at(p); !ok || now != r { // another caller freed it while the running clock ran
			return fail(c, cudadrv.InvalidValue, "the allocation at %#x was freed during the wait", p)
		}
		g.chargeBytes(c, r.bytes)
		return g.release(c, r)
	})
}

// plainAt finds the plain allocation that begins at p.
func (g *gpu) plainAt(c call.Call, p cudadrv.Ptr) (*region, error) {
	if r, ok := g.regions.at(p); ok && r.plain() && !r.variable {
		return r, nil
	}
	return nil, fail(c, cudadrv.InvalidValue, "no allocation begins at %#x", p)
}
