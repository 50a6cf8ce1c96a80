// Package ptxrun executes kernels on simulated devices: an Executor for sim.Config that interprets PTX (package
// compute/ptx/interp).
//
// A kernel runs when it is its turn on the simulated stream, on the bytes of the device. A fault ends the work of the
// device, as on hardware: the next calls fail with CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_MISALIGNED_ADDRESS or
// CUDA_ERROR_LAUNCH_FAILED, and Executor.Faults has an *Error with the place of the launch, the argument, and the
// *interp.Fault with the line, the thread and the address.
//
// # Concurrency properties
//
// The methods of an Executor and of its programs run under the lock of the simulated driver, as package sim has it;
// Faults may be called from any goroutine. The function of Owners.Launched runs under that lock, too, one call at a time, on
// any goroutine.
package ptxrun

import (
	"fmt"
	"io"
	"sync"

	"github.com/go-vram/vram/compute/ptx"
	"github.com/go-vram/vram/compute/ptx/interp"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/sim"
	"github.com/go-vram/vram/cudadrv/site"
)

// Config says how kernels are executed.
type Config struct {
	Ignore          []interp.Kind // mistakes that are not looked for; see interp.Launch
	MaxInstructions int64         // that one warp executes; 0: interp.DefaultMaxInstructions
	Strict          bool          // more races; see interp.Launch
	Cooperative     bool          // the blocks of a launch may wait for each other; see interp.Launch
	Owners          Owners        // nil: every address that is mapped may be touched
	Reported        bool          // who made the executor reports Faults: errors of calls name the kernel alone, so that a fault is read once
	Helpers         *site.Helpers // left out of the places of launches; nil: none
	OnFault         func(error)   // told of each fault, under the lock of the simulated driver: it calls no device
	Output          io.Writer     // of printf in kernels, likewise; nil: dropped
}

// Owners knows whose memory is whose.
type Owners interface {
	// Launched is called when a launch is queued.
	Launched(l sim.KernelLaunch) Reach
	// Queued and Claimed implement sim.Follower.
	Queued(t sim.Transfer) (performed func())
	Claimed(p cudadrv.Ptr, bytes int64)
}

// Reach is the memory of a launch. Its methods are called when the kernel runs.
type Reach interface {
	// Part returns the part around an address in mapped memory of bytes from start on that the launch may touch, or an
	// error that wraps interp.ErrNotLive where the memory is nobody's.
	Part(p, start cudadrv.Ptr, bytes int64) (Part, error)
	// Buffer returns the buffer that had an address when the launch was queued, or else the last one before. False:
	// there is none.
	Buffer(p cudadrv.Ptr) (Buffer, bool)
}

// Part is memory of one owner. It may reach over both ends of a mapping.
type Part struct {
	Start    cudadrv.Ptr
	Bytes    int64
	Written  []uint64          // a bit for each byte that was written; nil: all were. Stores set bits
	Declared []interp.Declared // the accesses that the launch declares; nil: any
	Owner    fmt.Stringer      // for faults; may be nil
}

// Executor executes kernels; make it with New.
type Executor struct {
	config Config

	mu     sync.Mutex // guards faults
	faults []error
}

var _ sim.Follower = (*Executor)(nil)

// New makes an executor. One serves all devices of a driver.
func New(config Config) *Executor { return &Executor{config: config} }

// Faults returns the mistakes of kernels, in their order. Each wraps an *interp.Fault, or interp.ErrLaunch.
func (e *Executor) Faults() []error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]error(nil), e.faults...)
}

// Queued is sim.Follower's.
func (e *Executor) Queued(t sim.Transfer) (performed func()) {
	if e == nil {
		return nil
	}
	if e.config.Owners == nil {
		return nil
	}
	return e.config.Owners.Queued(t)
}

// Claimed is sim.Follower's.
func (e *Executor) Claimed(p cudadrv.Ptr, bytes int64) {
	if e == nil {
		return
	}
	if e.config.Owners != nil {
		e.config.Owners.Claimed(p, bytes)
	}
}

// Load parses and checks a module, and gives its variables the values of their initialisers. The error joins a
// *ptx.CheckError for each mistake, with its line: texts that a driver's compiler refuses. An instruction that
// package ptx does not know is a fault of the kernel that executes it.
func (e *Executor) Load(image []byte, variables map[string]sim.Variable) (sim.Program, error) {
	m, err := ptx.Parse(text(image))
	if err != nil {
		return nil, err
	}
	if err := refusal(m, ptx.Check(m)); err != nil {
		return nil, err
	}
	p := &program{executor: e, module: m, globals: map[string]uint64{}, kernels: map[string]*interp.Kernel{}}
	for name, v := range variables {
		p.globals[name] = uint64(v.Ptr)
	}
	for _, v := range m.Variables {
		if to, ok := variables[v.Name]; ok {
			interp.Initialise(v, to.Bytes, func(name string) uint64 { return p.globals[name] })
		}
	}
	return p, nil
}

// text returns an image without the zeros at its end.
func text(image []byte) string {
	for len(image) > 0 && image[len(image)-1] == 0 {
		image = image[:len(image)-1]
	}
	return string(image)
}

// program is a loaded module. Kernels are compiled when they are launched first.
type program struct {
	executor *Executor
	module   *ptx.Module
	globals  map[string]uint64
	kernels  map[string]*interp.Kernel
}

// Launch prepares a launch. The error comes from interp.Compile.
func (p *program) Launch(l sim.KernelLaunch) (sim.Execution, error) {
	again, err := p.Capture(l)
	if err != nil {
		return nil, err
	}
	return again(), nil
}

// Capture prepares a launch of a graph. Memory that it finds by addresses in memory is judged by the time of each launch.
func (p *program) Capture(l sim.KernelLaunch) (again func() sim.Execution, err error) {
	k := p.kernels[l.Kernel]
	if k == nil {
		var err error
		if k, err = interp.Compile(p.module, l.Kernel); err != nil {
			return nil, err
		}
		p.kernels[l.Kernel] = k
	}
	config := &p.executor.config
	at := launched{KernelLaunch: l, entry: entryNamed(p.module, l.Kernel)}
	at.Place = config.Helpers.Without(l.Place)
	var reach Reach
	if config.Owners != nil {
		reach = config.Owners.Launched(l)
	}
	return func() sim.Execution {
		m, at := &memory{reach: reach}, at
		if r, ok := reach.(relaunched); ok {
			m.reach = r.again()
		}
		if m.reach != nil {
			at.buffer = m.reach.Buffer
		}
		launch := interp.Launch{
			Grid: interp.Dim3(l.Geometry.Grid), Block: interp.Dim3(l.Geometry.Block), SharedBytes: int(l.Geometry.SharedBytes),
			Params: l.Params, Memory: m, Globals: p.globals, Ignore: config.Ignore, MaxInstructions: config.MaxInstructions,
			Tensors: tensor, Output: config.Output, Strict: config.Strict, Cooperative: config.Cooperative,
		}
		return func(extent func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)) error {
			m.extent = extent
			return p.executor.keep(&at, k.Run(launch))
		}
	}, nil
}

// relaunched is a Reach of a graph's launch, which it makes for each time that the graph is launched.
type relaunched interface{ again() Reach }

// tensor reads a tensor map of a simulated device.
func tensor(encoded []byte) (interp.Tensor, bool) {
	m, ok := sim.DecodeTensorMap(encoded)
	t := interp.Tensor{
		Start: uint64(m.Ptr), ElementBytes: int(m.Type.Bytes()), Rank: int(m.Rank), Dims: m.Dims, Strides: m.Strides,
		Swizzle: int(m.Swizzle.Bytes() / 16), //nolint:mnd // pieces of a line
		TF32:    m.Type == cudadrv.TensorTFloat32,
	}
	for n, size := range m.Box {
		t.Box[n] = int64(size)
	}
	return t, ok
}

// keep remembers the fault of a launch.
func (e *Executor) keep(at *launched, err error) error {
	if err == nil {
		return nil
	}
	return e.Failed(at.failed(err))
}

// Failed remembers a fault of other work that the simulated device executes, such as a stand-in for a library, and returns
// the error of its sim.Execution.
func (e *Executor) Failed(err error) error {
	if e == nil {
		return err
	}
	e.mu.Lock()
	e.faults = append(e.faults, err)
	e.mu.Unlock()
	if e.config.OnFault != nil {
		e.config.OnFault(err)
	}
	if e.config.Reported {
		return &reported{err}
	}
	return err
}

// reported is an error that leaves its text to the reader of Faults.
type reported struct{ error }

// Error refers to the text.
func (*reported) Error() string { return "the test reports its fault" }

// Unwrap returns the *Error.
func (r *reported) Unwrap() error { return r.error }

// memory is the memory of a device, for one launch.
type memory struct {
	extent func(cudadrv.Ptr) (cudadrv.Ptr, []byte, bool)
	reach  Reach // nil: every mapped address may be touched
}

// Range finds mapped memory that the launch may touch.
func (m *memory) Range(address uint64, _ int, _ bool) (interp.Region, error) {
	p := cudadrv.Ptr(address)
	start, b, ok := m.extent(p)
	if !ok {
		return interp.Region{}, fmt.Errorf("the address is not mapped: %w", interp.ErrNotLive)
	}
	if m.reach == nil {
		return interp.Region{Start: uint64(start), Bytes: b}, nil
	}
	own, err := m.reach.Part(p, start, int64(len(b)))
	if err != nil {
		return interp.Region{}, err
	}
	from := max(own.Start, start)
	end := min(own.Start+cudadrv.Ptr(own.Bytes), start+cudadrv.Ptr(len(b))) //nolint:gosec // not negative
	r := interp.Region{Start: uint64(from), Bytes: b[from-start : end-start], Declared: own.Declared, Owner: own.Owner}
	const word = 64
	if skipped := uint64(from - own.Start); own.Written != nil && skipped%word == 0 { // mappings begin at whole words of buffers
		r.Initialised = own.Written[skipped/word:]
	}
	return r, nil
}
