package ops

import (
	"errors"
	"math"

	"github.com/go-vram/vram/compute/tensor"
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

// RMSNormBackwardInto is RMSNormBackward into tensors. It makes a launch for dx, and two for dweight, which take temporary memory.
func (o Gradients) RMSNormBackwardInto(at tensor.Context, dx, dweight, grad, x, weight *tensor.Tensor, dims int, epsilon float64) error {
	along, err := lastAxes(x.Rank(), dims)
	steps := [...]step{{dweight, [3]*tensor.Tensor{grad, x}}, {dx, [3]*tensor.Tensor{grad, x, weight}}}
	var all order
	if err == nil {
		err = fitsLast(x, dims, weight, dweight)
	}
	if err == nil {
		all, err = ordered(steps[:]...)
	}
	if err != nil {
		return failed(opRMSNormBackward, err, given(dx, dweight), given(grad, x, weight)...)
	}
	k := key{axes: along, numbers: [4]uint64{math.Float64bits(epsilon)}}
	for _, i := range all.steps[:all.count] {
		if i == 0 {
			err = named(opRMSWeightBackward, o.rmsWeight(at, k, dweight, grad, x), []*tensor.Tensor{dweight}, grad, x)
		} else {
			err = o.normBackward(at, opRMSNormBackward, k, dx, grad, x, weight)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// rmsWeight is the gradient of an RMS norm's weight: it needs the factor of each row before it sums over the rows.
func (o Gradients) rmsWeight(at tensor.Context, k key, dweight, grad, x *tensor.Tensor) error {
	k.op = opRMSFactor
	rows, err := rowsOf(x.Layout(), k.axes)
	if err != nil {
		return err
	}
	return temporary(at, accumulator(x.Type()), rows, func(factor *tensor.Tensor) error {
		if err := o.set.into(at, k, factor, x); err != nil {
			return err
		}
		return o.set.summedInto(at, key{op: opRMSWeightBackward}, dweight, grad, x, factor)
	})
}
