package sim

import (
	"errors"
	"fmt"

	"github.com/go-vram/vram/cudadrv"
)

// Audit checks the GPU's bookkeeping and reports every inconsistency: bytes in use against handles and plain allocations,
// mappings against each other, their reservations and handles, streams against the device's queue. Its time is proportional to
// the number of objects.
func (d *Device) Audit() error {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := errors.Join(g.regions.check(), g.mappings.check(), g.pinned.check()); err != nil {
		return fmt.Errorf("sim: audit: %w", err) // the rest walks these
	}
	bytes, errs := g.auditRegions()
	held, more := g.auditMappings()
	errs = append(errs, more...)
	for id, h := range g.handles {
		if h.released || h.id != id {
			errs = append(errs, fmt.Errorf("handle %#x is in the books as %#x, released: %t", id, h.id, h.released))
		}
		if _, mapped := held[h]; !mapped {
			bytes += h.bytes
		}
	}
	for h, count := range held {
		bytes += h.bytes
		if h.mapped != count {
			errs = append(errs, fmt.Errorf("handle %#x is mapped %d times and counts %d", h.id, count, h.mapped))
		}
	}
	if bytes != g.usedBytes {
		errs = append(errs, fmt.Errorf("%d bytes in use, %d booked", bytes, g.usedBytes))
	}
	for id, st := range g.streams {
		if st.drained > g.drained {
			errs = append(errs, fmt.Errorf("stream %#x drains at %v, the device at %v", id, st.drained, g.drained))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("sim: audit: %w", err)
	}
	return nil
}

// auditRegions adds up plain allocations.
func (g *gpu) auditRegions() (plainBytes int64, errs []error) {
	end := cudadrv.Ptr(0)
	for p, r := range g.regions.from(0) {
		if p != r.start || p < end {
			errs = append(errs, fmt.Errorf("region at %#x begins at %#x before %#x", p, r.start, end))
		}
		if (r.host != nil) != (g.backing != nil) {
			errs = append(errs, fmt.Errorf("region at %#x stands at %v on the host", p, r.host))
		}
		if r.bytes <= 0 || r.spanBytes < r.bytes || r.plain() && r.mapped != 0 {
			errs = append(errs, fmt.Errorf("region at %#x: %+v", p, *r))
		}
		end = p + cudadrv.Ptr(r.spanBytes)
		plainBytes += r.physicalBytes
	}
	return plainBytes, errs
}

// auditMappings counts the mappings of each handle.
func (g *gpu) auditMappings() (held map[*handle]int, errs []error) {
	held = make(map[*handle]int)
	inside := make(map[*region]int)
	end := cudadrv.Ptr(0)
	for p, m := range g.mappings.from(0) {
		if p != m.start || p < end {
			errs = append(errs, fmt.Errorf("mapping at %#x begins at %#x before %#x", p, m.start, end))
		}
		if r := g.regionAt(p); r == nil || r != m.region || r.plain() || !r.contains(p, m.handle.bytes) {
			errs = append(errs, fmt.Errorf("mapping [%#x, %#x) is not inside its reservation", p, m.end()))
		}
		end = m.end()
		held[m.handle]++
		inside[m.region]++
	}
	for p, r := range g.regions.from(0) {
		if r.mapped != inside[r] {
			errs = append(errs, fmt.Errorf("region at %#x counts %d mappings and has %d", p, r.mapped, inside[r]))
		}
	}
	return held, errs
}
