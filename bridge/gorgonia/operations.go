package gorgonia

import (
	"errors"
	"slices"

	gorgonia "gorgonia.org/tensor"

	"github.com/go-vram/vram/compute/ops"
	"github.com/go-vram/vram/compute/tensor"
)

// Add adds two tensors of one shape and type. Errors: *Error.
func (e *Engine) Add(a, b gorgonia.Tensor, options ...gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	return e.elements("Add", ops.Ops.AddInto, a, b, true, options)
}

// AddScalar adds a float32, a float64 or a tensor without dimensions to a tensor. Errors: *Error.
func (e *Engine) AddScalar(a gorgonia.Tensor, b any, left bool, options ...gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	return e.elements("AddScalar", ops.Ops.AddInto, a, b, left, options)
}

// Sub subtracts b from a. Errors: *Error.
func (e *Engine) Sub(a, b gorgonia.Tensor, options ...gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	return e.elements("Sub", ops.Ops.SubInto, a, b, true, options)
}

// SubScalar subtracts a scalar from a tensor, or, if the tensor is not the left operand, the tensor from the scalar. Errors: *Error.
func (e *Engine) SubScalar(a gorgonia.Tensor, b any, left bool, options ...gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	return e.elements("SubScalar", ops.Ops.SubInto, a, b, left, options)
}

// Mul multiplies the elements of two tensors of one shape and type. Errors: *Error.
func (e *Engine) Mul(a, b gorgonia.Tensor, options ...gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	return e.elements("Mul", ops.Ops.MulInto, a, b, true, options)
}

// MulScalar multiplies a tensor by a scalar. Errors: *Error.
func (e *Engine) MulScalar(a gorgonia.Tensor, b any, left bool, options ...gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	return e.elements("MulScalar", ops.Ops.MulInto, a, b, left, options)
}

// Div divides the elements of a by the elements of b. Errors: *Error.
func (e *Engine) Div(a, b gorgonia.Tensor, options ...gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	return e.elements("Div", ops.Ops.DivInto, a, b, true, options)
}

// DivScalar divides a tensor by a scalar, or, if the tensor is not the left operand, the scalar by the tensor. Errors: *Error.
func (e *Engine) DivScalar(a gorgonia.Tensor, b any, left bool, options ...gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	return e.elements("DivScalar", ops.Ops.DivInto, a, b, left, options)
}

// binary is an operation on elements, in the form that writes to a tensor.
type binary func(o ops.Ops, at tensor.Context, out, x, y *tensor.Tensor) error

// elements computes an operation of a tensor and a tensor of the same shape, or a scalar; left is whether a is the left operand.
func (e *Engine) elements(op string, into binary, a gorgonia.Tensor, b any, left bool, options []gorgonia.FuncOpt) (gorgonia.Tensor, error) {
	var result gorgonia.Tensor
	err := tensor.Scoped(e.scope(), func(s *tensor.Scope) error {
		x, err := e.operand(a)
		if err != nil {
			return err
		}
		y, err := e.second(s, b, x)
		if err != nil {
			return err
		}
		if !left {
			x, y = y, x
		}
		result, err = e.write(s, a, options, func(at tensor.Context, out *tensor.Tensor) error { return into(e.ops, at, out, x, y) })
		return err
	})
	if err != nil {
		return nil, failed(op, err, a, b)
	}
	return result, nil
}

// second returns the second operand of an operation on elements: a tensor of the shape of the first one, or a scalar.
func (e *Engine) second(s *tensor.Scope, b any, x *tensor.Tensor) (*tensor.Tensor, error) {
	var y *tensor.Tensor
	var err error
	switch b := b.(type) {
	case gorgonia.Tensor:
		y, err = e.operand(b)
	case float32:
		y, err = tensor.Full(s, b)
	case float64:
		y, err = tensor.Full(s, b)
	default:
		err = ErrType
	}
	switch {
	case err != nil:
		return nil, err
	case y.Type() != x.Type():
		return nil, ErrType
	case y.Rank() != 0 && !slices.Equal(x.Shape(), y.Shape()):
		return nil, ErrShape
	}
	return y, nil
}

// write has f write to the tensor that the options name, or to a new one like a. The scope is for temporary tensors.
func (e *Engine) write(
	s *tensor.Scope, a gorgonia.Tensor, options []gorgonia.FuncOpt, f func(at tensor.Context, out *tensor.Tensor) error,
) (gorgonia.Tensor, error) {
	option := gorgonia.ParseFuncOpts(options...)
	target, count := a, 0
	if !option.Safe() {
		count++
	}
	if reuse := option.Reuse(); reuse != nil {
		target, count = reuse, count+1
	}
	incr := option.Incr()
	if incr != nil {
		target, count = incr, count+1
	}
	if as := option.As(); count > 1 || as.Type != nil && as != a.Dtype() {
		return nil, ErrOption
	}
	of, err := typeOf(a.Dtype())
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return e.made(func(at tensor.Context) (*tensor.Tensor, error) {
			out, err := tensor.New(at, of, a.Shape()...)
			if err != nil {
				return nil, err
			}
			if err := f(s, out); err != nil {
				return nil, errors.Join(err, out.Free())
			}
			return out, nil
		})
	}
	out, err := e.operand(target)
	switch {
	case err != nil:
		return nil, err
	case out.Type() != of:
		return nil, ErrType
	case !slices.Equal(out.Shape(), []int(a.Shape())):
		return nil, ErrShape
	case incr == nil:
		return target, f(s, out)
	}
	sum, err := tensor.New(s, of, a.Shape()...)
	if err != nil {
		return nil, err
	}
	if err := f(s, sum); err != nil {
		return nil, err
	}
	return target, e.ops.AddInto(s, out, out, sum)
}

// MatMul writes the product of two matrices to a third one, which must not overlap them. Errors: *Error.
func (e *Engine) MatMul(a, b, out gorgonia.Tensor) error {
	err := tensor.Scoped(e.scope(), func(s *tensor.Scope) error {
		var all [3]*tensor.Tensor
		var err error
		for i, t := range []gorgonia.Tensor{a, b, out} {
			all[i], err = e.operand(t)
			switch {
			case err != nil:
				return err
			case all[i].Rank() != 2:
				return ErrShape
			case all[i].Type() != all[0].Type():
				return ErrType
			}
		}
		_, err = e.ops.MatmulInto(s, all[2], all[0], all[1], ops.Product{})
		return err
	})
	return failed("MatMul", err, a, b, out)
}

// Product returns the product of two matrices: a.MatMul(b) without its panic where memory is short. Errors: *Error.
func (e *Engine) Product(a, b gorgonia.Tensor) (*gorgonia.Dense, error) {
	if a == nil || b == nil || a.Dims() != 2 || b.Dims() != 2 {
		return nil, failed("Product", ErrShape, a, b)
	}
	out, err := e.New(a.Dtype(), a.Shape()[0], b.Shape()[1])
	if err != nil {
		return nil, failed("Product", err, a, b)
	}
	if err := e.MatMul(a, b, out); err != nil {
		return nil, errors.Join(err, e.Free(out, 0))
	}
	return out, nil
}

// Sum returns the sums along axes, or of all elements: 0 of none. Errors: *Error.
func (e *Engine) Sum(a gorgonia.Tensor, along ...int) (gorgonia.Tensor, error) {
	return e.reduce("Sum", ops.Ops.Sum, a, along)
}

// Max returns the maxima along axes, or of all elements; NaN is greater than all. Errors: *Error, with ops.ErrEmpty of none.
func (e *Engine) Max(a gorgonia.Tensor, along ...int) (gorgonia.Tensor, error) {
	return e.reduce("Max", ops.Ops.Max, a, along)
}

// Min returns the minima along axes, or of all elements; NaN is less than all. Errors: *Error, with ops.ErrEmpty of none.
func (e *Engine) Min(a gorgonia.Tensor, along ...int) (gorgonia.Tensor, error) {
	return e.reduce("Min", ops.Ops.Min, a, along)
}

// reduction is an operation along axes.
type reduction func(o ops.Ops, at tensor.Context, x *tensor.Tensor, keep bool, axes ...int) (*tensor.Tensor, error)

func (e *Engine) reduce(op string, f reduction, a gorgonia.Tensor, along []int) (gorgonia.Tensor, error) {
	x, err := e.operand(a)
	if err != nil {
		return nil, failed(op, err, a)
	}
	d, err := e.made(func(at tensor.Context) (*tensor.Tensor, error) { return f(e.ops, at, x, false, along...) })
	if err != nil {
		return nil, failed(op, err, a)
	}
	return d, nil
}
