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
// sizes. A variant is one way to compute it (package plan): which dimensions are neighbours, how many elements a thread takes, how
// many threads a row has. Run chooses the variant by the layouts of the tensors; sizes and strides are arguments of the launch, so
// that new shapes of the same kind compile nothing. A Compiler has the compiled kernels of one device.
//
// # Compiling
//
// The driver compiles a variant when it is first run, some milliseconds, or when Prepare asks for it: on a goroutine of the compiler, which
// compiles one after the other, and a variant once. Before a capture, Prepare or a first run compiles: a driver may refuse to load code
// while a stream is captured in the global mode. With the option Prepared, Run compiles nothing: a variant that was not
// prepared is ErrNotPrepared. A Store keeps compiled code beyond the process: package kernel/store does in a folder. Stats tells how many texts
// were compiled, and how many came from the store.
//
// # Running
//
// Inputs are broadcast to the shape of the outputs. An output has one element for each element, or for an expression of reductions and
// constants one for each row: its shape has the length 1 in the reduced dimensions, or lacks them. Any strides are allowed; an
// output must not repeat elements. An output may be an input, with exactly the same layout; a tensor that overlaps an output in any other
// way is refused with ErrOverlap. Nothing is launched for outputs without elements. Types must be those of the expressions: nothing is
// converted that the expression does not convert.
//
// Run is work of the stream, as a launch of package cuda: it does not wait, orders buffers of other streams, refuses buffers that
// are freed, and can be captured in a graph. It allocates nothing on the heap, makes no driver call but the launches, and takes no lock,
// once the variant is compiled; a reduction of long rows takes scratch memory from the stream for as long as it runs.
//
// # Errors
//
// *OperandError names the operand that does not fit; those of expressions and plans name the mistake before anything is compiled. The
// driver's log of a refused text is in the *cudadrv.CallError that Run or Prepare returns.
//
// # Concurrency properties
//
// Any goroutine may call anything at any time. Work of several goroutines on one stream is in the order in which they submit it.
package kernel
