package safetensors

import (
	"fmt"
	"math/bits"
	"slices"
)

// Entry describes a tensor of a file.
type Entry struct {
	Name  string
	Type  Type
	Shape []int64 // length of each dimension; none: a scalar

	begin, end int64 // range of its bytes in the data
}

// Elements returns the number of elements.
func (e Entry) Elements() int64 { return e.Bytes() / max(1, e.Type.Size()) }

// Bytes returns the number of bytes.
func (e Entry) Bytes() int64 { return e.end - e.begin }

// sizeOf returns the bytes of a tensor. The reason is empty if it has a size.
func sizeOf(t Type, shape []int64) (bytes int64, reason string) {
	if !t.Valid() {
		return 0, fmt.Sprintf("%v is not a type of the format", t)
	}
	if i := slices.IndexFunc(shape, func(n int64) bool { return n < 0 }); i >= 0 {
		return 0, fmt.Sprintf("dimension %d has the length %d", i, shape[i])
	}
	if slices.Contains(shape, 0) {
		return 0, ""
	}
	size := uint64(t.Size()) //nolint:gosec // at most 8
	for _, n := range shape {
		high, low := bits.Mul64(size, uint64(n)) //nolint:gosec // not negative
		if high != 0 || low > 1<<63-1 {
			return 0, fmt.Sprintf("the size of %v %v overflows", t, shape)
		}
		size = low
	}
	return int64(size), "" //nolint:gosec // at most 2^63-1
}
