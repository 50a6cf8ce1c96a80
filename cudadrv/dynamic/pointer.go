//go:build linux && (amd64 || arm64)

package dynamic

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// PointerGetAttributes is cuPointerGetAttribute, once for each attribute: the call for many takes lists of
// addresses that one frame has no room for.
func (d *device) PointerGetAttributes(p cudadrv.Ptr) (cudadrv.PointerInfo, error) {
	f, err := d.enterFeature(call.PointerGetAttribute, cudadrv.PointerInformation)
	if err != nil {
		return cudadrv.PointerInfo{}, err
	}
	defer d.gate.leave(f)
	var values [4]uint64
	for i, attribute := range [...]uintptr{pointerMemoryKind, pointerOrdinal, pointerStart, pointerBytes} {
		f.out[0] = 0
		f.args[0], f.args[1], f.args[2] = f.pointer(0), attribute, uintptr(p)
		if r := d.callCurrent(cuPointerGetAttribute, f, 3); r != cudadrv.Success {
			return cudadrv.PointerInfo{}, d.failed(f, call.PointerGetAttribute, r, "attribute %d of %#x", attribute, uint64(p))
		}
		values[i] = f.out[0]
	}
	return cudadrv.PointerInfo{
		Kind: cudadrv.MemoryKind(values[0]), Ordinal: int(int32(values[1])), Start: cudadrv.Ptr(values[2]), RangeBytes: int64(values[3]),
	}, nil
}
