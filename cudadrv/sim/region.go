package sim

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// region is a range of address space that was given out: a reservation or a plain allocation.
type region struct {
	start         cudadrv.Ptr
	bytes         int64 // as asked for
	spanBytes     int64 // of address space, with the rounding and the empty granule at the end
	physicalBytes int64 // of a plain allocation; 0 for a reservation
	mapped        int   // mappings inside
	variable      bool  // of a module: a plain allocation freed with it

	host unsafe.Pointer // host address of start, with Config.Bytes
}

func (r *region) plain() bool { return r.physicalBytes > 0 }

// contains reports whether all of [p, p+bytes) is inside. It takes any p and bytes without overflow.
func (r *region) contains(p cudadrv.Ptr, bytes int64) bool {
	return p >= r.start && bytes >= 0 && bytes <= r.bytes && uint64(p-r.start) <= uint64(r.bytes-bytes)
}

// handle is a physical allocation. It lives until it is released and mapped nowhere.
type handle struct {
	id       cudadrv.Handle
	bytes    int64
	mapped   int
	released bool

	offsetBytes, spanBytes int64 // the place in the file, with Config.Bytes
}

// mapping is a handle at an address.
type mapping struct {
	start      cudadrv.Ptr
	handle     *handle
	region     *region
	accessible bool
}

func (m *mapping) end() cudadrv.Ptr { return m.start + cudadrv.Ptr(m.handle.bytes) }

// regionAt returns the region around p, nil if there is none.
func (g *gpu) regionAt(p cudadrv.Ptr) *region {
	if _, r, ok := g.regions.floor(p); ok && r.contains(p, 0) {
		return r
	}
	return nil
}

// overlapped returns a mapping that shares an address with [p, p+bytes), nil if there is none.
func (g *gpu) overlapped(p cudadrv.Ptr, bytes int64) *mapping {
	if _, m, ok := g.mappings.floor(p + cudadrv.Ptr(bytes) - 1); ok && m.end() > p {
		return m
	}
	return nil
}

// accessible reports whether every byte of [p, p+bytes) can be read and written by queued work.
func (g *gpu) accessible(p cudadrv.Ptr, bytes int64) bool {
	r := g.regionAt(p)
	if r == nil || !r.contains(p, bytes) {
		return false
	}
	if r.plain() {
		return true
	}
	first, _, ok := g.mappings.floor(p)
	if !ok {
		return false
	}
	end, reached := p+cudadrv.Ptr(bytes), first
	for start, m := range g.mappings.from(first) {
		if start != reached || !m.accessible {
			return false
		}
		if reached = m.end(); reached >= end {
			return true
		}
	}
	return false
}

// unref drops one reason for the handle to live and returns the memory with the last.
func (g *gpu) unref(c call.Call, h *handle) error {
	if !h.released || h.mapped > 0 {
		return nil
	}
	g.usedBytes -= h.bytes
	return g.unplace(c, h)
}
