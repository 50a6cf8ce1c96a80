package ops

import "github.com/go-vram/vram/compute/tensor"

// NegBackward is the gradient of the operand of Neg. Of x only type and shape are looked at.
func (o Gradients) NegBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := like(at, opNegBackward, x)
	if err != nil {
		return nil, err
	}
	return finished(out, o.NegBackwardInto(at, out, grad))
}

// NegBackwardInto is NegBackward into a tensor.
func (o Gradients) NegBackwardInto(at tensor.Context, dx, grad *tensor.Tensor) error {
	return o.set.into(at, key{op: opNegBackward}, dx, grad)
}

// AbsBackward is the gradient of the operand x of Abs: that of the result times the sign of x, which is 0 of 0 and of NaN.
func (o Gradients) AbsBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opAbsBackward, grad, x)
}

// AbsBackwardInto is AbsBackward into a tensor.
func (o Gradients) AbsBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opAbsBackward}, dx, grad, x)
}

// SqrtBackward is the gradient of the operand of Sqrt, of its result y: grad/(2*y), which is infinite where y is 0.
func (o Gradients) SqrtBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opSqrtBackward, grad, y)
}

// SqrtBackwardInto is SqrtBackward into a tensor.
func (o Gradients) SqrtBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opSqrtBackward}, dx, grad, y)
}

// RsqrtBackward is the gradient of the operand of Rsqrt, of its result y: -grad/2*y³.
func (o Gradients) RsqrtBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opRsqrtBackward, grad, y)
}

// RsqrtBackwardInto is RsqrtBackward into a tensor.
func (o Gradients) RsqrtBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opRsqrtBackward}, dx, grad, y)
}

// ExpBackward is the gradient of the operand of Exp, of its result y: grad*y.
func (o Gradients) ExpBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opExpBackward, grad, y)
}

// ExpBackwardInto is ExpBackward into a tensor.
func (o Gradients) ExpBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opExpBackward}, dx, grad, y)
}

// LogBackward is the gradient of the operand x of Log: grad/x.
func (o Gradients) LogBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opLogBackward, grad, x)
}

// LogBackwardInto is LogBackward into a tensor.
func (o Gradients) LogBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opLogBackward}, dx, grad, x)
}

// ClampBackward is the gradient of the operand x of Clamp with the same bounds: that of the result where x is within the bounds or equal
// to one, else 0, also where x or a bound is NaN. Errors: ErrNumber as Clamp.
func (o Gradients) ClampBackward(at tensor.Context, grad, x *tensor.Tensor, low, high float64) (*tensor.Tensor, error) {
	out, err := like(at, opClampBackward, x)
	if err != nil {
		return nil, err
	}
	return finished(out, o.ClampBackwardInto(at, out, grad, x, low, high))
}

// ClampBackwardInto is ClampBackward into a tensor.
func (o Gradients) ClampBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor, low, high float64) error {
	k, err := clamp(opClampBackward, x, low, high)
	if err != nil {
		return err
	}
	return o.set.into(at, k, dx, grad, x)
}

// WhereBackward are the gradients of the operands x and y of Where: that of the result where the condition has taken the operand, else
// 0. Of x and y only types and shapes are looked at.
func (o Gradients) WhereBackward(at tensor.Context, grad, condition, x, y *tensor.Tensor) (dx, dy *tensor.Tensor, err error) {
	return both(at, opWhereBackward, x, y, func(dx, dy *tensor.Tensor) error { return o.WhereBackwardInto(at, dx, dy, grad, condition) })
}

// WhereBackwardInto is WhereBackward into tensors.
func (o Gradients) WhereBackwardInto(at tensor.Context, dx, dy, grad, condition *tensor.Tensor) error {
	steps := [...]step{{dx, [3]*tensor.Tensor{grad, condition}}, {dy, [3]*tensor.Tensor{grad, condition}}}
	all, err := ordered(steps[:]...)
	if err != nil {
		return failed(opWhereBackward, err, given(dx, dy), grad, condition)
	}
	for _, i := range all.steps[:all.count] {
		k := key{op: opWhereBackward}
		if i == 1 {
			k.op = opElseBackward
		}
		if err := o.set.summedInto(at, k, steps[i].out, grad, condition); err != nil {
			return err
		}
	}
	return nil
}
