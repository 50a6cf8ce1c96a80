package cuda

import (
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
)

// Module is code that is loaded on a device. Functions of it run on every context of the device.
type Module struct {
	on     *submission
	handle cudadrv.Module
	graphs atomic.Int64 // kernels of it in captures and open graphs, or unloadedModule

	signatures map[string]signature // by kernel, as far as the image is readable
}

// unloadedModule is the graphs of a module that is unloaded, or is being unloaded: one word, so that no graph gets a kernel of it.
const unloadedModule = int64(-1)

// LoadModule loads PTX text, a cubin or a fat binary. The driver compiles PTX, some milliseconds for a small kernel, unless its
// own cache has it. Errors: ErrNotOpen, vram.ErrClosed, and the driver's: a *cudadrv.CallError whose Detail has the compiler's
// log.
func (c *Context) LoadModule(image []byte) (*Module, error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	if c.kernels == nil {
		return nil, unsupported("cuModuleLoadData")
	}
	m := &Module{on: c.submission, signatures: signatures(image)}
	err := c.open(func() (err error) {
		m.handle, err = c.kernels.ModuleLoadData(image)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cuda: loading a module: %w", err)
	}
	return m, nil
}

// Link links PTX texts, relocatable cubins and fat binaries of such into one cubin, which LoadModule takes. Link does not take
// it again: cudadrv.NoBinaryForGPU.
func (c *Context) Link(images ...[]byte) ([]byte, error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	if c.kernels == nil {
		return nil, unsupported("cuLinkCreate")
	}
	cubin, err := c.kernels.LinkImages(images...)
	if err != nil {
		return nil, fmt.Errorf("cuda: linking: %w", c.failure(err))
	}
	return cubin, nil
}

// String includes the driver's handle.
func (m *Module) String() string {
	switch {
	case m == nil || m.on == nil:
		return "no module"
	case m.graphs.Load() == unloadedModule:
		return fmt.Sprintf("module %#x, unloaded", m.handle)
	}
	return fmt.Sprintf("module %#x", m.handle)
}

// Unload unloads the module. Its launches must have finished; later ones are refused with ErrUnloaded. Idempotent. Errors:
// ErrModuleInUse while an open graph has a kernel of it, and the driver's, after which the module is loaded still.
func (m *Module) Unload() error {
	if m == nil || m.on == nil {
		return ErrNotOpen
	}
	if !m.graphs.CompareAndSwap(0, unloadedModule) {
		if m.graphs.Load() == unloadedModule {
			return nil
		}
		return ErrModuleInUse
	}
	done := false
	defer func() {
		if !done { // also after a panic of the driver
			m.graphs.Store(0)
		}
	}()
	err := m.on.failure(m.on.kernels.ModuleUnload(m.handle))
	done = err == nil
	return err
}

func (m *Module) usable() error {
	switch {
	case m == nil || m.on == nil:
		return ErrNotOpen
	case m.graphs.Load() == unloadedModule:
		return ErrUnloaded
	}
	return nil
}

// hold keeps the module loaded for a kernel of a graph, which release ends. Its error is ErrUnloaded.
func (m *Module) hold() error {
	for {
		count := m.graphs.Load()
		if count == unloadedModule {
			return ErrUnloaded
		}
		if m.graphs.CompareAndSwap(count, count+1) {
			return nil
		}
	}
}

func (m *Module) release() { m.graphs.Add(-1) }

// Function is a kernel of a module.
type Function struct {
	module     *Module
	name       string
	handle     cudadrv.Function
	params     []param
	described  []Parameter // as params; nil where params is not complete
	paramBytes int
	known      bool                            // params is complete
	refusals   []atomic.Pointer[ArgumentError] // the last one of each parameter, and of a number of arguments: see again
}

// Function finds a kernel by name and asks the driver for its parameters, so that launches can check their arguments (CUDA 12.4
// and later). It reads the number of parameters from PTX, cubins, and fat binaries with a part that is not compressed. For
// other images it asks the driver until that knows no further parameter, which tools that check driver calls report as an
// error. Older drivers refuse a launch with too many bytes of arguments, and detect no missing ones: the kernel reads undefined
// values. Errors: ErrNotOpen, ErrUnloaded, and the driver's: cudadrv.NotFound, cudadrv.InvalidValue for "".
func (m *Module) Function(name string) (*Function, error) {
	if err := m.usable(); err != nil {
		return nil, err
	}
	k := m.on.kernels
	h, err := k.ModuleGetFunction(m.handle, name)
	if err != nil {
		return nil, fmt.Errorf("cuda: kernel %q: %w", name, m.on.failure(err))
	}
	f := &Function{module: m, name: name, handle: h}
	if err := f.askParams(); err != nil {
		return nil, fmt.Errorf("cuda: the parameters of kernel %q: %w", name, m.on.failure(err))
	}
	return f, nil
}

// String includes the kernel's name.
func (f *Function) String() string {
	if f == nil || f.module == nil {
		return "no kernel"
	}
	return "kernel " + f.name
}

// Name returns the kernel's name.
func (f *Function) Name() string {
	if f == nil {
		return ""
	}
	return f.name
}

func (f *Function) usable() error {
	if f == nil {
		return ErrNotOpen
	}
	return f.module.usable()
}

// Attribute reads a property of the kernel.
func (f *Function) Attribute(a cudadrv.FunctionAttribute) (int, error) {
	if err := f.usable(); err != nil {
		return 0, err
	}
	value, err := f.module.on.kernels.FuncGetAttribute(f.handle, a)
	return value, f.module.on.failure(err)
}

// SetMaxSharedBytes allows launches with that much dynamic shared memory (Geometry.SharedBytes): without it 48 KiB.
func (f *Function) SetMaxSharedBytes(bytes int64) error {
	if err := f.usable(); err != nil {
		return err
	}
	return f.module.on.failure(f.module.on.kernels.FuncSetAttribute(f.handle, cudadrv.MaxDynamicSharedBytes, int(bytes)))
}

// ActiveBlocks returns the number of blocks of blockThreads threads that a multiprocessor runs at once.
func (f *Function) ActiveBlocks(blockThreads int, sharedBytes int64) (int, error) {
	if err := f.usable(); err != nil {
		return 0, err
	}
	blocks, err := f.module.on.kernels.OccupancyMaxActiveBlocksPerMultiprocessor(f.handle, blockThreads, sharedBytes)
	return blocks, f.module.on.failure(err)
}

// BestBlock returns the number of threads of a block with which most warps run at once, and how many blocks then fill the
// device.
func (f *Function) BestBlock(sharedBytes int64) (gridBlocks, blockThreads int, err error) {
	if err := f.usable(); err != nil {
		return 0, 0, err
	}
	gridBlocks, blockThreads, err = f.module.on.kernels.OccupancyMaxPotentialBlockSize(f.handle, sharedBytes, 0)
	return gridBlocks, blockThreads, f.module.on.failure(err)
}
