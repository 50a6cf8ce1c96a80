package ops

import (
	"errors"
	"math"

	"github.com/go-vram/vram/tensor"
)

// LogSoftmaxBackward is the gradient of the operand of LogSoftmax, of its result y.
func (o Gradients) LogSoftmaxBackward(at tensor.Context, grad, y *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	out, err := like(at, opLogSoftmaxBackward, y)
	if err != nil {
		return nil, err
	}
	return finished(out, o.LogSoftmaxBackwardInto(at, out, grad, y, axis))
}

// LogSoftmaxBackwardInto is LogSoftmaxBackward into a tensor.
func (o Gradients) LogSoftmaxBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor, axis int) error {
	along, err := axesOf(dx.Rank(), axis)
	if err != nil {
		return failed(opLogSoftmaxBackward, err, []*tensor.Tensor{dx}, grad, y)
	}
	return o.set.into(at, key{op: opLogSoftmaxBackward, axes: along}, dx, grad, y)
}

// RMSNormBackward are the gradients of the operands of RMSNorm. Without a weight dweight is that of a weight of ones.
func (o Gradients) RMSNormBackward(at tensor.Context, grad, x, weight *tensor.Tensor, dims int, epsilon float64) (dx, dweight *tensor.Tensor, err error) {
	if _, err := lastAxes(x.Rank(), dims); err != nil {
		return nil, nil, failed(opRMSNormBackward, err, nil, grad, x)
	}
	of := x.Type()
	if weight != nil {
		of = weight.Type()
	}
	if dx, err = like(at, opRMSNormBackward, x); err == nil {
		if dweight, err = tensor.New(at, of, x.Shape()[x.Rank()-dims:]...); err != nil {
			err = failed(opRMSNormBackward, err, nil, grad, x)
		} else {
			err = o.RMSNormBackwardInto(at, dx, dweight, grad, x, weight, dims, epsilon)
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, free(dx, dweight))
	}
	return dx, dweight, nil
}

// RMSNormBackwardInto is RMSNormBackward into tensors. It makes a launch for dx, and two for dweight, which take temporary memory. dx is
// written last: it may be grad or x.
func (o Gradients) RMSNormBackwardInto(at tensor.Context, dx, dweight, grad, x, weight *tensor.Tensor, dims int, epsilon float64) error {
	along, err := lastAxes(x.Rank(), dims)
	if err != nil {
		return failed(opRMSNormBackward, err, []*tensor.Tensor{dx}, grad, x)
	}
	k := key{op: opRMSFactor, axes: along, numbers: [4]uint64{math.Float64bits(epsilon)}}
	if dweight != nil {
		rows, err := rowsOf(x.Layout(), along)
		if err == nil {
			err = temporary(at, accumulator(x.Type()), rows, func(factor *tensor.Tensor) error {
				if err := o.set.into(at, k, factor, x); err != nil {
					return err
				}
				return o.set.summedInto(at, key{op: opRMSWeightBackward}, dweight, grad, x, factor)
			})
		}
		if err != nil {
			return named(opRMSWeightBackward, err, []*tensor.Tensor{dweight}, grad, x)
		}
	}
	if dx == nil {
		return nil
	}
	k.op = opRMSNormBackward
	if weight == nil {
		return o.set.into(at, k, dx, grad, x)
	}
	k.with = withWeight
	return o.set.into(at, k, dx, grad, x, weight)
}
