package ops

import (
	"errors"
	"strings"

	"github.com/go-vram/vram/tensor"
)

var (
	// ErrNotOpen refuses a zero Ops.
	ErrNotOpen = errors.New("ops: not open")
	// ErrEmpty refuses the greatest of no elements.
	ErrEmpty = errors.New("no element to choose from")
	// ErrAxes refuses axes that a tensor does not have, or twice the same.
	ErrAxes = errors.New("there are no such axes")
	// ErrNumber refuses a number that the element type does not have, or that the operation cannot have, as bounds in the wrong order.
	ErrNumber = errors.New("such a number is not possible for the operation and the element type")
	// ErrShape refuses shapes that an operation cannot have together.
	ErrShape = errors.New("the shapes do not fit")
)

// Error is the failure of an operation.
type Error struct {
	Op       string
	Operands []string // type and shape of each, outputs first
	Err      error
}

// Error names the operation, the operands and the reason.
func (e *Error) Error() string {
	return "ops: " + e.Op + " of " + strings.Join(e.Operands, ", ") + ": " + e.Err.Error()
}

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Err }

// failed is the failure of an operation on tensors; nil if there is none.
func failed(op operation, err error, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op.String(), Err: err}
	for _, all := range [][]*tensor.Tensor{outputs, inputs} {
		for _, t := range all {
			e.Operands = append(e.Operands, t.String())
		}
	}
	return e
}
