// Package layout computes with the layouts of tensors: shape, strides and offset. It is pure: it knows no
// memory, no device, and imports nothing of this module.
//
// # Words
//
// The shape has the length of each dimension. The stride of a dimension is the distance of two neighbours in
// it, in elements: 0 in a dimension that was broadcast, negative in one that was reversed. The offset is the
// place of the element at index (0, …, 0). A place is a position in the storage, counted in elements. A
// layout is contiguous if its elements lie in row-major order without a gap; the last index is then the
// fastest.
//
// # Views
//
// Slice, Index, Narrow, Permute, Transpose, Broadcast, Squeeze, Unsqueeze, Reshape and Flatten compute the
// layout of a view: the same storage, other indices. Reshape and Flatten refuse with a *LayoutError where no
// strides do it: a copy is needed then. A dimension may be counted from the end: -1 is the last one. Indices
// are not: they are from 0 to the length.
//
// # Values
//
// A Layout is a value. Two layouts are the same if == says so; a Layout can be the key of a map. No method
// changes it, and any goroutine may call anything at any time. No method but Shape and Strides allocates
// where it succeeds. The number of dimensions is at most MaxRank, the number of elements at most the largest
// int.
package layout
