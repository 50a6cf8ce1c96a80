package cudadrv_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/go-vram/vram/cudadrv"
)

// A description at each limit is valid, and one beyond it is not.
func TestLimitsOfTensorMaps(t *testing.T) {
	type change = func(m *cudadrv.TensorMap)
	base := func() *cudadrv.TensorMap {
		m := &cudadrv.TensorMap{Ptr: 4096, Type: cudadrv.TensorFloat32, Rank: 3}
		m.Dims, m.Strides, m.Box = [5]int64{64, 32, 16}, [4]int64{256, 8192}, [5]int32{8, 4, 2}
		return m
	}
	assert.True(t, base().Valid())
	assert.False(t, (*cudadrv.TensorMap)(nil).Valid())
	assert.False(t, new(cudadrv.TensorMap).Valid())
	for name, c := range map[string]struct{ valid, refused []change }{
		"address": {
			[]change{func(m *cudadrv.TensorMap) { m.Ptr = 16 }},
			[]change{func(m *cudadrv.TensorMap) { m.Ptr = 0 }, func(m *cudadrv.TensorMap) { m.Ptr = 8 }, func(m *cudadrv.TensorMap) { m.Ptr = 17 }},
		},
		"type": {
			[]change{
				func(m *cudadrv.TensorMap) { m.Type = cudadrv.TensorFloat16 }, func(m *cudadrv.TensorMap) { m.Type = cudadrv.TensorBFloat16 },
				func(m *cudadrv.TensorMap) { m.Type = cudadrv.TensorTFloat32 },
			},
			[]change{func(m *cudadrv.TensorMap) { m.Type = 0 }, func(m *cudadrv.TensorMap) { m.Type = 8 }, func(m *cudadrv.TensorMap) { m.Type = -1 }},
		},
		"rank": {
			[]change{
				func(m *cudadrv.TensorMap) {
					m.Rank, m.Dims, m.Box, m.Strides = 1, [5]int64{64}, [5]int32{8}, [4]int64{}
				},
				func(m *cudadrv.TensorMap) {
					m.Rank, m.Dims, m.Box = 5, [5]int64{64, 32, 16, 1, 1}, [5]int32{8, 4, 2, 1, 1}
				},
			},
			[]change{
				func(m *cudadrv.TensorMap) { m.Rank = 0 }, func(m *cudadrv.TensorMap) { m.Rank = 6 }, func(m *cudadrv.TensorMap) { m.Rank = -1 },
				func(m *cudadrv.TensorMap) { m.Rank = 2 }, func(m *cudadrv.TensorMap) { m.Rank = 4 },
			},
		},
		"entries beyond the rank": {
			nil,
			[]change{
				func(m *cudadrv.TensorMap) { m.Dims[3] = 1 }, func(m *cudadrv.TensorMap) { m.Box[4] = 1 }, func(m *cudadrv.TensorMap) { m.Strides[2] = 16 },
				func(m *cudadrv.TensorMap) {
					m.Rank, m.Dims, m.Box, m.Strides = 1, [5]int64{64}, [5]int32{8}, [4]int64{16}
				},
			},
		},
		"dimensions": {
			[]change{func(m *cudadrv.TensorMap) { m.Dims[1] = 1 }, func(m *cudadrv.TensorMap) { m.Dims[0] = cudadrv.MaxTensorDim }},
			[]change{func(m *cudadrv.TensorMap) { m.Dims[1] = 0 }, func(m *cudadrv.TensorMap) { m.Dims[0] = cudadrv.MaxTensorDim + 1 }},
		},
		"box": {
			[]change{func(m *cudadrv.TensorMap) { m.Box[1] = 1 }, func(m *cudadrv.TensorMap) { m.Box[2] = cudadrv.MaxTensorBox }},
			[]change{func(m *cudadrv.TensorMap) { m.Box[1] = 0 }, func(m *cudadrv.TensorMap) { m.Box[2] = cudadrv.MaxTensorBox + 1 }},
		},
		"strides": {
			[]change{func(m *cudadrv.TensorMap) { m.Strides[0] = 0 }, func(m *cudadrv.TensorMap) { m.Strides[1] = cudadrv.MaxTensorStrideBytes - 16 }},
			[]change{
				func(m *cudadrv.TensorMap) { m.Strides[0] = -16 }, func(m *cudadrv.TensorMap) { m.Strides[1] = cudadrv.MaxTensorStrideBytes },
				func(m *cudadrv.TensorMap) { m.Strides[0] = 8 }, func(m *cudadrv.TensorMap) { m.Strides[1] = 24 },
			},
		},
		"row of the box": {
			[]change{
				func(m *cudadrv.TensorMap) { m.Box[0] = 4 },
				func(m *cudadrv.TensorMap) { m.Swizzle, m.Box[0] = cudadrv.Swizzle32, 8 },
				func(m *cudadrv.TensorMap) { m.Swizzle, m.Box[0] = cudadrv.Swizzle64, 16 },
				func(m *cudadrv.TensorMap) { m.Swizzle, m.Box[0] = cudadrv.Swizzle128, 32 },
				func(m *cudadrv.TensorMap) { m.Type, m.Box[0] = cudadrv.TensorFloat16, 8 },
			},
			[]change{
				func(m *cudadrv.TensorMap) { m.Box[0] = 3 },
				func(m *cudadrv.TensorMap) { m.Swizzle, m.Box[0] = cudadrv.Swizzle32, 12 },
				func(m *cudadrv.TensorMap) { m.Swizzle, m.Box[0] = cudadrv.Swizzle64, 20 },
				func(m *cudadrv.TensorMap) { m.Swizzle, m.Box[0] = cudadrv.Swizzle128, 36 },
				func(m *cudadrv.TensorMap) { m.Type, m.Box[0] = cudadrv.TensorFloat16, 4 },
				func(m *cudadrv.TensorMap) { m.Swizzle = -1 }, func(m *cudadrv.TensorMap) { m.Swizzle = 4 },
			},
		},
	} {
		for i, f := range c.valid {
			m := base()
			f(m)
			assert.True(t, m.Valid(), "%s %d: %+v", name, i, *m)
		}
		for i, f := range c.refused {
			m := base()
			f(m)
			assert.False(t, m.Valid(), "%s %d: %+v", name, i, *m)
		}
	}
	for swizzle, bytes := range map[cudadrv.TensorSwizzle]int64{cudadrv.SwizzleNone: 0, cudadrv.Swizzle32: 32, cudadrv.Swizzle64: 64, cudadrv.Swizzle128: 128} {
		assert.Equal(t, bytes, swizzle.Bytes())
	}
}

// A value has no access, and a range that is read and written has two, in the order of the arguments.
func TestAccessesOfLibraryWork(t *testing.T) {
	w := cudadrv.LibraryWork{Arguments: []cudadrv.LibraryArgument{
		{Ptr: 16, Bytes: 1, Read: true}, {Value: []byte{1}}, {Ptr: 32, Bytes: 2, Write: true}, {Ptr: 48, Bytes: 3, Read: true, Write: true},
	}}
	assert.Equal(t, []cudadrv.Access{
		{Ptr: 16, Bytes: 1}, {Ptr: 32, Bytes: 2, Write: true}, {Ptr: 48, Bytes: 3}, {Ptr: 48, Bytes: 3, Write: true},
	}, w.Accesses())
	assert.Equal(t, []cudadrv.Access{}, cudadrv.LibraryWork{}.Accesses(), "none, which is not unknown")
}

// An observer is found through any number of drivers that wrap it.
func TestBufferObserverOfWrappedDrivers(t *testing.T) {
	observer := observing{}
	assert.Equal(t, observer, cudadrv.BufferObserverOf(observer))
	assert.Equal(t, observer, cudadrv.BufferObserverOf(wrapping{inner: wrapping{inner: observer}}))
	assert.Nil(t, cudadrv.BufferObserverOf(nil))
	assert.Nil(t, cudadrv.BufferObserverOf(wrapping{}))
	assert.Nil(t, cudadrv.BufferObserverOf(wrapping{inner: struct{ cudadrv.Driver }{}}))
}

type observing struct{ cudadrv.Driver }

func (observing) BufferAllocated(cudadrv.BufferEvent) {}
func (observing) BufferFreed(cudadrv.BufferEvent)     {}

type wrapping struct {
	cudadrv.Driver
	inner cudadrv.Driver
}

func (w wrapping) Unwrap() cudadrv.Driver { return w.inner }
