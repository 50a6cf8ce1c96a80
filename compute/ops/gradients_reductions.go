package ops

import (
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

type reductionGradients struct{ set *set }

// SumBackward returns the gradient of the operand x of Sum along the same axes, kept or not: each element has the gradient of
// its sum. It uses only the type and shape of x. Errors: ErrAxes, ErrShape.
func (o reductionGradients) SumBackward(at tensor.Context, grad, x *tensor.Tensor, axes ...int) (*tensor.Tensor, error) {
	return create(at, like(opSumBackward, x), func(dx *tensor.Tensor) error { return o.SumBackwardInto(at, dx, grad, axes...) })
}

// SumBackwardInto writes SumBackward to a tensor.
func (o reductionGradients) SumBackwardInto(at tensor.Context, dx, grad *tensor.Tensor, axes ...int) error {
	return o.set.reducedBack(at, opSumBackward, dx, grad, nil, axes)
}

// MeanBackward returns the gradient of the operand x of Mean along the same axes, kept or not: each element has the gradient of
// its mean, divided by the number of elements. It uses only the type and shape of x. Errors: ErrAxes, ErrShape.
func (o reductionGradients) MeanBackward(at tensor.Context, grad, x *tensor.Tensor, axes ...int) (*tensor.Tensor, error) {
	return create(at, like(opMeanBackward, x), func(dx *tensor.Tensor) error { return o.MeanBackwardInto(at, dx, grad, axes...) })
}

// MeanBackwardInto writes MeanBackward to a tensor. A fill writes the number of elements into temporary memory before the
// launch: a constant would compile a kernel for each number.
func (o reductionGradients) MeanBackwardInto(at tensor.Context, dx, grad *tensor.Tensor, axes ...int) error {
	return o.set.reducedBack(at, opMeanBackward, dx, grad, nil, axes)
}

// MaxBackward returns the gradient of the operand x of Max along the same axes, kept or not: the greatest elements of a row
// share the gradient evenly, as in PyTorch's amax, and the others have 0. A row with NaN has NaN. Errors: ErrAxes, ErrShape,
// ErrEmpty.
func (o reductionGradients) MaxBackward(at tensor.Context, grad, x *tensor.Tensor, axes ...int) (*tensor.Tensor, error) {
	return create(at, like(opMaxBackward, x), func(dx *tensor.Tensor) error { return o.MaxBackwardInto(at, dx, grad, x, axes...) })
}

// MaxBackwardInto writes MaxBackward to a tensor.
func (o reductionGradients) MaxBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor, axes ...int) error {
	return o.set.reducedBack(at, opMaxBackward, dx, grad, x, axes)
}

// MinBackward returns the gradient of the operand x of Min along the same axes: as MaxBackward, of the least elements. Errors:
// ErrAxes, ErrShape, ErrEmpty.
func (o reductionGradients) MinBackward(at tensor.Context, grad, x *tensor.Tensor, axes ...int) (*tensor.Tensor, error) {
	return create(at, like(opMinBackward, x), func(dx *tensor.Tensor) error { return o.MinBackwardInto(at, dx, grad, x, axes...) })
}

// MinBackwardInto writes MinBackward to a tensor.
func (o reductionGradients) MinBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor, axes ...int) error {
	return o.set.reducedBack(at, opMinBackward, dx, grad, x, axes)
}

// reducedBack computes the gradient of the operand of a reduction. x is nil if only its shape is needed: dx has the same.
func (s *set) reducedBack(at tensor.Context, op operation, dx, grad, x *tensor.Tensor, numbers []int) error {
	along, err := axesOf(dx.Rank(), numbers...)
	var rows layout.Layout
	switch {
	case !dx.Type().Valid() || !grad.Type().Valid():
		err = tensor.ErrNoTensor
	case err != nil:
	case x != nil && !layout.SameShape(x.Layout(), dx.Layout()):
		err = ErrShape
	case x != nil && reducedLen(x, along) == 0:
		err = ErrEmpty
	default:
		rows, err = restored(grad.Layout(), dx.Layout(), along)
	}
	if err == nil {
		err = viewed(grad, rows, func(rows *tensor.Tensor) error { return s.spread(at, op, dx, rows, x, along) })
	}
	if err == nil {
		return nil
	}
	return named(op, err, []*tensor.Tensor{dx}, given(grad, x)...)
}

// spread computes the gradient of the operand of a reduction from rows, the gradient of the result with length 1 along the
// axes.
func (s *set) spread(at tensor.Context, op operation, dx, rows, x *tensor.Tensor, along axes) error {
	switch {
	case op == opSumBackward:
		return s.into(at, key{op: op}, dx, rows)
	case op != opMeanBackward:
		return s.into(at, key{op: op, axes: along}, dx, rows, x)
	}
	one, err := layout.Of()
	if err != nil {
		return err
	}
	if err := (&step{dx, [4]*tensor.Tensor{rows}}).check(nil); err != nil {
		return err // before the fill
	}
	return temporary(at, accumulator(rows.Type()), one, func(number *tensor.Tensor) error {
		if err := (Makers{s}).FillInto(at, number, float64(reducedLen(dx, along))); err != nil {
			return err
		}
		return s.into(at, key{op: op}, dx, rows, number)
	})
}

// restored returns the layout of a reduction's result with length 1 in the dimensions of the operand that are reduced, which
// the result may lack. Errors: ErrShape.
func restored(result, operand layout.Layout, along axes) (layout.Layout, error) {
	rank := operand.Rank()
	lacks := result.Rank() < rank
	for d := range rank {
		n := operand.Dim(d)
		if along.has(d, rank) {
			if n = 1; lacks {
				var err error
				if d > result.Rank() {
					return result, ErrShape
				}
				if result, err = result.Unsqueeze(d); err != nil {
					return result, err
				}
			}
		}
		if d >= result.Rank() || result.Dim(d) != n {
			return result, ErrShape
		}
	}
	if result.Rank() != rank {
		return result, ErrShape
	}
	return result, nil
}
