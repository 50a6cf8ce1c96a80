package kernel

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-vram/vram/compute/kernel/tune"
	"github.com/go-vram/vram/cuda"
)

var (
	// ErrNotPrepared refuses to run a variant that is not compiled, and not in the store, where the compiler was made with
	// Prepared or frozen.
	ErrNotPrepared = errors.New("kernel: the variant was not prepared")
	// ErrOverlap refuses an output that shares memory with another operand, except an input of exactly the same layout.
	ErrOverlap = cuda.ErrOverlap
	// ErrRepeats refuses an output with several elements at one address.
	ErrRepeats = errors.New("an output must not repeat elements")
	// ErrReduces refuses a reduction in an element-wise kernel, and a reduction kernel without one.
	ErrReduces = errors.New("kernel: Elementwise takes expressions without reductions, Reduction with them")
	// ErrClosed refuses a call of a compiler that was closed.
	ErrClosed = errors.New("kernel: the compiler is closed")
	// ErrNotOpen refuses a nil or zero Compiler or Kernel.
	ErrNotOpen = errors.New("kernel: not open")
	// ErrTuningStream refuses the mode TuneAside without a context on another stream than the compiler's.
	ErrTuningStream = errors.New("kernel: TuneAside needs a context on a stream of its own")
	// ErrTuningMemory refuses a measurement of tensors that are too large for Tuning.MemoryBytes.
	ErrTuningMemory = errors.New("kernel: a measurement needs two copies of the tensors, which is more memory than it may have")
	// ErrTuningTime ends a measurement that has lasted for Tuning.Limit before all variants were timed often enough.
	ErrTuningTime = errors.New("kernel: the measurement took too long")
	// ErrForeign refuses tensors, or a context, of another device.
	ErrForeign = errors.New("kernel: the compiler is for another device")
)

// OperandError refuses a tensor.
type OperandError struct {
	Kernel string // the expressions, or the kernel's name where they are long
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
	Kernel      string // as in OperandError
	Inputs      int    // that were given
	Outputs     int
	WantInputs  int
	WantOutputs int
}

// Error names both numbers.
func (e *CountError) Error() string {
	return fmt.Sprintf("kernel: %s has %d inputs and %d outputs, not %d and %d", e.Kernel, e.WantInputs, e.WantOutputs, e.Inputs, e.Outputs)
}

// DisqualifiedError names variants that are never taken. The other variants were measured.
type DisqualifiedError struct {
	Kernel string
	Rows   []tune.Row
}

// Error has each variant with the reason.
func (e *DisqualifiedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kernel: %s: %d variants are disqualified", e.Kernel, len(e.Rows))
	for _, r := range e.Rows {
		fmt.Fprintf(&b, "; %s is %v: %s", r.Variant, r.State, r.Why)
	}
	return b.String()
}

// NeedError is a Need of WarmUp that was not prepared.
type NeedError struct {
	Need int // its number in the list
	Err  error
}

// Error has the number and the reason.
func (e *NeedError) Error() string {
	return fmt.Sprintf("kernel: number %d of the list: %v", e.Need, e.Err)
}

// Unwrap is the reason.
func (e *NeedError) Unwrap() error { return e.Err }
