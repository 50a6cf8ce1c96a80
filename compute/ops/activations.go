package ops

import "github.com/go-vram/vram/compute/tensor"

// Activations are functions of each element.
type Activations struct{ set *set }

// Tanh returns the hyperbolic tangent.
func (o Activations) Tanh(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opTanh, x)
}

// TanhInto writes Tanh to a tensor.
func (o Activations) TanhInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opTanh}, out, x)
}

// Sigmoid returns 1/(1+exp(-x)).
func (o Activations) Sigmoid(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opSigmoid, x)
}

// SigmoidInto writes Sigmoid to a tensor.
func (o Activations) SigmoidInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opSigmoid}, out, x)
}

// Relu is x where it is greater than 0, else 0; NaN is NaN.
func (o Activations) Relu(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opRelu, x)
}

// ReluInto writes Relu to a tensor.
func (o Activations) ReluInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opRelu}, out, x)
}

// Gelu is x/2*(1+erf(x/sqrt(2))).
func (o Activations) Gelu(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opGelu, x)
}

// GeluInto writes Gelu to a tensor.
func (o Activations) GeluInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opGelu}, out, x)
}

// GeluTanh is x/2*(1+tanh(sqrt(2/π)*(x+0.044715*x³))).
func (o Activations) GeluTanh(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opGeluTanh, x)
}

// GeluTanhInto writes GeluTanh to a tensor.
func (o Activations) GeluTanhInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opGeluTanh}, out, x)
}

// Silu is x*sigmoid(x).
func (o Activations) Silu(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opSilu, x)
}

// SiluInto writes Silu to a tensor.
func (o Activations) SiluInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opSilu}, out, x)
}
