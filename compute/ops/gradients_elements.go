package ops

import "github.com/go-vram/vram/compute/tensor"

// SubBackward are the gradients of the operands of Sub. Of these only types and shapes are looked at.
func (o Gradients) SubBackward(at tensor.Context, grad, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opNegatedBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.SubBackwardInto(at, dx, dy, grad) })
}

// SubBackwardInto is SubBackward into tensors.
func (o Gradients) SubBackwardInto(at tensor.Context, dx, dy, grad *tensor.Tensor) error {
	steps := [...]step{{dx, [3]*tensor.Tensor{grad}}, {dy, [3]*tensor.Tensor{grad}}}
	all, err := ordered(steps[:]...)
	if err != nil {
		return failed(opNegatedBackward, err, given(dx, dy), grad)
	}
	for _, i := range all.steps[:all.count] {
		k := key{op: opSum}
		if i == 1 {
			k.op = opNegatedBackward
		}
		if err := o.set.summedInto(at, k, steps[i].out, grad); err != nil {
			return renamed(opNegatedBackward, err)
		}
	}
	return nil
}

// DivBackward are the gradients of the operands of Div: grad/y and -grad*(x/y/y).
func (o Gradients) DivBackward(at tensor.Context, grad, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opDivBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.DivBackwardInto(at, dx, dy, grad, x, y) })
}

// DivBackwardInto is DivBackward into tensors.
func (o Gradients) DivBackwardInto(at tensor.Context, dx, dy, grad, x, y *tensor.Tensor) error {
	steps := [...]step{{dx, [3]*tensor.Tensor{grad, y}}, {dy, [3]*tensor.Tensor{grad, x, y}}}
	all, err := ordered(steps[:]...)
	if err != nil {
		return failed(opDivBackward, err, given(dx, dy), grad, x, y)
	}
	for _, i := range all.steps[:all.count] {
		if i == 0 {
			err = o.set.summedInto(at, key{op: opDivBackward}, dx, grad, y)
		} else {
			err = o.set.summedInto(at, key{op: opDivisorBackward}, dy, grad, x, y)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// SiluBackward is the gradient of the operand x of Silu.
func (o Gradients) SiluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opSiluBackward, grad, x)
}

// SiluBackwardInto is SiluBackward into a tensor.
func (o Gradients) SiluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opSiluBackward}, dx, grad, x)
}

// SigmoidBackward is the gradient of the operand of Sigmoid, of its result y.
func (o Gradients) SigmoidBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opSigmoidBackward, grad, y)
}

// SigmoidBackwardInto is SigmoidBackward into a tensor.
func (o Gradients) SigmoidBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opSigmoidBackward}, dx, grad, y)
}

// TanhBackward is the gradient of the operand of Tanh, of its result y.
func (o Gradients) TanhBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opTanhBackward, grad, y)
}

// TanhBackwardInto is TanhBackward into a tensor.
func (o Gradients) TanhBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opTanhBackward}, dx, grad, y)
}
