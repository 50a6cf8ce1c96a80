package ops

import (
	"errors"
	"math"

	"github.com/go-vram/vram/compute/tensor"
)

// Gradients go back through operations: of the gradient of a result they make those of the operands. Those have the types of the operands,
// and are summed over the axes along which these were broadcast. Into forms leave out an output that is nil.
type Gradients struct{ set *set }

// like makes a tensor for the gradient of another one.
func like(at tensor.Context, op operation, x *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := tensor.New(at, x.Type(), x.Shape()...)
	if err != nil {
		return nil, failed(op, err, nil, x)
	}
	return out, nil
}

// AddBackward are the gradients of the operands of Add. Of these only types and shapes are looked at.
func (o Gradients) AddBackward(at tensor.Context, grad, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opAddBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.AddBackwardInto(at, dx, dy, grad) })
}

// AddBackwardInto is AddBackward into tensors.
func (o Gradients) AddBackwardInto(at tensor.Context, dx, dy, grad *tensor.Tensor) error {
	steps := [...]step{{dx, [3]*tensor.Tensor{grad}}, {dy, [3]*tensor.Tensor{grad}}}
	all, err := ordered(steps[:]...)
	if err != nil {
		return failed(opAddBackward, err, given(dx, dy), grad)
	}
	for _, i := range all.steps[:all.count] {
		if err := o.set.summedInto(at, key{op: opSum}, steps[i].out, grad); err != nil {
			return renamed(opAddBackward, err)
		}
	}
	return nil
}

// MulBackward are the gradients of the operands of Mul: grad*y and grad*x.
func (o Gradients) MulBackward(at tensor.Context, grad, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opMulBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.MulBackwardInto(at, dx, dy, grad, x, y) })
}

// MulBackwardInto is MulBackward into tensors.
func (o Gradients) MulBackwardInto(at tensor.Context, dx, dy, grad, x, y *tensor.Tensor) error {
	steps := [...]step{{dx, [3]*tensor.Tensor{grad, y}}, {dy, [3]*tensor.Tensor{grad, x}}}
	all, err := ordered(steps[:]...)
	if err != nil {
		return failed(opMulBackward, err, given(dx, dy), grad, x, y)
	}
	for _, i := range all.steps[:all.count] {
		s := &steps[i]
		if err := o.set.summedInto(at, key{op: opMulBackward}, s.out, s.reads[0], s.reads[1]); err != nil {
			return err
		}
	}
	return nil
}

// both makes two gradients.
func both(at tensor.Context, op operation, x, y *tensor.Tensor, f func(dx, dy *tensor.Tensor) error) (dx, dy *tensor.Tensor, err error) {
	if dx, err = like(at, op, x); err == nil {
		if dy, err = like(at, op, y); err == nil {
			err = f(dx, dy)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, free(dx, dy))
	}
	return dx, dy, nil
}

func (s *set) back(at tensor.Context, op operation, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := like(at, op, x)
	if err != nil {
		return nil, err
	}
	return finished(out, s.into(at, key{op: op}, out, grad, x))
}

// ReluBackward is the gradient of the operand x of Relu: that of the result, and 0 where x is not greater than 0.
func (o Gradients) ReluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opReluBackward, grad, x)
}

// ReluBackwardInto is ReluBackward into a tensor.
func (o Gradients) ReluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opReluBackward}, dx, grad, x)
}

// GeluBackward is the gradient of the operand x of Gelu.
func (o Gradients) GeluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opGeluBackward, grad, x)
}

// GeluBackwardInto is GeluBackward into a tensor.
func (o Gradients) GeluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opGeluBackward}, dx, grad, x)
}

// GeluTanhBackward is the gradient of the operand x of GeluTanh.
func (o Gradients) GeluTanhBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opGeluTanhBackward, grad, x)
}

// GeluTanhBackwardInto is GeluTanhBackward into a tensor.
func (o Gradients) GeluTanhBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opGeluTanhBackward}, dx, grad, x)
}

// SoftmaxBackward is the gradient of the operand of Softmax, of its result y.
func (o Gradients) SoftmaxBackward(at tensor.Context, grad, y *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	out, err := like(at, opSoftmaxBackward, y)
	if err != nil {
		return nil, err
	}
	return finished(out, o.SoftmaxBackwardInto(at, out, grad, y, axis))
}

// SoftmaxBackwardInto is SoftmaxBackward into a tensor.
func (o Gradients) SoftmaxBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor, axis int) error {
	along, err := axesOf(dx.Rank(), axis)
	if err != nil {
		return failed(opSoftmaxBackward, err, []*tensor.Tensor{dx}, grad, y)
	}
	return o.set.into(at, key{op: opSoftmaxBackward, axes: along}, dx, grad, y)
}

// CrossEntropyBackward is the gradient of the logits of CrossEntropy with the same options. grad has one element for each row.
func (o Gradients) CrossEntropyBackward(
	at tensor.Context, grad, logits, targets *tensor.Tensor, options ...LossOption,
) (*tensor.Tensor, error) {
	out, err := like(at, opCrossEntropyBackward, logits)
	if err != nil {
		return nil, err
	}
	return finished(out, o.CrossEntropyBackwardInto(at, out, grad, logits, targets, options...))
}

// CrossEntropyBackwardInto is CrossEntropyBackward into a tensor. It makes two launches.
func (o Gradients) CrossEntropyBackwardInto(
	at tensor.Context, dlogits, grad, logits, targets *tensor.Tensor, options ...LossOption,
) error {
	if grad.Rank() != logits.Rank()-1 {
		return failed(opCrossEntropyBackward, ErrShape, []*tensor.Tensor{dlogits}, grad, logits, targets)
	}
	column, err := grad.Layout().Unsqueeze(-1)
	if err == nil {
		k := lossKey(opCrossEntropyBackward, options)
		err = viewed(grad, column, func(column *tensor.Tensor) error { return o.set.classes(at, k, dlogits, targets, column, logits) })
	}
	return named(opCrossEntropyBackward, err, []*tensor.Tensor{dlogits}, grad, logits, targets)
}

// GatherBackward is the gradient of the operand x of Gather. Of x only type and shape are looked at.
func (o Gradients) GatherBackward(at tensor.Context, grad, x, indices *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	out, err := like(at, opGatherBackward, x)
	if err != nil {
		return nil, err
	}
	return finished(out, o.GatherBackwardInto(at, out, grad, indices, axis))
}

// GatherBackwardInto is GatherBackward into a tensor: ScatterAddInto after a launch that writes zeros.
func (o Gradients) GatherBackwardInto(at tensor.Context, dx, grad, indices *tensor.Tensor, axis int) error {
	return o.set.scatterAdd(at, opGatherBackward, true, dx, indices, grad, axis)
}

// LayerNormBackward are the gradients of the operands of LayerNorm. Without a weight dweight and dbias are those of a weight of ones and
// a bias of zeros.
func (o Gradients) LayerNormBackward(at tensor.Context, grad, x, weight *tensor.Tensor, dims int, epsilon float64) (dx, dweight, dbias *tensor.Tensor, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, free(dx, dweight, dbias))
			dx, dweight, dbias = nil, nil, nil
		}
	}()
	if _, err = lastAxes(x.Rank(), dims); err != nil {
		return nil, nil, nil, failed(opLayerNormBackward, err, nil, grad, x)
	}
	if dx, err = like(at, opLayerNormBackward, x); err != nil {
		return dx, dweight, dbias, err
	}
	last, of := x.Shape()[x.Rank()-dims:], x.Type()
	if weight != nil {
		of = weight.Type()
	}
	for _, d := range []**tensor.Tensor{&dweight, &dbias} {
		if *d, err = tensor.New(at, of, last...); err != nil {
			return dx, dweight, dbias, failed(opLayerNormBackward, err, nil, grad, x)
		}
	}
	err = o.LayerNormBackwardInto(at, dx, dweight, dbias, grad, x, weight, dims, epsilon)
	return dx, dweight, dbias, err
}

// LayerNormBackwardInto is LayerNormBackward into tensors. It makes a launch for each output, and one more for dweight, which takes temporary
// memory.
func (o Gradients) LayerNormBackwardInto(
	at tensor.Context, dx, dweight, dbias, grad, x, weight *tensor.Tensor, dims int, epsilon float64,
) error {
	along, err := lastAxes(x.Rank(), dims)
	steps := [...]step{
		{dweight, [3]*tensor.Tensor{grad, x}}, {dbias, [3]*tensor.Tensor{grad}}, {dx, [3]*tensor.Tensor{grad, x, weight}},
	}
	var all order
	if err == nil {
		err = fitsLast(x, dims, weight, dweight, dbias)
	}
	if err == nil {
		all, err = ordered(steps[:]...)
	}
	if err != nil {
		return failed(opLayerNormBackward, err, given(dx, dweight, dbias), given(grad, x, weight)...)
	}
	k := key{axes: along, numbers: [4]uint64{math.Float64bits(epsilon)}}
	for _, i := range all.steps[:all.count] {
		switch steps[i].out {
		case dweight:
			err = named(opWeightBackward, o.weight(at, k, dweight, grad, x), []*tensor.Tensor{dweight}, grad, x)
		case dbias:
			err = renamed(opLayerNormBackward, o.set.summedInto(at, key{op: opSum}, dbias, grad))
		default:
			err = o.normBackward(at, opLayerNormBackward, k, dx, grad, x, weight)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// normBackward is the gradient of the operand of a norm.
func (o Gradients) normBackward(at tensor.Context, op operation, k key, dx, grad, x, weight *tensor.Tensor) error {
	k.op = op
	if weight == nil {
		return o.set.into(at, k, dx, grad, x)
	}
	k.with = withWeight
	return o.set.into(at, k, dx, grad, x, weight)
}

// weight is the gradient of a layer norm's weight: it needs mean and deviation of each row before it sums over the rows.
func (o Gradients) weight(at tensor.Context, k key, dweight, grad, x *tensor.Tensor) error {
	k.op = opMoments
	rows, err := rowsOf(x.Layout(), k.axes)
	if err != nil {
		return err
	}
	of := accumulator(x.Type())
	return temporary(at, of, rows, func(mean *tensor.Tensor) error {
		return temporary(at, of, rows, func(factor *tensor.Tensor) error {
			if err := o.set.several(at, k, []*tensor.Tensor{mean, factor}, x); err != nil {
				return err
			}
			return o.set.summedInto(at, key{op: opWeightBackward}, dweight, grad, x, mean, factor)
		})
	})
}
