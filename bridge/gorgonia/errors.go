package gorgonia

import (
	"errors"
	"fmt"
	"strings"

	gorgonia "gorgonia.org/tensor"
)

var (
	// ErrType refuses an element type other than float32 and float64, and operands of two types.
	ErrType = errors.New("the element type is not possible here")
	// ErrLayout refuses a tensor that is sparse, masked, or leads out of its memory.
	ErrLayout = errors.New("the layout is not possible here")
	// ErrShape refuses shapes that an operation cannot have together, and axes that a tensor does not have.
	ErrShape = errors.New("the shapes do not fit")
	// ErrOption refuses an option of an operation, and several that exclude each other.
	ErrOption = errors.New("the option is not possible here")
	// ErrForeign refuses memory that the engine has not allocated, such as a tensor of the host or of another engine.
	ErrForeign = errors.New("not memory of this engine")
	// ErrInaccessible refuses access to device memory from Go code: Read and Write copy values.
	ErrInaccessible = errors.New("device memory is not accessible")
)

// Error is the failure of an operation.
type Error struct {
	Op       string
	Operands []string // each with type, shape and strides
	Err      error
}

// Error names the operation, the operands and the reason.
func (e *Error) Error() string {
	text := "gorgonia: " + e.Op
	if len(e.Operands) > 0 {
		text += " of " + strings.Join(e.Operands, ", ")
	}
	return fmt.Sprintf("%s: %v", text, e.Err)
}

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Err }

// failed is the failure of an operation on tensors and scalars; nil if there is none.
func failed(op string, err error, operands ...any) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Operands: nil, Err: err}
	for _, operand := range operands {
		e.Operands = append(e.Operands, describe(operand))
	}
	return e
}

// describe is the text of an operand without its values, which may be on the device.
func describe(operand any) string {
	switch operand := operand.(type) {
	case *gorgonia.Dense:
		if operand != nil {
			return fmt.Sprintf("%v%v with strides %v", operand.Dtype(), []int(operand.Shape()), operand.Strides())
		}
	case gorgonia.Memory:
		return fmt.Sprintf("%d bytes", operand.MemSize())
	}
	return fmt.Sprintf("%T", operand)
}
