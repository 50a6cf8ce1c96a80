// Package kernel makes kernels of expressions, compiles them with the driver alone, and runs them on tensors.
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
// A Kernel is a computation: output expressions of numbered inputs (package expr), and for a reduction the axes. It knows no
// sizes. A variant is one way to compute it (package plan): which dimensions are neighbours, how many elements a thread takes,
// how many threads a row has. Run chooses the variant by the layouts of the tensors; sizes and strides are arguments of the
// launch, so that new shapes of the same kind compile nothing. A Compiler has the compiled kernels of one device.
//
// # Compiling
//
// The driver compiles a variant when it is first run, some milliseconds, or when Prepare asks for it: on goroutines of the
// compiler, as many as the option Threads says, and a variant once. Before a capture, Prepare or a first run compiles: a driver
// may refuse to load code while a stream is captured in the global mode. With the option Prepared, or after Freeze, Run
// compiles nothing: a variant that was not prepared, was not run before, and is not in the store is ErrNotPrepared, and so is a
// text that Function is asked for. A Store keeps compiled code beyond the process: package compute/kernel/store does in a
// folder. WarmUp prepares a list of kernels before they are needed, and tells of its progress. Stats has counts and times.
//
// # Tuning
//
// Run takes the variant that was measured to be the fastest for the kind of work: the kernel, the kind of its layouts, and rows
// and columns to the power of two. Work that is in no table is done as a rule says. Package compute/kernel/tune has the words.
// Measured rows come from tables (the project's for some devices, or WithTables), from Tune, and from Run in the modes TuneNow
// and TuneAside. In the mode TuneNow the first Run of a kind of work measures its variants and waits; concurrent ones take the
// rule. In the mode TuneAside it starts the measurement and takes the rule, and a later Run takes the winner. TuneNever, the
// default, measures nothing. Nothing is measured while the stream of the Run or of the measurements is captured: such a Run
// takes the best known variant, and Stats.TuningDeferred counts it. With Prepared, Run measures nothing.
//
// A measurement has memory of its own with values of its own: it reads no tensor, so tensors may change or be freed during it.
// It compiles the variants, compares the results of each with the rule's variant, and times them in turns, with operands that
// are not in the device's cache if they have more than 2 MiB together. A result must be the same bit for bit; where
// floating-point numbers are summed, in another order, within 2^-14 of the greatest value of the output, or two units of 16-bit
// types. A variant that computes anything else is never taken: it is in the *DisqualifiedError of Tune, in Stats.Disqualified,
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
// must have the types of the expressions: nothing is converted that the expression does not convert.
//
// Run is work of the stream, as a launch of package cuda: it does not wait, orders buffers of other streams, refuses buffers
// that are freed, and can be captured in a graph. It allocates nothing on the heap, makes no driver call but the launches, and
// takes no lock, once the variant is compiled; a reduction of long rows takes scratch memory from the stream for as long as it
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
// Any goroutine may call anything at any time. Work of several goroutines on one stream is in the order in which they submit
// it.
package kernel
