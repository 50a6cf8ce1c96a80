//go:build linux && (amd64 || arm64)

package dynamic

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// tensorArguments are the memory that cuTensorMapEncodeTiled reads and writes. The result is at a multiple of 64 bytes, as the driver
// demands, wherever Go puts the structure.
type tensorArguments struct {
	dims    [cudadrv.MaxTensorRank]uint64
	strides [cudadrv.MaxTensorRank - 1]uint64
	box     [cudadrv.MaxTensorRank]uint32
	steps   [cudadrv.MaxTensorRank]uint32
	result  [len(cudadrv.EncodedTensorMap{}) + tensorMapAlignment]byte
}

const (
	tensorMapAlignment = 64
	noInterleave       = 0 // CU_TENSOR_MAP_INTERLEAVE_NONE
	promotion256       = 3 // CU_TENSOR_MAP_L2_PROMOTION_L2_256B
	zerosOutside       = 0 // CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE
)

// TensorMapEncodeTiled calls cuTensorMapEncodeTiled.
func (d *device) TensorMapEncodeTiled(t cudadrv.TensorMap) (cudadrv.EncodedTensorMap, error) {
	const c = call.TensorMapEncodeTiled
	f, err := d.enterFeature(c, cudadrv.BulkTensors)
	if err != nil {
		return cudadrv.EncodedTensorMap{}, err
	}
	defer d.gate.leave(f)
	if !t.Valid() {
		return cudadrv.EncodedTensorMap{}, refuse(c, cudadrv.InvalidValue, "%+v", t)
	}
	x := &tensorArguments{}
	for n := range t.Rank {
		x.dims[n], x.box[n], x.steps[n] = uint64(t.Dims[n]), uint32(t.Box[n]), 1 //nolint:gosec // valid
		if n > 0 {
			x.strides[n-1] = uint64(t.Strides[n-1]) //nolint:gosec // valid
		}
	}
	f.hold(unsafe.Pointer(x))
	skip := -uintptr(unsafe.Pointer(&x.result)) % tensorMapAlignment
	f.args = [mostArgs]uintptr{
		uintptr(unsafe.Pointer(&x.result)) + skip, uintptr(t.Type), uintptr(t.Rank), uintptr(t.Ptr), uintptr(unsafe.Pointer(&x.dims)),
		uintptr(unsafe.Pointer(&x.strides)), uintptr(unsafe.Pointer(&x.box)), uintptr(unsafe.Pointer(&x.steps)),
		noInterleave, uintptr(t.Swizzle), promotion256, zerosOutside,
	}
	if r := d.outside(inContext, c, f, 12); r != cudadrv.Success {
		return cudadrv.EncodedTensorMap{}, d.failed(f, c, r, "%+v", t)
	}
	return cudadrv.EncodedTensorMap(x.result[skip:][:len(cudadrv.EncodedTensorMap{})]), nil
}
