package ops

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/layout"
)

// output describes a tensor to allocate.
type output struct {
	of     tensor.Type
	shape  []int
	err    error             // refuses the operation before it allocates anything
	refuse func(error) error // adds the operation to err, or to the error of the allocation
}

// sized describes an output of an operation on operands.
func sized(op operation, of tensor.Type, shape []int, operands ...*tensor.Tensor) output {
	return output{of: of, shape: shape, refuse: func(err error) error { return failed(op, err, nil, operands...) }}
}

// like describes the gradient of x.
func like(op operation, x *tensor.Tensor) output { return sized(op, x.Type(), x.Shape(), x) }

// unmade describes an output of an operation without operands, whose errors name its type, shape and numbers.
func unmade(op operation, of tensor.Type, shape []int, numbers string) output {
	return output{of: of, shape: shape, refuse: func(err error) error { return refused(op, err, of, shape, numbers) }}
}

// createAll allocates the outputs and calls write with them. If anything fails, it frees them.
func createAll(at tensor.Context, write func(all [maxSteps]*tensor.Tensor) error, outputs ...output) (all [maxSteps]*tensor.Tensor, err error) {
	for i := 0; i < len(outputs) && err == nil; i++ {
		o := &outputs[i]
		if err = o.err; err == nil {
			all[i], err = tensor.New(at, o.of, o.shape...)
		}
		if err != nil {
			err = o.refuse(err)
		}
	}
	if err == nil {
		err = write(all)
	}
	if err != nil {
		return [maxSteps]*tensor.Tensor{}, errors.Join(err, free(all[:]...))
	}
	return all, nil
}

// create allocates one output and calls write with it. If anything fails, it frees the output.
func create(at tensor.Context, o output, write func(out *tensor.Tensor) error) (*tensor.Tensor, error) {
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error { return write(all[0]) }, o)
	return all[0], err
}

// both creates the gradients of x and y.
func both(at tensor.Context, op operation, x, y *tensor.Tensor, write func(dx, dy *tensor.Tensor) error) (dx, dy *tensor.Tensor, err error) {
	all, err := createAll(at, func(all [maxSteps]*tensor.Tensor) error { return write(all[0], all[1]) }, like(op, x), like(op, y))
	return all[0], all[1], err
}

// back creates the gradient of x by an operation on the gradient of its result and on x, or on the result.
func (s *set) back(at tensor.Context, op operation, grad, x *tensor.Tensor) (*tensor.Tensor, error) {
	return create(at, like(op, x), func(dx *tensor.Tensor) error { return s.into(at, key{op: op}, dx, grad, x) })
}

// made creates the output of an operation with one output.
func (s *set) made(at tensor.Context, k key, shape []int, inputs ...*tensor.Tensor) (*tensor.Tensor, error) {
	e, err := s.typed(&k, inputs)
	if err != nil {
		return nil, failed(k.op, err, nil, inputs...)
	}
	return create(at, sized(k.op, e.of, shape, inputs...), func(out *tensor.Tensor) error {
		return e.run(at, k.op, []*tensor.Tensor{out}, inputs...)
	})
}

// into runs an operation with one output.
func (s *set) into(at tensor.Context, k key, out *tensor.Tensor, inputs ...*tensor.Tensor) error {
	if k.out = out.Type(); !k.out.Valid() {
		return failed(k.op, tensor.ErrNoTensor, []*tensor.Tensor{out}, inputs...)
	}
	return s.several(at, k, []*tensor.Tensor{out}, inputs...)
}

// several runs an operation with any number of outputs, which have the types of the expressions.
func (s *set) several(at tensor.Context, k key, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) error {
	e, err := s.typed(&k, inputs)
	if err != nil {
		return failed(k.op, err, outputs, inputs...)
	}
	return e.run(at, k.op, outputs, inputs...)
}

// typed adds the types of operands to a key and returns its entry. Errors: tensor.ErrNoTensor; as entry.
func (s *set) typed(k *key, inputs []*tensor.Tensor) (*entry, error) {
	for i, t := range inputs {
		if k.in[i] = t.Type(); !k.in[i].Valid() {
			return nil, tensor.ErrNoTensor
		}
	}
	return s.entry(k)
}

// free frees the tensors that are not nil.
func free(all ...*tensor.Tensor) error {
	var failed error
	for _, t := range all {
		if t != nil {
			failed = errors.Join(failed, t.Free())
		}
	}
	return failed
}

// unary makes a tensor of the elements of another one.
func (s *set) unary(at tensor.Context, op operation, x *tensor.Tensor) (*tensor.Tensor, error) {
	return s.made(at, key{op: op}, x.Shape(), x)
}

// broadcast makes a tensor of the elements of others.
func (s *set) broadcast(at tensor.Context, k key, inputs ...*tensor.Tensor) (*tensor.Tensor, error) {
	shapes := make([][]int, len(inputs))
	for i, t := range inputs {
		shapes[i] = t.Shape()
	}
	shape, err := layout.BroadcastShape(shapes...)
	if err != nil {
		return nil, failed(k.op, err, nil, inputs...)
	}
	return s.made(at, k, shape, inputs...)
}

// given returns the tensors that are not nil.
func given(all ...*tensor.Tensor) []*tensor.Tensor {
	return slices.DeleteFunc(slices.Clone(all), func(t *tensor.Tensor) bool { return t == nil })
}
