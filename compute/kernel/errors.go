package kernel

import (
	"errors"

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
