package ops

import (
	"math"

	"github.com/go-vram/vram/tensor"
)

// Optimizers change parameters by their gradients.
type Optimizers struct{ set *set }

// AdamWState is a parameter with its gradient and moments, all of one shape. Moments begin at 0.
type AdamWState struct {
	Param, Grad   *tensor.Tensor
	First, Second *tensor.Tensor // moments: means of gradients and of their squares
}

// AdamWConfig has the numbers of the model: each set of them compiles one kernel.
type AdamWConfig struct {
	Beta1, Beta2 float64 // in (0, 1): usually 0.9 and 0.999
	Epsilon      float64 // usually 1e-8
	Decay        float64 // of weights: usually 0.01
}

// AdamW makes one step, in one kernel: it writes the parameter and both moments. rate is the learning rate and step the number of the step,
// from 1 on: tensors of one element, so that graphs can be launched again for the next step. It computes in float32;
// a parameter of float64 is an *expr.TypeError. It allocates nothing on the heap. Errors: ErrNumber; kernel.ErrOverlap where a tensor
// shares memory with the parameter or a moment.
func (o Optimizers) AdamW(at tensor.Context, s AdamWState, rate, step *tensor.Tensor, config AdamWConfig) error {
	k := key{op: opAdamW, numbers: [4]uint64{
		math.Float64bits(config.Beta1), math.Float64bits(config.Beta2), math.Float64bits(config.Epsilon), math.Float64bits(config.Decay),
	}}
	outputs := [3]*tensor.Tensor{s.Param, s.First, s.Second}
	inputs := [maxInputs]*tensor.Tensor{s.Param, s.Grad, s.First, s.Second, rate, step}
	if !(config.Beta1 > 0 && config.Beta1 < 1 && config.Beta2 > 0 && config.Beta2 < 1) {
		return failed(k.op, ErrNumber, outputs[:], inputs[:]...)
	}
	for _, out := range outputs {
		for _, in := range [...]*tensor.Tensor{s.Grad, rate, step} {
			if err := apart(out, in); err != nil {
				return failed(k.op, err, outputs[:], inputs[:]...)
			}
		}
	}
	return o.set.several(at, k, outputs[:], inputs[:]...)
}
