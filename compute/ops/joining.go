package ops

import (
	"github.com/go-vram/vram/compute/kernel"
	"github.com/go-vram/vram/compute/kernel/expr"
	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/cuda"
)

// Concat joins tensors along an axis. They have the same lengths in other dimensions. The result has the type to which theirs
// are promoted. The gradient of an operand is a slice of the result's gradient. Errors: ErrAxes, ErrShape, also for no tensor.
func (o Makers) Concat(at tensor.Context, axis int, all ...*tensor.Tensor) (*tensor.Tensor, error) {
	_, length, err := joined(axis, all)
	if err != nil {
		return nil, failed(opConcat, err, nil, all...)
	}
	shape, of := all[0].Shape(), all[0].Type()
	for _, t := range all[1:] {
		of = expr.Promote(of, t.Type())
	}
	if axis < 0 {
		axis += len(shape)
	}
	shape[axis] = length
	return create(at, sized(opConcat, of, shape, all...), func(out *tensor.Tensor) error { return o.ConcatInto(at, out, axis, all...) })
}

// ConcatInto writes Concat to a tensor of any type: elements are converted as Cast does. It makes a launch for each tensor.
func (o Makers) ConcatInto(at tensor.Context, out *tensor.Tensor, axis int, all ...*tensor.Tensor) error {
	return failed(opConcat, o.concat(at, out, axis, all), []*tensor.Tensor{out}, all...)
}

func (o Makers) concat(at tensor.Context, out *tensor.Tensor, axis int, all []*tensor.Tensor) error {
	axis, length, err := joined(axis, all)
	if err != nil {
		return err
	}
	if !out.Type().Valid() {
		return tensor.ErrNoTensor
	}
	if out.Rank() != all[0].Rank() || out.Dim(axis) != length || !fitsBeside(out, all[0], axis) {
		return ErrShape
	}
	if err := o.set.apartFrom(out, all); err != nil {
		return err
	}
	from := 0
	for _, t := range all {
		n := t.Dim(axis)
		part, err := out.Layout().Narrow(axis, from, n)
		if err != nil {
			return err
		}
		if err := viewed(out, part, func(part *tensor.Tensor) error { return o.CopyInto(at, part, t) }); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// joined returns the axis along which tensors are joined, and the length that they have together. Errors: ErrAxes, ErrShape,
// tensor.ErrNoTensor.
func joined(axis int, all []*tensor.Tensor) (along, length int, err error) {
	if len(all) == 0 {
		return 0, 0, ErrShape
	}
	for _, t := range all {
		if !t.Type().Valid() {
			return 0, 0, tensor.ErrNoTensor
		}
	}
	if along, err = axisOf(all[0].Rank(), axis); err != nil {
		return 0, 0, err
	}
	for _, t := range all {
		if !fitsBeside(t, all[0], along) {
			return 0, 0, ErrShape
		}
		length += t.Dim(along)
	}
	return along, length, nil
}

// fitsBeside reports whether two tensors have the same lengths but along an axis.
func fitsBeside(a, b *tensor.Tensor, axis int) bool {
	if a.Rank() != b.Rank() {
		return false
	}
	for d := range a.Rank() {
		if d != axis && a.Dim(d) != b.Dim(d) {
			return false
		}
	}
	return true
}

// apartFrom returns an error where tensors share memory with an output. Errors: kernel.ErrOverlap, kernel.ErrRepeats.
func (s *set) apartFrom(out *tensor.Tensor, all []*tensor.Tensor) error {
	f := s.frame()
	defer f.release()
	if err := f.bindOut(0, out, cuda.Out); err != nil {
		return err
	}
	for _, t := range all {
		if err := f.bind(1, t, cuda.Out); err != nil {
			return err
		}
		if f.operands[0].overlaps(&f.operands[1]) {
			return kernel.ErrOverlap
		}
	}
	return nil
}
