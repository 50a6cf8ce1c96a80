// Package kernel makes kernels from expressions, has the driver compile them, and runs them on tensors.
//
// # Use
//
//	kernels := must(kernel.NewCompiler(c)) // c is a *cuda.Context
//	a, b := expr.Input(0, tensor.Float32), expr.Input(1, tensor.Float32)
//	k := must(kernels.Elementwise(a.Mul(b).Add(a).Relu()))
//	must0(k.Run(c, []*tensor.Tensor{y}, x1, x2)) // y = relu(x1*x2+x1), one launch
//
// # Words
//
// A Kernel is a computation: output expressions of numbered inputs (package expr), and for a reduction the axes. It is
// independent of sizes. A variant is one way to compute it (package plan): the adjacent dimensions, the elements for each thread,
// the threads for each row. Run chooses the variant by the layouts of the tensors; sizes and strides are arguments of the
// launch, so that new shapes of the same kind compile nothing. A Compiler has the compiled kernels of one device.
//
// # Compiling
//
// The driver compiles a variant once, at its first run or by Prepare, in some milliseconds, on goroutines of the compiler (the
// option Threads). Compile before a capture, by Prepare or a first run: a driver may refuse to load code while a stream is
// captured in the global mode. With the option Prepared, or after Freeze, Run compiles nothing: it returns ErrNotPrepared for a
// variant that was not prepared, was not run before, and is not in the store, and so does Function for a text. A Store keeps
// compiled code beyond the process: package compute/kernel/store keeps it in a folder. WarmUp prepares a list of kernels ahead
// of need, and reports progress. Stats has counts and times.
//
// # Tuning
//
// Run takes the variant with the best measured time for the kind of work: the kernel, the kind of its layouts, and rows and
// columns to the power of two. For work that no table has, a rule chooses. Package compute/kernel/tune has the words.
// Measured rows come from tables (the project's for some devices, or WithTables), from Tune, and from Run in the modes TuneNow
// and TuneAside. In the mode TuneNow the first Run of a kind of work measures its variants and waits; concurrent ones take the
// rule. In the mode TuneAside it starts the measurement and takes the rule, and a later Run takes the winner. TuneNever, the
// default, measures nothing. Nothing is measured while the stream of the Run or of the measurements is captured: such a Run
// takes the best known variant, and Stats.TuningDeferred counts it. With Prepared, Run measures nothing.
//
// A measurement has its own memory and values: it reads no tensor, so tensors may change or be freed during it.
// It compiles the variants, compares the results of each with the rule's variant, and times them in turns, with operands that
// are not in the device's cache if they have more than 2 MiB together. A result must be the same bit for bit; where
// floating-point numbers are summed, in another order, within 2^-14 of the greatest value of the output, or two units of 16-bit
// types. A variant with any other result is never taken: it is in the *DisqualifiedError of Tune, in Stats.Disqualified,
// in the table with the reason, and with WithLog in the log. A measurement that fails, as for lack of memory, changes nothing
// and is not repeated by Run; Stats.TuningFailed counts it.
//
// The order of a sum depends on its variant: where a measurement changes the variant, the last bits of sums may change, between
// runs in the mode TuneAside, and between processes in TuneNow. With TuneNever the same tensors have the same sums.
//
// # Running
//
// Inputs are broadcast to the shape of the outputs. An output has one element for each element, or for an expression of
// reductions and constants one for each row: its shape has the length 1 in the reduced dimensions, or lacks them. Any strides
// are allowed; an output must not repeat elements. An output may be an input, with exactly the same layout; a tensor that
// overlaps an output in any other way is refused with ErrOverlap. Nothing is launched for outputs without elements. Tensors
// must have the types of the expressions; only the expression converts.
//
// Run submits work to the stream, like a launch of package cuda: it does not wait, orders buffers of other streams, refuses
// freed buffers, and can be captured in a graph. After the variant is compiled, it allocates nothing on the heap, makes no
// driver calls except the launches, and takes no lock. A reduction of long rows takes scratch memory from the stream while it
// runs.
//
// # Errors
//
// *OperandError names the operand that does not fit; errors of expressions and plans name the mistake before anything is
// compiled. A text that the driver refuses is a *SourceError, CUDA C++ that NVRTC refuses a *nvrtc.CompileError: both print the
// log and the lines it names.
//
// # Concurrency properties
//
// All functions are safe for concurrent use. Work of several goroutines on one stream runs in the order in which they submit it.
package kernel
