package sim

import (
	"math"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.WideWork = (*Device)(nil)

// maxPitchBytes is the largest distance of two rows (CU_DEVICE_ATTRIBUTE_MAX_PITCH).
const maxPitchBytes = math.MaxInt32

// MemsetD16Async queues the time that filling takes, as MemsetD8Async.
func (d *Device) MemsetD16Async(p cudadrv.Ptr, value uint16, count int64, s cudadrv.Stream) error {
	return d.wideFill(call.MemsetD16Async, p, uint32(value), 2, count, s)
}

// MemsetD32Async queues the time that filling takes, as MemsetD8Async.
func (d *Device) MemsetD32Async(p cudadrv.Ptr, value uint32, count int64, s cudadrv.Stream) error {
	return d.wideFill(call.MemsetD32Async, p, value, 4, count, s)
}

// wideFill returns a memset with values of the given size.
func (d *Device) wideFill(c call.Call, p cudadrv.Ptr, value uint32, unit, count int64, s cudadrv.Stream) error {
	return d.do(c, cudadrv.WideFills, func(g *gpu) error {
		st, err := g.streamNamed(c, s)
		if err != nil {
			return err
		}
		if count < 0 || count > math.MaxInt64/unit || uint64(p)%uint64(unit) != 0 {
			return fail(c, cudadrv.InvalidValue, "%d values of %d bytes at %#x", count, unit, p)
		}
		bytes := count * unit
		if bytes == 0 {
			return nil
		}
		if !g.reaches(p, bytes) {
			return fail(c, cudadrv.IllegalAddress, "%d bytes at %#x are not all mapped and accessible", bytes, p)
		}
		return g.submit(st, memsetTime(bytes), work{call: c, dst: p, bytes: bytes, value: value, unit: unit})
	})
}

// Memcpy2DAsync queues the time that copying the rows takes. Both sides are checked now, row by row.
func (d *Device) Memcpy2DAsync(r cudadrv.Copy2D, s cudadrv.Stream) error {
	const c = call.Memcpy2DAsync
	return d.do(c, cudadrv.WideFills, func(g *gpu) error {
		st, err := g.streamNamed(c, s)
		if err != nil {
			return err
		}
		if !sensible(r) {
			return fail(c, cudadrv.InvalidValue, "%+v", r)
		}
		bytes := r.WidthBytes * r.Rows
		if bytes == 0 {
			return nil
		}
		for _, side := range [...]struct {
			start cudadrv.Ptr
			pitch int64
		}{{r.Dst, r.DstPitch}, {r.Src, r.SrcPitch}} {
			if !g.rowsAt(side.start, side.pitch, r.WidthBytes, r.Rows) {
				return fail(c, cudadrv.IllegalAddress, "%d rows of %d bytes, %d apart, at %#x are not all mapped and accessible",
					r.Rows, r.WidthBytes, side.pitch, side.start)
			}
		}
		w := work{call: c, dst: r.Dst, src: r.Src, bytes: bytes, rows: r.Rows, dstPitch: r.DstPitch, srcPitch: r.SrcPitch}
		return g.submit(st, memcpyTime(bytes), w)
	})
}

// sensible reports whether a copy of rows can be: pitches take the rows, and the number of bytes between the first and the last
// fits. As the driver does, it takes a pitch of 0 for any number of rows, which lie in one place then.
func sensible(r cudadrv.Copy2D) bool {
	pitch := max(r.DstPitch, r.SrcPitch)
	wide := func(pitch int64) bool { return pitch >= r.WidthBytes || pitch == 0 }
	return r.WidthBytes >= 0 && r.Rows >= 0 && wide(r.DstPitch) && wide(r.SrcPitch) &&
		pitch <= maxPitchBytes && (pitch == 0 || r.Rows <= math.MaxInt64/pitch)
}

// rowsAt reports whether work can touch all bytes of the rows, at least one. Memory between them need not be mapped.
func (g *gpu) rowsAt(p cudadrv.Ptr, pitch, width, rows int64) bool {
	if g.reaches(p, (rows-1)*pitch+width) {
		return true
	}
	for row := range rows {
		if !g.reaches(p+cudadrv.Ptr(row*pitch), width) {
			return false
		}
	}
	return true
}
