package kernel

import (
	"errors"
	"fmt"
)

var (
	// ErrNotPrepared refuses to run a variant that is not compiled, where the compiler was made with Prepared.
	ErrNotPrepared = errors.New("kernel: the variant was not prepared")
	// ErrOverlap refuses an output that shares memory with another operand, but for an input of exactly the same layout.
	ErrOverlap = errors.New("the memory overlaps that of an output")
	// ErrRepeats refuses an output with elements that are one.
	ErrRepeats = errors.New("an output must not repeat elements")
	// ErrReduces refuses a reduction in an element-wise kernel, and a reduction kernel without one.
	ErrReduces = errors.New("kernel: Elementwise takes expressions without reductions, Reduction such with them")
	// ErrClosed refuses a call of a compiler that was closed.
	ErrClosed = errors.New("kernel: the compiler is closed")
	// ErrNotOpen refuses a nil Compiler or Kernel.
	ErrNotOpen = errors.New("kernel: not open")
	// ErrForeign refuses tensors, or a context, of another device.
	ErrForeign = errors.New("kernel: the compiler is for another device")
)

// OperandError refuses a tensor.
type OperandError struct {
	Kernel string
	Output bool
	Index  int // of the inputs, or of the outputs
	Err    error
}

// Error names the kernel and the operand.
func (e *OperandError) Error() string {
	side := "input"
	if e.Output {
		side = "output"
	}
	return fmt.Sprintf("kernel: %s: %s %d: %v", e.Kernel, side, e.Index, e.Err)
}

// Unwrap is the reason: ErrOverlap, ErrRepeats, a *tensor.TypeError, an error of the tensor.
func (e *OperandError) Unwrap() error { return e.Err }

// CountError refuses a number of tensors.
type CountError struct {
	Kernel      string
	Inputs      int // that were given
	Outputs     int
	WantInputs  int
	WantOutputs int
}

// Error names both numbers.
func (e *CountError) Error() string {
	return fmt.Sprintf("kernel: %s has %d inputs and %d outputs, not %d and %d", e.Kernel, e.WantInputs, e.WantOutputs, e.Inputs, e.Outputs)
}
