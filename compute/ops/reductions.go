package ops

import (
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// Reductions make one element of those along some axes; without axes of all. Results lack the axes, or have them with length 1
// if they are kept. Into forms take an output of either shape.
type Reductions struct{ set *set }

// reduction returns the key of a reduction. Errors: ErrAxes, ErrEmpty.
func reduction(op operation, x *tensor.Tensor, numbers []int) (key, error) {
	along, err := axesOf(x.Rank(), numbers...)
	if err == nil && (op == opMax || op == opMin || op == opArgMax) && reducedLen(x, along) == 0 {
		err = ErrEmpty
	}
	return key{op: op, axes: along}, failed(op, err, nil, x)
}

// reducedLen returns the number of elements that one result reduces.
func reducedLen(x *tensor.Tensor, along axes) int {
	n, rank := 1, x.Rank()
	for d := range rank {
		if along.has(d, rank) {
			n *= x.Dim(d)
		}
	}
	return n
}

// without returns the shape of the result.
func without(shape []int, along axes, keep bool) []int {
	left := make([]int, 0, len(shape))
	for d, n := range shape {
		switch {
		case !along.has(d, len(shape)):
			left = append(left, n)
		case keep:
			left = append(left, 1)
		}
	}
	return left
}

// rowsOf returns the contiguous layout with one element for each row along some axes: with length 1 in these.
func rowsOf(l layout.Layout, along axes) (layout.Layout, error) {
	var lengths [layout.MaxRank]int
	shape := l.AppendShape(lengths[:0])
	for d := range shape {
		if along.has(d, len(shape)) {
			shape[d] = 1
		}
	}
	return layout.Of(shape...)
}

func (s *set) reduce(at tensor.Context, op operation, x *tensor.Tensor, keep bool, numbers []int) (*tensor.Tensor, error) {
	k, err := reduction(op, x, numbers)
	if err != nil {
		return nil, err
	}
	return s.made(at, k, without(x.Shape(), k.axes, keep), x)
}

func (s *set) reduceInto(at tensor.Context, op operation, out, x *tensor.Tensor, numbers []int) error {
	k, err := reduction(op, x, numbers)
	if err != nil {
		return err
	}
	return s.into(at, k, out, x)
}

// Sum returns the sum: int64 of integers and bools, 0 of no elements.
func (o Reductions) Sum(at tensor.Context, x *tensor.Tensor, keep bool, axes ...int) (*tensor.Tensor, error) {
	return o.set.reduce(at, opSum, x, keep, axes)
}

// SumInto writes Sum to a tensor.
func (o Reductions) SumInto(at tensor.Context, out, x *tensor.Tensor, axes ...int) error {
	return o.set.reduceInto(at, opSum, out, x, axes)
}

// Mean returns the mean, in float32 of integers, and NaN of no elements.
func (o Reductions) Mean(at tensor.Context, x *tensor.Tensor, keep bool, axes ...int) (*tensor.Tensor, error) {
	return o.set.reduce(at, opMean, x, keep, axes)
}

// MeanInto writes Mean to a tensor.
func (o Reductions) MeanInto(at tensor.Context, out, x *tensor.Tensor, axes ...int) error {
	return o.set.reduceInto(at, opMean, out, x, axes)
}

// Max returns the greatest element; NaN is greater than all. Errors: ErrEmpty.
func (o Reductions) Max(at tensor.Context, x *tensor.Tensor, keep bool, axes ...int) (*tensor.Tensor, error) {
	return o.set.reduce(at, opMax, x, keep, axes)
}

// MaxInto writes Max to a tensor.
func (o Reductions) MaxInto(at tensor.Context, out, x *tensor.Tensor, axes ...int) error {
	return o.set.reduceInto(at, opMax, out, x, axes)
}

// Min returns the least element; NaN is less than all. Errors: ErrEmpty.
func (o Reductions) Min(at tensor.Context, x *tensor.Tensor, keep bool, axes ...int) (*tensor.Tensor, error) {
	return o.set.reduce(at, opMin, x, keep, axes)
}

// MinInto writes Min to a tensor.
func (o Reductions) MinInto(at tensor.Context, out, x *tensor.Tensor, axes ...int) error {
	return o.set.reduceInto(at, opMin, out, x, axes)
}

// ArgMax returns the index of the greatest element, of the first one of several, as int64: in row-major order of the axes.
// Errors: ErrEmpty.
func (o Reductions) ArgMax(at tensor.Context, x *tensor.Tensor, keep bool, axes ...int) (*tensor.Tensor, error) {
	return o.set.reduce(at, opArgMax, x, keep, axes)
}

// ArgMaxInto writes ArgMax to a tensor.
func (o Reductions) ArgMaxInto(at tensor.Context, out, x *tensor.Tensor, axes ...int) error {
	return o.set.reduceInto(at, opArgMax, out, x, axes)
}

// SumTo sums over the axes along which shape would be broadcast to the shape of x: the gradient of a broadcast. The result has
// the type of x, so SumTo refuses bools, whose sum is int64: cast them first. Errors: ErrShape, *tensor.TypeError.
func (o Reductions) SumTo(at tensor.Context, x *tensor.Tensor, shape ...int) (*tensor.Tensor, error) {
	return create(at, sized(opSumTo, x.Type(), shape, x), func(out *tensor.Tensor) error { return o.SumToInto(at, out, x) })
}

// SumToInto writes SumTo to a tensor, which has the shape.
func (o Reductions) SumToInto(at tensor.Context, out, x *tensor.Tensor) error {
	return renamed(opSumTo, o.set.summedInto(at, key{op: opSum}, out, x))
}

// summedInto runs an operation that sums over the axes along which the output is broadcast to the shape of the first operand.
func (s *set) summedInto(at tensor.Context, k key, out *tensor.Tensor, inputs ...*tensor.Tensor) error {
	along, to, err := broadcastAxes(out.Layout(), inputs[0].Layout())
	if err != nil {
		return failed(k.op, err, []*tensor.Tensor{out}, inputs...)
	}
	if k.axes = along; along == 0 && k.op == opSum {
		k.op = opCopy
	}
	if to.Rank() == out.Rank() {
		return s.into(at, k, out, inputs...)
	}
	err = viewed(out, to, func(out *tensor.Tensor) error { return s.into(at, k, out, inputs...) })
	return named(k.op, err, []*tensor.Tensor{out}, inputs...)
}

// broadcastAxes returns the axes along which a layout is broadcast to the shape of another one, and the layout with as many
// dimensions. Errors: ErrShape.
func broadcastAxes(out, shape layout.Layout) (along axes, to layout.Layout, err error) {
	rank := shape.Rank()
	for to = out; to.Rank() < rank; {
		if to, err = to.Unsqueeze(0); err != nil {
			return 0, to, err
		}
	}
	if to.Rank() != rank {
		return 0, to, ErrShape
	}
	for d := range rank {
		switch {
		case to.Dim(d) == shape.Dim(d):
		case to.Dim(d) == 1:
			along |= 1 << (rank - 1 - d)
		default:
			return 0, to, ErrShape
		}
	}
	return along, to, nil
}
