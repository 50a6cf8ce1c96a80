package ops

import (
	"github.com/go-vram/vram/compute/tensor"
)

type activationGradients struct{ set *set }

// ReluBackward is the gradient of the operand x of Relu: grad where x is greater than 0 or NaN, else 0.
func (o activationGradients) ReluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opReluBackward, grad, x)
}

// ReluBackwardInto is ReluBackward into a tensor.
func (o activationGradients) ReluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opReluBackward}, dx, grad, x)
}

// GeluBackward is the gradient of the operand x of Gelu.
func (o activationGradients) GeluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opGeluBackward, grad, x)
}

// GeluBackwardInto is GeluBackward into a tensor.
func (o activationGradients) GeluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opGeluBackward}, dx, grad, x)
}

// GeluTanhBackward is the gradient of the operand x of GeluTanh.
func (o activationGradients) GeluTanhBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opGeluTanhBackward, grad, x)
}

// GeluTanhBackwardInto is GeluTanhBackward into a tensor.
func (o activationGradients) GeluTanhBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opGeluTanhBackward}, dx, grad, x)
}

// SiluBackward is the gradient of the operand x of Silu.
func (o activationGradients) SiluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opSiluBackward, grad, x)
}

// SiluBackwardInto is SiluBackward into a tensor.
func (o activationGradients) SiluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opSiluBackward}, dx, grad, x)
}

// SigmoidBackward is the gradient of the operand of Sigmoid, of its result y.
func (o activationGradients) SigmoidBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opSigmoidBackward, grad, y)
}

// SigmoidBackwardInto is SigmoidBackward into a tensor.
func (o activationGradients) SigmoidBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opSigmoidBackward}, dx, grad, y)
}

// TanhBackward is the gradient of the operand of Tanh, of its result y.
func (o activationGradients) TanhBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opTanhBackward, grad, y)
}

// TanhBackwardInto is TanhBackward into a tensor.
func (o activationGradients) TanhBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opTanhBackward}, dx, grad, y)
}
