package ops

import (
	"math"

	"github.com/go-vram/vram/compute/tensor"
)

type rowGradients struct{ set *set }

// SoftmaxBackward returns the gradient of the operand of Softmax, of its result y.
func (o rowGradients) SoftmaxBackward(at tensor.Context, grad, y *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	return create(at, like(opSoftmaxBackward, y), func(dx *tensor.Tensor) error { return o.SoftmaxBackwardInto(at, dx, grad, y, axis) })
}

// SoftmaxBackwardInto writes SoftmaxBackward to a tensor.
func (o rowGradients) SoftmaxBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor, axis int) error {
	return o.set.alongInto(at, opSoftmaxBackward, axis, dx, grad, y)
}

// CrossEntropyBackward returns the gradient of the logits of CrossEntropy with the same options. grad has one element for each
// row.
func (o rowGradients) CrossEntropyBackward(
	at tensor.Context, grad, logits, targets *tensor.Tensor, options ...LossOption,
) (*tensor.Tensor, error) {
	return create(at, like(opCrossEntropyBackward, logits), func(dx *tensor.Tensor) error {
		return o.CrossEntropyBackwardInto(at, dx, grad, logits, targets, options...)
	})
}

// CrossEntropyBackwardInto writes CrossEntropyBackward to a tensor. It makes two launches.
func (o rowGradients) CrossEntropyBackwardInto(
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

// LayerNormBackward returns the gradients of the operands of LayerNorm. Without a weight, dweight and dbias belong to a weight
// of ones and a bias of zeros.
func (o rowGradients) LayerNormBackward(at tensor.Context, grad, x, weight *tensor.Tensor, dims int, epsilon float64) (dx, dweight, dbias *tensor.Tensor, err error) {
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error {
		return o.LayerNormBackwardInto(at, all[0], all[1], all[2], grad, x, weight, dims, epsilon)
	}, normOutputs(opLayerNormBackward, 3, grad, x, weight, dims)...)
	return all[0], all[1], all[2], err
}

// normOutputs describes the gradients of the operands of a norm: of x, of the weight, and of the bias if count is 3.
func normOutputs(op operation, count int, grad, x, weight *tensor.Tensor, dims int) []output {
	if _, err := lastAxes(x.Rank(), dims); err != nil {
		refused := sized(op, 0, nil, grad, x)
		refused.err = err
		return []output{refused}
	}
	of := x.Type()
	if weight != nil {
		of = weight.Type()
	}
	last := sized(op, of, x.Shape()[x.Rank()-dims:], grad, x)
	return []output{like(op, x), last, last}[:count]
}

// LayerNormBackwardInto writes LayerNormBackward to tensors. For dx with any other gradient it makes two launches, of which the
// first one reads each row once, if the rows are contiguous, aligned to 16 bytes, of one type of at most 32 bits, and a multiple
// of 16 bytes up to 8,192 elements; the sums of weights and biases then are of 256 blocks at most, in their order, in temporary
// memory. Else it makes a launch for each output, and one more for dweight, which takes temporary memory too.
func (o rowGradients) LayerNormBackwardInto(
	at tensor.Context, dx, dweight, dbias, grad, x, weight *tensor.Tensor, dims int, epsilon float64,
) error {
	return o.normInto(at, opLayerNormBackward, [3]*tensor.Tensor{dx, dweight, dbias}, normOperands{grad: grad, x: x, weight: weight}, dims, epsilon)
}

// normInto computes the gradients of a norm's operands: dx, dweight and dbias, of which an RMS norm has none.
func (o rowGradients) normInto(at tensor.Context, op operation, outs [3]*tensor.Tensor, n normOperands, dims int, epsilon float64) error {
	dx, dweight, dbias := outs[0], outs[1], outs[2]
	along, err := lastAxes(n.x.Rank(), dims)
	const weightStep, biasStep = 0, 1
	steps := [...]step{
		weightStep: {dweight, [4]*tensor.Tensor{n.grad, n.x}},
		biasStep:   {dbias, [4]*tensor.Tensor{n.grad}},
		2:          {dx, [4]*tensor.Tensor{n.grad, n.x, n.weight, n.added}},
	}
	var all order
	if err == nil {
		err = fitsLast(n.x, dims, n.weight, dweight, dbias)
	}
	if err == nil {
		all, err = ordered(steps[:]...)
	}
	done := false
	if err == nil && op != opRMSNormBackward {
		done, err = o.fused(at, outs, &n, dims, epsilon)
	}
	if err != nil {
		return failed(op, err, given(outs[:]...), n.all()...)
	}
	if done {
		return nil
	}
	k := key{axes: along, numbers: [4]uint64{math.Float64bits(epsilon)}}
	for _, i := range all.steps[:all.count] {
		switch {
		case i == biasStep:
			err = o.set.summedInto(at, key{op: opSum}, dbias, n.grad)
		case i != weightStep:
			err = o.normBackward(at, op, k, dx, &n)
		case op == opRMSNormBackward:
			err = named(op, o.rmsWeight(at, k, dweight, n.grad, n.x), []*tensor.Tensor{dweight}, n.grad, n.x)
		default:
			err = named(op, o.weightInto(at, k, dweight, n.grad, n.x), []*tensor.Tensor{dweight}, n.grad, n.x)
		}
		if err != nil {
			return renamed(op, err)
		}
	}
	return nil
}

// normBackward is the gradient of the operand of a norm.
func (o rowGradients) normBackward(at tensor.Context, op operation, k key, dx *tensor.Tensor, n *normOperands) error {
	k.op = op
	all := [maxInputs]*tensor.Tensor{n.grad, n.x}
	count := 2
	if n.weight != nil {
		k.with |= withWeight
		all[count] = n.weight
		count++
	}
	if n.added != nil {
		all[count] = n.added
		count++
	}
	return o.set.into(at, k, dx, all[:count]...)
}

// weightInto is the gradient of a layer norm's weight: it needs mean and deviation of each row before it sums over the rows.
func (o rowGradients) weightInto(at tensor.Context, k key, dweight, grad, x *tensor.Tensor) error {
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

// LogSoftmaxBackward returns the gradient of the operand of LogSoftmax, of its result y.
func (o rowGradients) LogSoftmaxBackward(at tensor.Context, grad, y *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	return create(at, like(opLogSoftmaxBackward, y), func(dx *tensor.Tensor) error { return o.LogSoftmaxBackwardInto(at, dx, grad, y, axis) })
}

// LogSoftmaxBackwardInto writes LogSoftmaxBackward to a tensor.
func (o rowGradients) LogSoftmaxBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor, axis int) error {
	return o.set.alongInto(at, opLogSoftmaxBackward, axis, dx, grad, y)
}

// RMSNormBackward returns the gradients of the operands of RMSNorm. Without a weight, dweight belongs to a weight of ones.
func (o rowGradients) RMSNormBackward(at tensor.Context, grad, x, weight *tensor.Tensor, dims int, epsilon float64) (dx, dweight *tensor.Tensor, err error) {
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error {
		return o.RMSNormBackwardInto(at, all[0], all[1], grad, x, weight, dims, epsilon)
	}, normOutputs(opRMSNormBackward, 2, grad, x, weight, dims)...)
	return all[0], all[1], err
}

// RMSNormBackwardInto writes RMSNormBackward to tensors. It makes a launch for dx, and two for dweight, which take temporary
// memory.
func (o rowGradients) RMSNormBackwardInto(at tensor.Context, dx, dweight, grad, x, weight *tensor.Tensor, dims int, epsilon float64) error {
	return o.normInto(at, opRMSNormBackward, [3]*tensor.Tensor{dx, dweight}, normOperands{grad: grad, x: x, weight: weight}, dims, epsilon)
}

// rmsWeight is the gradient of an RMS norm's weight: it needs the factor of each row before it sums over the rows.
func (o rowGradients) rmsWeight(at tensor.Context, k key, dweight, grad, x *tensor.Tensor) error {
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
