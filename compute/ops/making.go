package ops

import (
	"fmt"
	"math"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/compute/tensor/half"
)

// Makers make tensors of numbers, and copies.
type Makers struct{ set *set }

// Copy returns a contiguous tensor with the same elements.
func (o Makers) Copy(at tensor.Context, x *tensor.Tensor) (*tensor.Tensor, error) {
	return o.set.unary(at, opCopy, x)
}

// CopyInto writes the elements of x, broadcast, into a tensor of any type: they are converted as Cast does.
func (o Makers) CopyInto(at tensor.Context, out, x *tensor.Tensor) error {
	return o.set.into(at, key{op: opCopy}, out, x)
}

// Cast returns a contiguous tensor with the elements converted to a type. A conversion of a floating-point number to an integer
// cuts off the fraction and takes the nearest number of the type; NaN is 0. Integers wrap around. Its Into form is CopyInto.
// Errors: a *tensor.TypeError for no type.
func (o Makers) Cast(at tensor.Context, x *tensor.Tensor, to tensor.Type) (*tensor.Tensor, error) {
	if x.Type().Valid() && !to.Valid() {
		return nil, failed(opCast, &tensor.TypeError{Op: opCast.String(), Types: []tensor.Type{x.Type(), to}}, nil, x)
	}
	out, err := o.set.made(at, key{op: opCopy, out: to}, x.Shape(), x)
	return out, renamed(opCast, err)
}

// TransposeCopy returns a contiguous tensor with two dimensions exchanged.
func (o Makers) TransposeCopy(at tensor.Context, x *tensor.Tensor, a, b int) (*tensor.Tensor, error) {
	turned, err := x.Transpose(a, b)
	if err != nil {
		return nil, failed(opTransposeCopy, err, nil, x)
	}
	out, err := o.Copy(at, turned)
	return out, renamed(opTransposeCopy, err)
}

// TransposeCopyInto writes TransposeCopy to a tensor.
func (o Makers) TransposeCopyInto(at tensor.Context, out, x *tensor.Tensor, a, b int) error {
	if !x.Type().Valid() {
		return failed(opTransposeCopy, tensor.ErrNoTensor, []*tensor.Tensor{out}, x)
	}
	turned, err := x.Layout().Transpose(a, b)
	if err == nil {
		err = viewed(x, turned, func(x *tensor.Tensor) error { return o.CopyInto(at, out, x) })
	}
	return renamed(opTransposeCopy, named(opTransposeCopy, err, []*tensor.Tensor{out}, x))
}

// Fill returns a new tensor whose elements are a number.
func (o Makers) Fill(at tensor.Context, of tensor.Type, value float64, shape ...int) (*tensor.Tensor, error) {
	return create(at, unmade(opFill, of, shape, ""), func(out *tensor.Tensor) error { return o.FillInto(at, out, value) })
}

// FillInto sets all elements of a tensor to a number, by fills of the driver: it compiles nothing. Errors: ErrNumber for a
// number that an integer type does not have.
func (o Makers) FillInto(at tensor.Context, out *tensor.Tensor, value float64) error {
	of := out.Type()
	if o.set == nil {
		return failed(opFill, ErrNotOpen, []*tensor.Tensor{out})
	}
	if of.Valid() && family(of) == 1 && (value != math.Trunc(value) || !holds(of, value)) {
		return failed(opFill, badNumber("the number", value), []*tensor.Tensor{out})
	}
	return failed(opFill, fill(at, out, of, value), []*tensor.Tensor{out})
}

func fill(at tensor.Context, out *tensor.Tensor, of tensor.Type, value float64) error {
	switch of {
	case tensor.Bool:
		return tensor.Fill(at, out, value != 0)
	case tensor.Uint8:
		return tensor.Fill(at, out, uint8(value))
	case tensor.Int8:
		return tensor.Fill(at, out, int8(value))
	case tensor.Int16:
		return tensor.Fill(at, out, int16(value))
	case tensor.Int32:
		return tensor.Fill(at, out, int32(value))
	case tensor.Int64:
		return tensor.Fill(at, out, int64(value))
	case tensor.Float16:
		return tensor.Fill(at, out, half.NewFloat16(float32(value)))
	case tensor.BFloat16:
		return tensor.Fill(at, out, half.NewBFloat16(float32(value)))
	case tensor.Float32:
		return tensor.Fill(at, out, float32(value))
	case tensor.Float64:
		return tensor.Fill(at, out, value)
	}
	return tensor.ErrNoTensor
}

// Arange has the numbers from start on, before end, step by step, in one dimension. Each start and step compiles a kernel.
// Errors: ErrNumber for a step of 0, a step away from the end, and for a fraction or a number that the type does not have where
// it is of integers.
func (o Makers) Arange(at tensor.Context, of tensor.Type, start, end, step float64) (*tensor.Tensor, error) {
	count := math.Ceil((end - start) / step)
	out := unmade(opArange, of, nil, fmt.Sprintf(" from %v to %v by %v", start, end, step))
	if out.shape = []int{int(count)}; !(count >= 0 && count < 1<<53) {
		out.err = badNumber("step", step)
	}
	return create(at, out, func(out *tensor.Tensor) error { return o.ArangeInto(at, out, start, step) })
}

// ArangeInto writes start, start+step and so on along the last dimension of a tensor. Floating-point numbers are computed in
// float64. Errors: ErrNumber for a fraction, or a number that the type does not have, where it is of integers.
func (o Makers) ArangeInto(at tensor.Context, out *tensor.Tensor, start, step float64) error {
	k := key{op: opArange, numbers: [4]uint64{math.Float64bits(start), math.Float64bits(step)}}
	if of := out.Type(); of.Kind() == tensor.Floating {
		k.with = 1
	} else if err := counts(out, start, step); err != nil {
		return failed(opArange, err, []*tensor.Tensor{out})
	}
	if out.Rank() > 0 {
		return o.set.into(at, k, out)
	}
	one, err := out.Layout().Unsqueeze(0)
	if err == nil {
		err = viewed(out, one, func(out *tensor.Tensor) error { return o.set.into(at, k, out) })
	}
	return named(opArange, err, []*tensor.Tensor{out})
}

// counts refuses a tensor of integers that has not all numbers which go step by step along its last dimension. Errors:
// ErrNumber.
func counts(out *tensor.Tensor, start, step float64) error {
	whole := func(x float64) bool { return x == math.Trunc(x) && holds(tensor.Int64, x) }
	last := start
	if out.Rank() > 0 {
		last += float64(out.Dim(-1)-1) * step
	}
	switch {
	case !whole(start) || out.Len() > 0 && !holds(out.Type(), start):
		return badNumber("start", start)
	case !whole(step):
		return badNumber("step", step)
	case out.Len() > 0 && !holds(out.Type(), last):
		return badNumber("the last number", last)
	}
	return nil
}
