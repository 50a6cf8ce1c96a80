package drivertest

import (
	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// Tensor maps are encoded without work for the device, each description in its own bytes, and a description beyond a limit is
// refused.
func testTensorMaps(b *bench) {
	m, ok := optional(b, cudadrv.BulkTensors, func(m cudadrv.TensorMaps) error {
		_, err := m.TensorMapEncodeTiled(cudadrv.TensorMap{})
		return err
	})
	if !ok {
		return
	}
	p := must(b.dev.MemAlloc(1 << 20))(b)
	whole := cudadrv.TensorMap{
		Ptr: p, Type: cudadrv.TensorBFloat16, Swizzle: cudadrv.Swizzle128, Rank: 3,
		Dims:    [cudadrv.MaxTensorRank]int64{200, 100, 3},
		Strides: [cudadrv.MaxTensorRank - 1]int64{416, 100 * 416},
		Box:     [cudadrv.MaxTensorRank]int32{64, 128, 1},
	}
	first := must(m.TensorMapEncodeTiled(whole))(b)
	assert.Equal(b, first, must(m.TensorMapEncodeTiled(whole))(b))
	for name, change := range map[string]func(t *cudadrv.TensorMap){
		"address":  func(t *cudadrv.TensorMap) { t.Ptr += cudadrv.TensorAlignment },
		"type":     func(t *cudadrv.TensorMap) { t.Type = cudadrv.TensorFloat16 },
		"order":    func(t *cudadrv.TensorMap) { t.Swizzle = cudadrv.SwizzleNone },
		"size":     func(t *cudadrv.TensorMap) { t.Dims[1]++ },
		"distance": func(t *cudadrv.TensorMap) { t.Strides[0] += cudadrv.TensorAlignment },
		"box":      func(t *cudadrv.TensorMap) { t.Box[1] = cudadrv.MaxTensorBox },
		"rank":     func(t *cudadrv.TensorMap) { t.Rank, t.Dims[2], t.Strides[1], t.Box[2] = 2, 0, 0, 0 },
	} {
		other := whole
		change(&other)
		assert.NotEqual(b, first, must(m.TensorMapEncodeTiled(other))(b), name)
	}
	for _, change := range []func(t *cudadrv.TensorMap){
		func(t *cudadrv.TensorMap) { t.Ptr += cudadrv.TensorAlignment / 2 },
		func(t *cudadrv.TensorMap) { t.Ptr = 0 },
		func(t *cudadrv.TensorMap) { t.Type = -1 },
		func(t *cudadrv.TensorMap) { t.Swizzle = 7 },
		func(t *cudadrv.TensorMap) { t.Rank = 0 },
		func(t *cudadrv.TensorMap) { t.Rank = cudadrv.MaxTensorRank + 1 },
		func(t *cudadrv.TensorMap) { t.Dims[2] = 0 },
		func(t *cudadrv.TensorMap) { t.Dims[0] = cudadrv.MaxTensorDim + 1 },
		func(t *cudadrv.TensorMap) { t.Strides[0]++ },
		func(t *cudadrv.TensorMap) { t.Strides[1] = cudadrv.MaxTensorStrideBytes },
		func(t *cudadrv.TensorMap) { t.Box[1] = cudadrv.MaxTensorBox + 1 },
		func(t *cudadrv.TensorMap) { t.Box[1] = 0 },
		func(t *cudadrv.TensorMap) { t.Box[0] = 4 },   // 8 bytes
		func(t *cudadrv.TensorMap) { t.Box[0] = 128 }, // longer than a line
	} {
		wrong := whole
		change(&wrong)
		_, err := m.TensorMapEncodeTiled(wrong)
		b.refused(err, "cuTensorMapEncodeTiled", cudadrv.InvalidValue)
	}
	b.ok(b.dev.MemFree(p))
}
