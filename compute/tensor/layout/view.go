package layout

import (
	"fmt"
	"slices"
)

// Slice has the indices from one on, before another, of a dimension, step by step. A negative step goes down:
// Slice(0, 9, -1, -1) reverses ten. Errors: *ShapeError for a dimension that there is not, *IndexError.
func (l Layout) Slice(dim, from, to, step int) (Layout, error) {
	d, err := l.named("slice", dim)
	if err != nil {
		return Layout{}, err
	}
	n := l.shape[d]
	up := step > 0 && from >= 0 && from <= to && to <= n
	down := step < 0 && from < n && from >= to && to >= -1
	if !up && !down {
		return Layout{}, &IndexError{Op: "slice", Dim: d, First: from, Last: to, Step: step, Length: n}
	}
	var length int
	if up {
		length = ceil(to-from, step)
	} else {
		length = ceil(from-to, -max(step, -n-1))
	}
	if length == 0 {
		return l.resized(d, 0), nil
	}
	l.offset += from * l.strides[d]
	if length > 1 { // so step is within the dimension
		l.strides[d] *= step
	}
	return l.resized(d, length), nil
}

// ceil divides and rounds up, without overflow.
func ceil(n, by int) int {
	if n == 0 {
		return 0
	}
	return (n-1)/by + 1
}

// Narrow has so many indices of a dimension from one on.
func (l Layout) Narrow(dim, from, length int) (Layout, error) {
	d, err := l.named("narrow", dim)
	if err != nil {
		return Layout{}, err
	}
	if from < 0 || length < 0 || from > l.shape[d] || length > l.shape[d]-from {
		return Layout{}, &IndexError{Op: "narrow", Dim: d, First: from, Last: from + length, Step: 1, Length: l.shape[d]}
	}
	if length > 0 {
		l.offset += from * l.strides[d]
	}
	return l.resized(d, length), nil
}

// Index has one index of a dimension, which goes.
func (l Layout) Index(dim, at int) (Layout, error) {
	d, err := l.named("index", dim)
	if err != nil {
		return Layout{}, err
	}
	if at < 0 || at >= l.shape[d] {
		return Layout{}, &IndexError{Op: "index", Dim: d, First: at, Last: at, Length: l.shape[d]}
	}
	l.offset += at * l.strides[d]
	l = l.resized(d, 1)
	l.remove(d)
	return l, nil
}

// Permute orders the dimensions: the first of the view is the one that the first number names, and so on.
func (l Layout) Permute(dims ...int) (Layout, error) {
	if len(dims) != l.rank {
		return Layout{}, shapeError("permute", fmt.Sprintf("%d dimensions of %d are named", len(dims), l.rank), l.shape[:l.rank])
	}
	to := l
	var seen [MaxRank]bool
	for i, dim := range dims {
		d, err := l.named("permute", dim)
		if err != nil {
			return Layout{}, err
		}
		if seen[d] {
			return Layout{}, shapeError("permute", fmt.Sprintf("dimension %d is named twice", d), l.shape[:l.rank])
		}
		seen[d] = true
		to.shape[i], to.strides[i] = l.shape[d], l.strides[d]
	}
	return to, nil
}

// Transpose swaps two dimensions.
func (l Layout) Transpose(a, b int) (Layout, error) {
	i, err := l.named("transpose", a)
	if err != nil {
		return Layout{}, err
	}
	j, err := l.named("transpose", b)
	if err != nil {
		return Layout{}, err
	}
	l.shape[i], l.shape[j] = l.shape[j], l.shape[i]
	l.strides[i], l.strides[j] = l.strides[j], l.strides[i]
	return l, nil
}

// Squeeze removes dimensions of length 1: those that are named, or all of them if none is. Errors:
// *ShapeError for another length.
func (l Layout) Squeeze(dims ...int) (Layout, error) {
	var gone [MaxRank]bool
	for _, dim := range dims {
		d, err := l.named("squeeze", dim)
		if err != nil {
			return Layout{}, err
		}
		if l.shape[d] != 1 {
			return Layout{}, shapeError("squeeze", fmt.Sprintf("dimension %d has length %d", d, l.shape[d]), l.shape[:l.rank])
		}
		gone[d] = true
	}
	for d := l.rank - 1; d >= 0; d-- {
		if gone[d] || len(dims) == 0 && l.shape[d] == 1 {
			l.remove(d)
		}
	}
	return l, nil
}

// Unsqueeze puts a dimension of length 1 before another one, or at the end: -1 is there.
func (l Layout) Unsqueeze(dim int) (Layout, error) {
	if l.rank == MaxRank {
		return Layout{}, &ShapeError{Op: "unsqueeze", Shapes: clones(l.shape[:l.rank]), Err: ErrRank}
	}
	d := dim
	if d < 0 {
		d += l.rank + 1
	}
	if d < 0 || d > l.rank {
		return Layout{}, shapeError("unsqueeze", fmt.Sprintf("dimension %d of %d", dim, l.rank), l.shape[:l.rank])
	}
	copy(l.shape[d+1:], l.shape[d:l.rank])
	copy(l.strides[d+1:], l.strides[d:l.rank])
	l.shape[d] = 1
	l.rank++
	l.strides[d] = 1
	if d+1 < l.rank { // a contiguous layout stays contiguous
		if stride, ok := product(max(l.shape[d+1], 1), l.strides[d+1]); ok {
			l.strides[d] = stride
		}
	}
	return l, nil
}

// Broadcast repeats the elements along dimensions of length 1, and along new ones at the front, with a stride
// of 0. Errors: *ShapeError where a length is neither 1 nor the wanted one.
func (l Layout) Broadcast(shape ...int) (Layout, error) {
	to, err := Of(shape...)
	if err != nil {
		return Layout{}, err
	}
	lead := to.rank - l.rank
	if lead < 0 {
		return Layout{}, shapeError("broadcast", "fewer dimensions", l.shape[:l.rank], shape)
	}
	to.offset = l.offset
	for i := range to.rank {
		switch {
		case i < lead:
			to.strides[i] = 0
		case l.shape[i-lead] == to.shape[i]:
			to.strides[i] = l.strides[i-lead]
		case l.shape[i-lead] == 1:
			to.strides[i] = 0
		default:
			return Layout{}, shapeError("broadcast", "", l.shape[:l.rank], shape)
		}
	}
	return to, nil
}

// BroadcastShape returns the shape to which all of the shapes can be broadcast. Errors: *ShapeError.
func BroadcastShape(shapes ...[]int) ([]int, error) {
	rank := 0
	for _, s := range shapes {
		rank = max(rank, len(s))
	}
	if rank > MaxRank {
		return nil, &ShapeError{Op: "broadcast", Shapes: clones(shapes...), Err: ErrRank}
	}
	to := slices.Repeat([]int{1}, rank)
	for _, s := range shapes {
		at := to[rank-len(s):]
		for i, n := range s {
			switch {
			case at[i] == n || n == 1:
			case at[i] == 1:
				at[i] = n
			default:
				return nil, shapeError("broadcast", "", shapes...)
			}
		}
	}
	if _, err := Count(to...); err != nil {
		return nil, err
	}
	return to, nil
}

// Reshape has the same elements in row-major order with another shape, of which one length may be -1: it is
// computed. Errors: *ShapeError where the numbers of elements differ, *LayoutError where no strides do it.
func (l Layout) Reshape(shape ...int) (Layout, error) {
	to, err := l.completed(shape)
	if err != nil {
		return Layout{}, err
	}
	to.offset = l.offset
	if l.Contiguous() {
		return to, nil
	}
	// Both shapes are cut into the shortest pieces of equal products, from the end: within each piece the
	// elements of the view must have one distance.
	from := l.Coalesce()
	i, j := from.rank-1, to.rank-1
	for i >= 0 {
		left, stride := from.shape[i], from.strides[i]
		for left > 1 && j >= 0 {
			n := to.shape[j]
			if left%n != 0 {
				return Layout{}, &LayoutError{"reshape", l, slices.Clone(shape), "no strides make this view, a copy is needed"}
			}
			to.strides[j] = stride
			stride *= n
			left /= n
			j--
		}
		i--
	}
	for ; j >= 0; j-- { // lengths of 1 at the front
		to.strides[j] = to.strides[j+1] * to.shape[j+1]
	}
	return to, nil
}

// completed returns the contiguous layout of a shape whose length of -1 is computed.
func (l *Layout) completed(shape []int) (Layout, error) {
	if len(shape) > MaxRank {
		return Layout{}, &ShapeError{Op: "reshape", Shapes: clones(l.shape[:l.rank], shape), Err: ErrRank}
	}
	var all [MaxRank]int
	copy(all[:], shape)
	if open := slices.Index(shape, -1); open >= 0 {
		if slices.Contains(shape[open+1:], -1) {
			return Layout{}, shapeError("reshape", "-1 is there more than once", l.shape[:l.rank], shape)
		}
		all[open] = 1
		known, err := Count(all[:len(shape)]...)
		if err != nil {
			return Layout{}, err
		}
		if known == 0 || l.Len()%known != 0 {
			return Layout{}, shapeError("reshape", "no length fits in the place of -1", l.shape[:l.rank], shape)
		}
		all[open] = l.Len() / known
	}
	to, err := Of(all[:len(shape)]...)
	if err != nil {
		return Layout{}, err
	}
	if to.Len() != l.Len() {
		return Layout{}, shapeError("reshape", "the numbers of elements differ", l.shape[:l.rank], shape)
	}
	return to, nil
}

// Flatten merges the dimensions from the first to the last one. Errors: as Reshape.
func (l Layout) Flatten(first, last int) (Layout, error) {
	if l.rank == 0 {
		return l.Reshape(1)
	}
	from, err := l.named("flatten", first)
	if err != nil {
		return Layout{}, err
	}
	to, err := l.named("flatten", last)
	if err != nil {
		return Layout{}, err
	}
	if from > to {
		return Layout{}, shapeError("flatten", fmt.Sprintf("dimension %d is not before %d", from, to), l.shape[:l.rank])
	}
	length := 1
	for _, n := range l.shape[from : to+1] {
		length *= n
	}
	var shape [MaxRank]int
	copy(shape[:], l.shape[:from])
	shape[from] = length
	copy(shape[from+1:], l.shape[to+1:l.rank])
	return l.Reshape(shape[:l.rank-(to-from)]...)
}

// named returns a dimension that exists, counted from the front.
func (l *Layout) named(op string, dim int) (int, error) {
	d, ok := l.dim(dim)
	if !ok {
		return 0, shapeError(op, fmt.Sprintf("dimension %d of %d", dim, l.rank), l.shape[:l.rank])
	}
	return d, nil
}

// resized has another length in a dimension.
func (l Layout) resized(dim, length int) Layout {
	l.shape[dim] = length
	l.count = 0
	count := 1
	for _, n := range l.shape[:l.rank] {
		count *= n
	}
	l.count = count - 1
	return l
}

// remove takes a dimension of length 1 out.
func (l *Layout) remove(dim int) {
	copy(l.shape[dim:], l.shape[dim+1:l.rank])
	copy(l.strides[dim:], l.strides[dim+1:l.rank])
	l.rank--
	l.shape[l.rank], l.strides[l.rank] = 0, 0
}
