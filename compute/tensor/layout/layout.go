package layout

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
)

// MaxRank is how many dimensions a layout may have. More would make each layout longer, which is a value that
// is copied; 8 are enough for a batch of volumes with split channels, and for each tensor of the usual
// models.
const MaxRank = 8

// Layout is a shape with strides and an offset. The zero value is the layout of a scalar: no dimensions, one element. Beyond
// the rank lengths and strides are 0, so that == compares layouts.
type Layout struct {
	shape   [MaxRank]int
	strides [MaxRank]int
	offset  int
	count   int // of elements minus 1, so that the zero value has one
	rank    int
}

// Of returns the contiguous layout of a shape. Errors: *ShapeError for a negative length, with ErrTooLarge or ErrRank.
func Of(shape ...int) (Layout, error) {
	var l Layout
	count, err := Count(shape...)
	if err != nil {
		return Layout{}, err
	}
	l.rank, l.count = len(shape), count-1
	copy(l.shape[:], shape)
	l.strides = rowMajor(l.shape, l.rank)
	return l, nil
}

// New returns a layout of any strides. Errors: as Of, *ShapeError where shape and strides differ in length or a place is
// negative.
func New(shape, strides []int, offset int) (Layout, error) {
	l, err := Of(shape...)
	if err != nil {
		return Layout{}, err
	}
	if len(strides) != len(shape) {
		return Layout{}, shapeError("strides", "they differ in length", shape, strides)
	}
	copy(l.strides[:], strides)
	l.offset = offset
	if low, ok := l.reach(); !ok {
		return Layout{}, &ShapeError{Op: "strides", Shapes: clones(shape, strides), Err: ErrTooLarge}
	} else if low < 0 || offset < 0 {
		return Layout{}, shapeError("strides", fmt.Sprintf("from the offset %d on they lead to place %d", offset, min(low, offset)), shape, strides)
	}
	return l, nil
}

// reach returns the lowest place, and whether all places fit in an int.
func (l *Layout) reach() (low int, ok bool) {
	low, high := l.offset, l.offset
	for i := range l.rank {
		span, fits := product(max(l.shape[i]-1, 0), l.strides[i])
		if !fits {
			return 0, false
		}
		to := &high
		if span < 0 {
			to = &low
		}
		sum := *to + span
		if (span > 0) != (sum > *to) && span != 0 {
			return 0, false
		}
		*to = sum
	}
	return low, high < math.MaxInt // the number of places fits, too
}

// product multiplies a length by a stride.
func product(n, stride int) (int, bool) {
	if stride == math.MinInt {
		return 0, n == 0
	}
	hi, lo := bits.Mul64(uint64(n), uint64(max(stride, -stride))) //nolint:gosec // both are not negative
	if hi != 0 || lo > math.MaxInt {
		return 0, false
	}
	if stride < 0 {
		return -int(lo), true //nolint:gosec // it was compared with the largest int
	}
	return int(lo), true //nolint:gosec // likewise
}

// Count returns the number of elements of a shape: 1 without dimensions. Errors: as Of.
func Count(shape ...int) (int, error) {
	if len(shape) > MaxRank {
		return 0, &ShapeError{Op: "shape", Shapes: clones(shape), Err: ErrRank}
	}
	count, empty := 1, false
	for _, n := range shape {
		if n < 0 {
			return 0, shapeError("shape", "a negative length", shape)
		}
		if n == 0 {
			empty = true
			continue // the other lengths must fit all the same: strides are made of them
		}
		next, ok := product(count, n)
		if !ok {
			return 0, &ShapeError{Op: "shape", Shapes: clones(shape), Err: ErrTooLarge}
		}
		count = next
	}
	if empty {
		return 0, nil
	}
	return count, nil
}

// rowMajor returns the strides of a contiguous layout. A length of 0 counts as 1 in them.
func rowMajor(shape [MaxRank]int, rank int) (strides [MaxRank]int) {
	next := 1
	for i := rank - 1; i >= 0; i-- {
		strides[i] = next
		next *= max(shape[i], 1)
	}
	return strides
}

// Rank returns the number of dimensions.
func (l Layout) Rank() int { return l.rank }

// Len returns the number of elements.
func (l Layout) Len() int { return l.count + 1 }

// Offset returns the place of the element at index (0, …, 0).
func (l Layout) Offset() int { return l.offset }

// Shape has the length of each dimension. The slice is the caller's.
func (l Layout) Shape() []int { return slices.Clone(l.shape[:l.rank]) }

// AppendShape appends the length of each dimension to a slice: to memory of the caller's.
func (l Layout) AppendShape(to []int) []int { return append(to, l.shape[:l.rank]...) }

// Strides has the stride of each dimension. The slice is the caller's.
func (l Layout) Strides() []int { return slices.Clone(l.strides[:l.rank]) }

// Dim returns the length of a dimension, and 0 for one that the layout does not have. -1 is the last one.
func (l Layout) Dim(dim int) int {
	if dim, ok := l.dim(dim); ok {
		return l.shape[dim]
	}
	return 0
}

// Stride returns the stride of a dimension, and 0 for one that the layout does not have.
func (l Layout) Stride(dim int) int {
	if dim, ok := l.dim(dim); ok {
		return l.strides[dim]
	}
	return 0
}

// dim returns a dimension that may be counted from the end.
func (l *Layout) dim(dim int) (int, bool) {
	if dim < 0 {
		dim += l.rank
	}
	return dim, dim >= 0 && dim < l.rank
}

// SameShape reports whether two layouts have the same lengths.
func SameShape(a, b Layout) bool { return a.rank == b.rank && a.shape == b.shape }

// Contiguous reports whether the elements lie in row-major order without a gap. So do no elements, and one.
func (l Layout) Contiguous() bool {
	if l.Len() <= 1 {
		return true
	}
	next := 1
	for i := l.rank - 1; i >= 0; i-- {
		if l.shape[i] != 1 && l.strides[i] != next {
			return false
		}
		next *= l.shape[i]
	}
	return true
}

// Bounds returns the places of the layout: from the first on, before the end. Without elements both are the offset.
func (l Layout) Bounds() (first, end int) {
	first, end = l.offset, l.offset
	if l.Len() == 0 {
		return first, end
	}
	for i := range l.rank {
		if span := (l.shape[i] - 1) * l.strides[i]; span < 0 {
			first += span
		} else {
			end += span
		}
	}
	return first, end + 1
}

// At returns the place of the element at an index. Errors: *ShapeError for another number of indices, *IndexError.
func (l Layout) At(index ...int) (int, error) {
	if len(index) != l.rank {
		return 0, shapeError("index", fmt.Sprintf("it has %d dimensions", l.rank), index)
	}
	place := l.offset
	for i, at := range index {
		if at < 0 || at >= l.shape[i] {
			return 0, &IndexError{Op: "index", Dim: i, First: at, Last: at, Length: l.shape[i]}
		}
		place += at * l.strides[i]
	}
	return place, nil
}

// Places yields the places of all elements in row-major order.
func (l Layout) Places() iter.Seq[int] {
	return func(yield func(int) bool) {
		if l.Len() == 0 {
			return
		}
		var index [MaxRank]int
		place := l.offset
		for {
			if !yield(place) {
				return
			}
			i := l.rank - 1
			for ; i >= 0; i-- {
				index[i]++
				place += l.strides[i]
				if index[i] < l.shape[i] {
					break
				}
				place -= index[i] * l.strides[i]
				index[i] = 0
			}
			if i < 0 {
				return
			}
		}
	}
}

// String returns the shape, and strides and offset unless the layout is contiguous from 0 on.
func (l Layout) String() string {
	if l.Contiguous() && l.offset == 0 {
		return fmt.Sprint(l.shape[:l.rank])
	}
	return fmt.Sprintf("%v strides %v offset %d", l.shape[:l.rank], l.strides[:l.rank], l.offset)
}

// shapeError is the error of shapes, which are copied.
func shapeError(op, detail string, shapes ...[]int) error {
	return &ShapeError{Op: op, Shapes: clones(shapes...), Detail: detail}
}

func clones(shapes ...[]int) [][]int {
	all := make([][]int, len(shapes))
	for i, s := range shapes {
		all[i] = slices.Clone(s)
	}
	return all
}
