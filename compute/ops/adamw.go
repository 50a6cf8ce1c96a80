package ops

import (
	"errors"
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/tensor"
)

// Optimizers change parameters by their gradients.
type Optimizers struct{ set *set }

// AdamWState is a parameter with its gradient and moments, all of one shape. Moments begin at 0.
type AdamWState struct {
	Param, Grad   *tensor.Tensor
	First, Second *tensor.Tensor // moments: means of gradients and of their squares

	// Copy gets the new parameter, rounded to its type: the bfloat16 or float16 weights of a model whose parameters are float32.
	// nil for none. AdamWAll alone has it.
	Copy *tensor.Tensor
}

// AdamWConfig has the hyperparameters. Each set of them compiles one kernel. The zero value has PyTorch's defaults: 0.9,
// 0.999, 1e-8 and 0.01. In any other value an Epsilon of 0 means 1e-8, and the other fields are used as they are.
type AdamWConfig struct {
	Beta1, Beta2 float64 // 0 or more and less than 1: usually 0.9 and 0.999
	Epsilon      float64 // more than 0, as a float32, too: usually 1e-8
	Decay        float64 // of weights, 0 or more: usually 0.01
}

// usualEpsilon stands in place of 0, with which a parameter whose gradients have been 0 would become NaN.
const usualEpsilon = 1e-8

// filled returns the configuration with the numbers that zeros stand for. Errors: ErrNumber.
func (a AdamWConfig) filled() (AdamWConfig, error) {
	if a == (AdamWConfig{}) {
		a = AdamWConfig{Beta1: 0.9, Beta2: 0.999, Decay: 0.01}
	}
	if a.Epsilon == 0 {
		a.Epsilon = usualEpsilon
	}
	for i, beta := range [...]float64{a.Beta1, a.Beta2} {
		if !(beta >= 0 && beta < 1) {
			return a, fmt.Errorf("the %s is %g, want 0 or more and less than 1: %w", [...]string{"Beta1", "Beta2"}[i], beta, ErrNumber)
		}
	}
	if !(float32(a.Epsilon) > 0 && a.Epsilon <= math.MaxFloat32) {
		return a, fmt.Errorf("the Epsilon is %g, want more than 0, as a float32: %w", a.Epsilon, ErrNumber)
	}
	if !(a.Decay >= 0 && a.Decay <= math.MaxFloat32) {
		return a, fmt.Errorf("the Decay is %g, want 0 or more: %w", a.Decay, ErrNumber)
	}
	return a, nil
}

// AdamW makes one step, in one kernel: it writes the parameter and both moments. rate is the learning rate and step the number
// of the step, from 1 on: tensors of one element, so that graphs can be launched again for the next step. It computes in
// float32; a parameter of float64 is an *expr.TypeError. It allocates nothing on the heap. Errors: ErrNumber; ErrShape, also
// for a state with a Copy; kernel.ErrOverlap where a tensor shares memory with the parameter or a moment.
func (o Optimizers) AdamW(at tensor.Context, s AdamWState, rate, step *tensor.Tensor, config AdamWConfig) error {
	config, err := config.filled()
	if err != nil {
		return s.failed(err, rate, step)
	}
	k := key{op: opAdamW, numbers: [4]uint64{
		math.Float64bits(config.Beta1), math.Float64bits(config.Beta2), math.Float64bits(config.Epsilon), math.Float64bits(config.Decay),
	}}
	outputs := [3]*tensor.Tensor{s.Param, s.First, s.Second}
	inputs := [maxInputs]*tensor.Tensor{s.Param, s.Grad, s.First, s.Second}
	if err := s.fits(rate, step); err != nil {
		return s.failed(err, rate, step)
	}
	for _, out := range outputs {
		for _, in := range [...]*tensor.Tensor{s.Grad, rate, step} {
			if err := apart(out, in); err != nil {
				return s.failed(err, rate, step)
			}
		}
	}
	err = scalar(rate, func(rate *tensor.Tensor) error {
		return scalar(step, func(step *tensor.Tensor) error {
			inputs[4], inputs[5] = rate, step
			return o.set.several(at, k, outputs[:], inputs[:]...)
		})
	})
	if e, known := errors.AsType[*Error](err); known {
		return s.failed(e.Err, rate, step)
	}
	return err
}

// fits refuses tensors that differ from the parameter in shape, and a rate or step that is not a scalar. Errors: ErrShape,
// tensor.ErrNoTensor.
func (s *AdamWState) fits(rate, step *tensor.Tensor) error {
	if s.Copy != nil {
		return fmt.Errorf("a copy of the parameter needs AdamWAll: %w", ErrShape)
	}
	for _, t := range [...]*tensor.Tensor{s.Param, s.Grad, s.First, s.Second, rate, step} {
		if !t.Type().Valid() {
			return tensor.ErrNoTensor
		}
	}
	for _, t := range [...]*tensor.Tensor{s.Grad, s.First, s.Second} {
		if !sameShape(t, s.Param) {
			return ErrShape
		}
	}
	if rate.Len() != 1 || step.Len() != 1 {
		return ErrShape
	}
	return nil
}

// scalar gives f a tensor of one element without its dimensions: a parameter may have fewer.
func scalar(t *tensor.Tensor, f func(*tensor.Tensor) error) error {
	if t.Rank() == 0 {
		return f(t)
	}
	l, err := t.Layout().Reshape()
	if err != nil {
		return err
	}
	return viewed(t, l, f)
}

// failed is the failure of a step: of a state, and of the tensors of rate and step if there are any.
func (s *AdamWState) failed(err error, numbers ...*tensor.Tensor) error {
	e := &Error{Op: opAdamW.String(), Err: err}
	names := [...]string{"parameter", "gradient", "first moment", "second moment", "copy", "rate", "step"}
	all := s.tensors()
	for i, t := range append(all[:], numbers...) {
		if t != nil || i < stateCopy {
			e.Operands = append(e.Operands, names[i]+" "+t.String())
		}
	}
	return e
}

// The tensors of a state.
const (
	stateGrad = 1
	stateCopy = 4
)

func (s *AdamWState) tensors() [5]*tensor.Tensor {
	return [...]*tensor.Tensor{s.Param, s.Grad, s.First, s.Second, stateCopy: s.Copy}
}
