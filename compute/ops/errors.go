package ops

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/tensor"
	"github.com/go-vram/vram/internal/jsonform"
)

var (
	// ErrNotOpen refuses a zero Ops.
	ErrNotOpen = errors.New("ops: not open")
	// ErrEmpty refuses the greatest of no elements.
	ErrEmpty = errors.New("no element to choose from")
	// ErrAxes refuses axes that a tensor does not have, or twice the same.
	ErrAxes = errors.New("such axes are not possible for the tensor")
	// ErrNumber refuses a number that the element type does not have, or that the operation cannot have, as bounds in the wrong
	// order.
	ErrNumber = errors.New("such a number is not possible for the operation and the element type")
	// ErrShape refuses shapes that an operation cannot have together.
	ErrShape = errors.New("the shapes do not fit")
)

// Error is the failure of an operation.
type Error struct {
	Op       string
	Operands []string // "output 0", "operand 1" and so on, each with type and shape, outputs first; of an operation that makes numbers also these
	Err      error
}

// Error names the operation, the operands and the reason.
func (e *Error) Error() string {
	text := "ops: " + e.Op
	if len(e.Operands) > 0 {
		text += " of " + strings.Join(e.Operands, ", ")
	}
	return text + ": " + strings.TrimPrefix(fmt.Sprint(e.Err), "ops: ")
}

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Err }

// MarshalJSON implements json.Marshaler: the reason is its text.
func (e *Error) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Op       string   `json:"op"`
		Operands []string `json:"operands"`
		Err      any      `json:"err"`
	}{e.Op, jsonform.List(e.Operands), jsonform.Error(e.Err)})
}

// failed is the failure of an operation on tensors; nil if there is none.
func failed(op operation, err error, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op.String(), Err: err}
	for i, t := range outputs {
		e.Operands = append(e.Operands, fmt.Sprintf("output %d %s", i, t.String()))
	}
	for i, t := range inputs {
		e.Operands = append(e.Operands, fmt.Sprintf("operand %d %s", i, t.String()))
	}
	return e
}

// refused is the failure of an operation that has no tensor yet: of a type and a shape, with its numbers.
func refused(op operation, err error, of tensor.Type, shape []int, numbers string) error {
	what := fmt.Sprint(of)
	if shape != nil {
		what += fmt.Sprint(shape)
	}
	return &Error{Op: op.String(), Operands: []string{what + numbers}, Err: err}
}

// badNumber is ErrNumber with the number and its name.
func badNumber(name string, value float64) error {
	return fmt.Errorf("%s is %v: %w", name, value, ErrNumber)
}

// badAxis is ErrAxes with the axis and the number of dimensions.
func badAxis(axis, rank int) error {
	return fmt.Errorf("axis %d of %d dimensions: %w", axis, rank, ErrAxes)
}

// renamed gives a failure the name of the operation that the caller has called: some are done by others.
func renamed(op operation, err error) error {
	if e, known := errors.AsType[*Error](err); known {
		e.Op = op.String() // the error is of this call
	}
	return err
}

// named is failed for an error that may be one of an operation already.
func named(op operation, err error, outputs []*tensor.Tensor, inputs ...*tensor.Tensor) error {
	if err == nil {
		return nil
	}
	if _, known := errors.AsType[*Error](err); known {
		return err
	}
	return failed(op, err, outputs, inputs...)
}
