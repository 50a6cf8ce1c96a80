package ops

import (
	"github.com/go-vram/vram/compute/tensor"
)

type activationGradients struct{ set *set }

// ReluBackward returns the gradient of the operand x of Relu: grad where x is greater than 0 or NaN, else 0.
func (o activationGradients) ReluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opReluBackward, grad, x)
}

// ReluBackwardInto writes ReluBackward to a tensor.
func (o activationGradients) ReluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opReluBackward}, dx, grad, x)
}

// GeluBackward returns the gradient of the operand x of Gelu.
func (o activationGradients) GeluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opGeluBackward, grad, x)
}

// GeluBackwardInto writes GeluBackward to a tensor.
func (o activationGradients) GeluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opGeluBackward}, dx, grad, x)
}

// GeluTanhBackward returns the gradient of the operand x of GeluTanh.
func (o activationGradients) GeluTanhBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opGeluTanhBackward, grad, x)
}

// GeluTanhBackwardInto writes GeluTanhBackward to a tensor.
func (o activationGradients) GeluTanhBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opGeluTanhBackward}, dx, grad, x)
}

// SiluBackward returns the gradient of the operand x of Silu.
func (o activationGradients) SiluBackward(at tensor.Context, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opSiluBackward, grad, x)
}

// SiluBackwardInto writes SiluBackward to a tensor.
func (o activationGradients) SiluBackwardInto(at tensor.Context, dx, grad, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opSiluBackward}, dx, grad, x)
}

// SigmoidBackward returns the gradient of the operand of Sigmoid, of its result y.
func (o activationGradients) SigmoidBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opSigmoidBackward, grad, y)
}

// SigmoidBackwardInto writes SigmoidBackward to a tensor.
func (o activationGradients) SigmoidBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opSigmoidBackward}, dx, grad, y)
}

// TanhBackward returns the gradient of the operand of Tanh, of its result y.
func (o activationGradients) TanhBackward(at tensor.Context, grad, y *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.back(at, opTanhBackward, grad, y)
}

// TanhBackwardInto writes TanhBackward to a tensor.
func (o activationGradients) TanhBackwardInto(at tensor.Context, dx, grad, y *tensor.Tensor) error {
	return o.set.into(at, key{op: opTanhBackward}, dx, grad, y)
}
