package sim

import (
	"errors"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// ErrNoBytes says that this system has no memory that can be mapped in two places, so that Config.Bytes cannot be had.
var ErrNoBytes = errors.New("sim: real bytes need Linux on amd64, arm64, loong64, ppc64le or riscv64")

// backing is the host memory of a GPU's addresses: one file without a name that holds the bytes of all handles, and ranges of
// host addresses that stand for reservations. A mapping at a device address is mapped at the same offset in the host range, so
// that bytes follow their handle. It is used under the GPU's mutex.
type backing interface {
	// reserve reserves host addresses; they cost no memory.
	reserve(bytes int64) (unsafe.Pointer, error)
	// allocate takes host addresses with zeroed memory of their own.
	allocate(bytes int64) (unsafe.Pointer, error)
	// release returns memory of reserve or allocate.
	release(base unsafe.Pointer, bytes int64) error
	// show maps a part of the file into a reserved range, hide unmaps that part of it.
	show(at unsafe.Pointer, bytes, offsetBytes int64) error
	hide(at unsafe.Pointer, bytes int64) error
	// empty gives the memory of a part of the file back; it reads as zeros then.
	empty(bytes, offsetBytes int64) error
	// close gives the file back. Ranges are released before.
	close() error
}

// hostFailed returns the error of a call that the host's operating system refused.
func hostFailed(c call.Call, err error) error {
	if err == nil {
		return nil
	}
	return fail(c, cudadrv.OperatingSystem, "host memory: %v", err)
}

// back reserves the host addresses of a new region. A plain allocation gets memory at once.
func (g *gpu) back(c call.Call, r *region) (err error) {
	if g.backing == nil {
		return nil
	}
	if r.plain() {
		r.host, err = g.backing.allocate(r.spanBytes)
	} else {
		r.host, err = g.backing.reserve(r.spanBytes)
	}
	return hostFailed(c, err)
}

// unback releases the host addresses of a region that was removed.
func (g *gpu) unback(c call.Call, r *region) error {
	if g.backing == nil {
		return nil
	}
	host := r.host
	r.host = nil
	return hostFailed(c, g.backing.release(host, r.spanBytes))
}

// place finds a part of the file for a new handle.
func (g *gpu) place(c call.Call, h *handle) error {
	if g.backing == nil {
		return nil
	}
	offset, spanBytes, ok := g.file.take(h.bytes)
	if !ok {
		return fail(c, cudadrv.OutOfMemory, "no %d bytes of the file side by side", h.bytes)
	}
	h.offsetBytes, h.spanBytes = int64(offset), spanBytes
	return nil
}

// unplace frees the memory of a released handle without mappings.
func (g *gpu) unplace(c call.Call, h *handle) error {
	if g.backing == nil {
		return nil
	}
	g.file.give(cudadrv.Ptr(h.offsetBytes), h.spanBytes)
	return hostFailed(c, g.backing.empty(h.bytes, h.offsetBytes))
}

// show maps the handle's bytes at p of the reservation.
func (g *gpu) show(c call.Call, r *region, p cudadrv.Ptr, h *handle) error {
	if g.backing == nil {
		return nil
	}
	return hostFailed(c, g.backing.show(r.hostAt(p), h.bytes, h.offsetBytes))
}

// hide unmaps the host memory of [p, p+bytes) of the reservation.
func (g *gpu) hide(c call.Call, r *region, p cudadrv.Ptr, bytes int64) error {
	if g.backing == nil {
		return nil
	}
	return hostFailed(c, g.backing.hide(r.hostAt(p), bytes))
}

// hostAt returns the host address that stands for p, which is inside the region.
func (r *region) hostAt(p cudadrv.Ptr) unsafe.Pointer { return unsafe.Add(r.host, uint64(p-r.start)) }

// bytesAt returns the bytes at [p, p+bytes). ok is false if some of them are not accessible.
func (g *gpu) bytesAt(p cudadrv.Ptr, bytes int64) (b []byte, ok bool) {
	if m := g.pinned.around(p, bytes); m != nil {
		offset := int64(p - m.start)
		return m.host[offset : offset+bytes], true
	}
	if !g.accessible(p, bytes) {
		return nil, false
	}
	return unsafe.Slice((*byte)(g.regionAt(p).hostAt(p)), bytes), true
}

// loseBytes frees all host memory: the last view of the GPU is closed.
func (g *gpu) loseBytes() error {
	if g.backing == nil {
		return nil
	}
	var failed []error
	for _, r := range g.regions.from(0) {
		failed = append(failed, g.unback(call.PrimaryCtxRelease, r))
	}
	var pins []*pin
	for _, m := range g.pinned.byPtr.from(0) {
		pins = append(pins, m) // unpin changes the map
	}
	for _, m := range pins {
		failed = append(failed, g.unpin(call.PrimaryCtxRelease, m))
	}
	failed = append(failed, hostFailed(call.PrimaryCtxRelease, g.backing.close()))
	g.backing, g.file, g.pinned, g.fault = nil, space{}, pinned{}, ""
	g.faultCause = nil
	g.driver.pending.drop(g)
	return errors.Join(failed...)
}
