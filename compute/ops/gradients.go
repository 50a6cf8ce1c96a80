package ops

import "github.com/go-vram/vram/compute/tensor"

// Gradients compute the gradients of an operation's operands from the gradient of its result. They have the types of the
// operands and are summed over the axes along which the operands were broadcast. Into forms with several gradients skip one that is
// nil.
type Gradients struct {
	elementGradients
	activationGradients
	rowGradients
	reductionGradients
	productGradients
	indexGradients
}

func newGradients(s *set) Gradients {
	return Gradients{
		elementGradients{s},
		activationGradients{s},
		rowGradients{s},
		reductionGradients{s},
		productGradients{s},
		indexGradients{s},
	}
}

type indexGradients struct{ set *set }

// GatherBackward returns the gradient of the operand x of Gather. It uses only the type and shape of x.
func (o indexGradients) GatherBackward(at tensor.Context, grad, x, indices *tensor.Tensor, axis int) (*tensor.Tensor, error) {
	return create(at, like(opGatherBackward, x), func(dx *tensor.Tensor) error { return o.GatherBackwardInto(at, dx, grad, indices, axis) })
}

// GatherBackwardInto writes GatherBackward to a tensor: ScatterAddInto after a launch that writes zeros.
func (o indexGradients) GatherBackwardInto(at tensor.Context, dx, grad, indices *tensor.Tensor, axis int) error {
	return o.set.scatterAdd(at, opGatherBackward, true, dx, indices, grad, axis)
}
