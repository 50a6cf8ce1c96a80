// Package boxes keeps encoded tensor maps, which describe the boxes that kernels copy in bulk.
//
// # Concurrency properties
//
// A Cache is safe for concurrent use, and takes no lock.
package boxes

import (
	"hash/maphash"
	"sync/atomic"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
)

// Cache keeps encoded tensor maps, which the driver makes in some hundred nanoseconds: each has one place, and replaces the one
// before it there. The zero Cache is empty.
type Cache [512]atomic.Pointer[tensorMap]

// tensorMap is a description with its argument for kernels.
type tensorMap struct {
	of  cudadrv.TensorMap
	arg cuda.Arg
}

var seed = maphash.MakeSeed() //nolint:gochecknoglobals // a constant of the process

// Arg returns the argument for a description. It allocates nothing for one that was used last in its place. Errors: those of
// cuda.Context.EncodeTensorMap.
func (c *Cache) Arg(on *cuda.Context, of *cudadrv.TensorMap) (cuda.Arg, error) {
	place := &c[maphash.Comparable(seed, *of)%uint64(len(c))]
	if m := place.Load(); m != nil && m.of == *of {
		return m.arg, nil
	}
	encoded, err := on.EncodeTensorMap(*of)
	if err != nil {
		return cuda.Arg{}, err
	}
	m := &tensorMap{*of, cuda.Value(encoded)}
	place.Store(m)
	return m.arg, nil
}
