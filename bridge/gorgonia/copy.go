package gorgonia

import (
	gorgonia "gorgonia.org/tensor"

	"github.com/go-vram/vram/compute/tensor"
)

// Float is the types of Go that the element types have on the host.
type Float interface{ float32 | float64 }

// From makes a tensor with the values of a slice, in row-major order. Without a shape it has one dimension, of the slice's
// length. The slice may be changed when it returns. Errors: *Error with *tensor.LengthError, *tensor.ShapeError, or an error of
// the allocation or the copy, such as vram.ErrOutOfMemory.
func From[T Float](e *Engine, values []T, shape ...int) (*gorgonia.Dense, error) {
	d, err := e.made(func(at tensor.Context) (*tensor.Tensor, error) { return tensor.From(at, values, shape...) })
	return d, failed("From", err)
}

// Scalar makes a tensor of one value and no dimensions. Errors: as From.
func Scalar[T Float](e *Engine, value T) (*gorgonia.Dense, error) {
	d, err := e.made(func(at tensor.Context) (*tensor.Tensor, error) { return tensor.Scalar(at, value) })
	return d, failed("Scalar", err)
}

// Read returns the elements of a tensor of an Engine, or of a view of one, in row-major order; of a scalar its value. It waits
// for the work that was submitted on it. Errors: *Error with ErrForeign, ErrType, ErrLayout, *tensor.TypeError, or
// an error of the copy.
func Read[T Float](t gorgonia.Tensor) ([]T, error) {
	x, err := own(t)
	if err != nil {
		return nil, failed("Read", err, t)
	}
	values, err := tensor.Read[T](x)
	return values, failed("Read", err, t)
}

// Write copies a slice, in row-major order, to the elements of a tensor of an Engine, or of a view of one. The slice may be
// changed when it returns. Errors: as Read, *tensor.LengthError.
func Write[T Float](t gorgonia.Tensor, values []T) error {
	x, err := own(t)
	if err != nil {
		return failed("Write", err, t)
	}
	return failed("Write", tensor.Write(x, values), t)
}

// own returns the operand of a tensor's own engine.
func own(t gorgonia.Tensor) (*tensor.Tensor, error) {
	if t == nil {
		return nil, ErrForeign
	}
	if e, ok := t.Engine().(*Engine); ok {
		return e.operand(t)
	}
	return nil, ErrForeign
}
