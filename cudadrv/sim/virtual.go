package sim

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// wholeGranules refuses sizes that no address space or handle call takes.
func (g *gpu) wholeGranules(c call.Call, bytes int64) error {
	if bytes <= 0 || bytes%g.granuleBytes() != 0 {
		return fail(c, cudadrv.InvalidValue, "%d bytes are not a positive multiple of %d", bytes, g.granuleBytes())
	}
	return nil
}

// reservationAround finds the reservation that has all of [p, p+bytes), and refuses misaligned addresses.
func (g *gpu) reservationAround(c call.Call, p cudadrv.Ptr, bytes int64) (*region, error) {
	if uint64(p)%uint64(g.granuleBytes()) != 0 {
		return nil, fail(c, cudadrv.InvalidValue, "%#x is not a multiple of %d", p, g.granuleBytes())
	}
	r := g.regionAt(p)
	if r == nil || r.plain() || !r.contains(p, bytes) {
		return nil, fail(c, cudadrv.InvalidValue, "[%#x, %#x) is not inside one reservation", p, p+cudadrv.Ptr(bytes))
	}
	return r, nil
}

// MemAddressReserve reserves address space. The addresses are used again after MemAddressFree.
func (d *Device) MemAddressReserve(bytes int64) (cudadrv.Ptr, error) {
	const c = call.MemAddressReserve
	return value(d, c, cudadrv.VirtualMemory, func(g *gpu) (cudadrv.Ptr, error) {
		if err := g.wholeGranules(c, bytes); err != nil {
			return 0, err
		}
		p, spanBytes, ok := g.driver.space.take(bytes)
		if !ok {
			return 0, fail(c, cudadrv.OutOfMemory, "no %d bytes of address space side by side", bytes)
		}
		r := &region{start: p, bytes: bytes, spanBytes: spanBytes}
		if err := g.back(c, r); err != nil {
			g.driver.space.give(p, spanBytes)
			return 0, err
		}
		g.regions.put(p, r)
		g.chargeBytes(c, bytes)
		return p, nil
	})
}

// MemAddressFree frees a whole reservation with nothing mapped in it.
func (d *Device) MemAddressFree(p cudadrv.Ptr, bytes int64) error {
	const c = call.MemAddressFree
	return d.do(c, cudadrv.VirtualMemory, func(g *gpu) error {
		r, ok := g.regions.at(p)
		switch {
		case !ok || r.plain():
			return fail(c, cudadrv.InvalidValue, "no reservation begins at %#x", p)
		case r.bytes != bytes:
			return fail(c, cudadrv.InvalidValue, "%d bytes were reserved at %#x, not %d", r.bytes, p, bytes)
		case r.mapped > 0:
			return fail(c, cudadrv.InvalidValue, "%d handles are mapped at %#x and above", r.mapped, p)
		}
		g.regions.drop(p)
		g.driver.space.give(p, r.spanBytes)
		g.chargeBytes(c, bytes)
		return g.unback(c, r)
	})
}

// MemCreate takes physical memory.
func (d *Device) MemCreate(bytes int64) (cudadrv.Handle, error) {
	const c = call.MemCreate
	return value(d, c, cudadrv.VirtualMemory, func(g *gpu) (cudadrv.Handle, error) {
		if err := g.wholeGranules(c, bytes); err != nil {
			return 0, err
		}
		if err := g.take(c, bytes); err != nil {
			return 0, err
		}
		h := handle{bytes: bytes}
		if err := g.place(c, &h); err != nil {
			g.usedBytes -= bytes
			return 0, err
		}
		h.id = cudadrv.Handle(g.driver.id(firstHandle, &g.driver.handles))
		g.handles[h.id] = g.handleSlab.place(h)
		g.chargeBytes(c, bytes)
		return h.id, nil
	})
}

// MemRelease releases h. The memory is freed once it is mapped nowhere; this call bears the whole cost of freeing it.
func (d *Device) MemRelease(h cudadrv.Handle) error {
	const c = call.MemRelease
	return d.do(c, cudadrv.VirtualMemory, func(g *gpu) error {
		hd, ok := g.handles[h]
		if !ok {
			return fail(c, cudadrv.InvalidValue, "no handle %#x", h)
		}
		delete(g.handles, h)
		hd.released = true
		g.chargeBytes(c, hd.bytes)
		return g.unref(c, hd)
	})
}

// MemMap maps a whole handle. A handle may be mapped in several places.
func (d *Device) MemMap(p cudadrv.Ptr, bytes int64, h cudadrv.Handle) error {
	const c = call.MemMap
	return d.do(c, cudadrv.VirtualMemory, func(g *gpu) error {
		if err := g.wholeGranules(c, bytes); err != nil {
			return err
		}
		hd, ok := g.handles[h]
		if !ok {
			return fail(c, cudadrv.InvalidValue, "no handle %#x", h)
		}
		if hd.bytes != bytes {
			return fail(c, cudadrv.NotSupported, "handle %#x has %d bytes and is mapped whole, not %d", h, hd.bytes, bytes)
		}
		r, err := g.reservationAround(c, p, bytes)
		if err != nil {
			return err
		}
		if m := g.overlapped(p, bytes); m != nil {
			return fail(c, cudadrv.AlreadyMapped, "handle %#x is mapped at [%#x, %#x)", m.handle.id, m.start, m.end())
		}
		if err := g.show(c, r, p, hd); err != nil {
			return err
		}
		g.mappings.put(p, g.mappingSlab.place(mapping{start: p, handle: hd, region: r}))
		hd.mapped++
		r.mapped++
		g.chargeBytes(c, bytes)
		return nil
	})
}

// tiled reports whether [p, p+bytes) is exactly one or more adjacent mappings. hole is the result if something in it is not
// mapped.
func (g *gpu) tiled(c call.Call, p cudadrv.Ptr, bytes int64, hole cudadrv.Result) error {
	if err := g.wholeGranules(c, bytes); err != nil {
		return err
	}
	if _, err := g.reservationAround(c, p, bytes); err != nil {
		return err
	}
	end, reached := p+cudadrv.Ptr(bytes), p
	if first := g.overlapped(p, 1); first != nil && first.start != p {
		return fail(c, cudadrv.InvalidValue, "%#x is inside the mapping at %#x", p, first.start)
	}
	for start, m := range g.mappings.from(p) {
		if start != reached || reached == end {
			break
		}
		if m.end() > end {
			return fail(c, cudadrv.InvalidValue, "%#x is inside the mapping at %#x", end, start)
		}
		reached = m.end()
	}
	if reached != end {
		return fail(c, hole, "nothing is mapped at %#x", reached)
	}
	return nil
}

// MemSetAccess makes mappings side by side accessible; making them so again changes nothing.
func (d *Device) MemSetAccess(p cudadrv.Ptr, bytes int64) error {
	const c = call.MemSetAccess
	return d.do(c, cudadrv.VirtualMemory, func(g *gpu) error {
		return g.setAccess(p, bytes, true)
	})
}

// setAccess makes adjacent mappings accessible to their GPU, or to another one, which is not recorded.
func (g *gpu) setAccess(p cudadrv.Ptr, bytes int64, own bool) error {
	const c = call.MemSetAccess
	if err := g.tiled(c, p, bytes, cudadrv.InvalidValue); err != nil {
		return err
	}
	cost := callCosts[c].at(bytes)
	for start, m := range g.mappings.from(p) {
		if start >= p+cudadrv.Ptr(bytes) {
			break
		}
		m.accessible = m.accessible || own
		cost += accessHandleCost.at(m.handle.bytes)
	}
	g.chargeTime(cost)
	return nil
}

// MemUnmap unmaps mappings side by side and waits for nothing.
func (d *Device) MemUnmap(p cudadrv.Ptr, bytes int64) error {
	const c = call.MemUnmap
	return d.do(c, cudadrv.VirtualMemory, func(g *gpu) error {
		if err := g.tiled(c, p, bytes, cudadrv.NotMapped); err != nil {
			return err
		}
		if err := g.hide(c, g.regionAt(p), p, bytes); err != nil {
			return err
		}
		var failed error
		cost := callCosts[c].at(bytes)
		for end := p + cudadrv.Ptr(bytes); p < end; {
			m, _ := g.mappings.at(p)
			p = m.end()
			g.mappings.drop(m.start)
			m.region.mapped--
			m.handle.mapped--
			failed = errors.Join(failed, g.unref(c, m.handle))
			cost += unmapHandleCost.at(m.handle.bytes)
		}
		g.chargeTime(cost)
		return failed
	})
}
