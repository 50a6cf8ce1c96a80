package sim

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/cudadrv/site"
)

// Executor executes kernels on the bytes of simulated devices; package cudadrv/sim/ptxrun has one. Its methods run under the
// driver's lock, one at a time: they call no device.
type Executor interface {
	// Load reads the PTX text of a module. Load sets its variables, which are zeros, to the values in the text. An error fails
	// the load with CUDA_ERROR_INVALID_PTX, and is wrapped.
	Load(image []byte, variables map[string]Variable) (Program, error)
}

// Follower is an Executor that tracks written bytes: it is notified of other writes. Its methods run as Executor's do.
type Follower interface {
	Executor
	// Queued is called when a copy or a memset is queued or captured. The function that it returns, nil if there is nothing to
	// do, is called each time that the bytes have changed.
	Queued(t Transfer) (performed func())
	// Claimed is called for memory written by work that the simulation does not execute.
	Claimed(p cudadrv.Ptr, bytes int64)
}

// Transfer is a copy or a memset, of Rows rows of Bytes. An address of 0 is the host's side, or the value of a memset.
type Transfer struct {
	Dst, Src                        cudadrv.Ptr
	Bytes, Rows, DstPitch, SrcPitch int64
}

// Variable is the memory of a module's variable.
type Variable struct {
	Ptr   cudadrv.Ptr
	Bytes []byte
}

// Program is a module that was loaded.
type Program interface {
	// Launch prepares a launch, when it is queued or captured. An error fails the launch with CUDA_ERROR_NOT_SUPPORTED, and is
	// wrapped.
	Launch(k KernelLaunch) (Execution, error)
}

// Capturer is a Program that prepares launches of graphs, too.
type Capturer interface {
	Program
	// Capture prepares a launch, when it is captured. again is called each time that the graph is launched, and returns the
	// execution of that time. Errors are as Launch's.
	Capture(k KernelLaunch) (again func() Execution, err error)
}

// KernelLaunch is a launch of a kernel. The parameters are the executor's to keep.
type KernelLaunch struct {
	Ordinal  int
	Kernel   string
	Geometry cudadrv.Geometry
	Params   []byte
	// Accesses are the accesses that the program declared in LaunchKernelTouching, else nil.
	Accesses []cudadrv.Access
	Place    site.Stack // of the launch, or of its capture
	// Replaces says that these are new arguments for a kernel of a graph. Buffers of arguments that stay may have been freed since the
	// capture: the graph keeps their memory.
	Replaces bool
}

// Execution runs a kernel when it is its turn on the stream; a graph runs it at each launch. memory finds the accessible bytes
// around an address, as far as they are one mapping, allocation or page-locked range. An error ends all work of the device, as
// on hardware: with the result of its method Result() cudadrv.Result if it has one, else CUDA_ERROR_LAUNCH_FAILED.
type Execution func(memory func(p cudadrv.Ptr) (start cudadrv.Ptr, b []byte, ok bool)) error

// ErrNoExecutor refuses a launch of a kernel on a device whose bytes it would not change: it is within a *cudadrv.CallError's
// chain, with CUDA_ERROR_NOT_SUPPORTED.
var ErrNoExecutor = errors.New("sim: nothing executes kernels on these bytes: take package cudadrv/cpu, give Config an Executor (vramtest.Kernels, ptxrun.New), or TimedKernels for launches that only take time")

// executes returns the error of a launch whose results would be missing.
func (g *gpu) executes(c call.Call, f *function) error {
	config := &g.driver.config
	if g.backing == nil || config.Executor != nil || config.TimedKernels {
		return nil
	}
	return fmt.Errorf("%w: %w", fail(c, cudadrv.NotSupported, "kernel %s", f.name), ErrNoExecutor)
}

// loaded reads a module's text for execution.
func (g *gpu) loaded(c call.Call, image []byte, mod *module) error {
	executor := g.driver.config.Executor
	if executor == nil || g.backing == nil {
		return nil
	}
	variables := map[string]Variable{}
	for name, r := range mod.variables {
		variables[name] = Variable{Ptr: r.start, Bytes: unsafe.Slice((*byte)(r.host), r.bytes)}
	}
	var err error
	if mod.executable, err = executor.Load(image, variables); err != nil {
		return &refusal{fail(c, cudadrv.InvalidPTX, "%v", err), err}
	}
	return nil
}

// prepare readies a launch for execution, if there is an executor.
func (g *gpu) prepare(c call.Call, k *kernel) (err error) {
	program := k.function.module.executable
	if program == nil {
		return nil
	}
	l := KernelLaunch{
		Ordinal: g.info.Ordinal, Kernel: k.function.name, Geometry: k.geometry, Params: append([]byte(nil), k.params...), Accesses: k.accesses, Place: site.Deep(0), Replaces: k.replaces,
	}
	if capturer, ok := program.(Capturer); ok && k.captured {
		k.again, err = capturer.Capture(l)
	} else {
		k.execution, err = program.Launch(l)
	}
	if err != nil {
		return &refusal{fail(c, cudadrv.NotSupported, "%v", err), err}
	}
	return nil
}

// refusal is a failed call with the error of the executor, whose text the call has.
type refusal struct {
	error // a *cudadrv.CallError
	cause error
}

// Unwrap returns the call and the executor's error.
func (r *refusal) Unwrap() []error { return []error{r.error, r.cause} }

// executeLater schedules the execution of a kernel at the end of its time on a stream.
func (g *gpu) executeLater(st *stream, k *kernel) {
	execution := k.execution
	if k.again != nil {
		execution = k.again()
	}
	if execution == nil || g.backing == nil {
		return
	}
	name := k.library
	if k.function != nil {
		name = k.function.name
	}
	g.driver.pending.add(work{call: call.LaunchKernel, execution: execution, name: name, ends: st.drained, on: g})
}

// run executes a kernel, and keeps its fault.
func (g *gpu) run(w work) {
	err := w.execution(g.extent)
	if err == nil {
		return
	}
	g.fault, g.faultCause, g.faultResult = err.Error(), err, cudadrv.LaunchFailed
	if kernel := "kernel " + w.name; !strings.Contains(g.fault, kernel) {
		g.fault = kernel + ": " + g.fault
	}
	var known interface{ Result() cudadrv.Result }
	if errors.As(err, &known) {
		g.faultResult = known.Result()
	}
}

// extent returns the accessible memory around an address.
func (g *gpu) extent(p cudadrv.Ptr) (start cudadrv.Ptr, b []byte, ok bool) {
	if m := g.pinned.around(p, 1); m != nil {
		return m.start, m.host, true
	}
	if !g.accessible(p, 1) {
		return 0, nil, false
	}
	r := g.regionAt(p)
	start, bytes := r.start, r.bytes
	if !r.plain() {
		_, m, _ := g.mappings.floor(p)
		start, bytes = m.start, m.handle.bytes
	}
	return start, unsafe.Slice((*byte)(r.hostAt(start)), bytes), true
}

// followed returns the executor's notification of a copy or memset.
func (g *gpu) followed(w work) func() {
	follower, ok := g.driver.config.Executor.(Follower)
	if !ok || g.backing == nil {
		return nil
	}
	t := Transfer{Dst: w.dst, Src: w.src, Bytes: w.bytes, Rows: 1, DstPitch: w.dstPitch, SrcPitch: w.srcPitch}
	if w.rows > 0 {
		t.Bytes, t.Rows = w.bytes/w.rows, w.rows
	}
	return follower.Queued(t)
}

// Claim declares that work that the simulation does not execute writes that memory: its bytes count as written. It is no call
// of CUDA.
func (d *Device) Claim(p cudadrv.Ptr, bytes int64) {
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if follower, ok := g.driver.config.Executor.(Follower); ok {
		follower.Claimed(p, bytes)
	}
}
