package sim

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// DefaultKernelTime is how long a kernel takes where Config.KernelTime says nothing: a start and a little work.
const DefaultKernelTime = 5 * time.Microsecond

// kernel is a launch of a function, as a node of a graph keeps it, or work of a library, which has an execution alone.
type kernel struct {
	function *function
	library  string // without a function
	geometry cudadrv.Geometry
	params   []byte           // the caller's: nothing reads them after the call
	accesses []cudadrv.Access // that the program declares; nil: none
	replaces bool             // another launch of a node
	captured bool             // it is for a graph

	execution Execution        // nil without an executor
	again     func() Execution // of a launch that a Capturer has prepared: instead of execution
}

// refused returns the reason why a kernel cannot be launched so; an empty text if it can.
func (k kernel) refused() (r cudadrv.Result, why string) {
	grid, block := k.geometry.Grid, k.geometry.Block
	threads := uint64(block.X) * uint64(block.Y) * uint64(block.Z) // too large for it only where a direction alone is
	switch {
	case grid.X < 1 || grid.Y < 1 || grid.Z < 1 || block.X < 1 || block.Y < 1 || block.Z < 1:
		return cudadrv.InvalidValue, "a direction has none"
	case grid.X > maxGridWidth || grid.Y > maxGridHeight || grid.Z > maxGridHeight:
		return cudadrv.InvalidValue, "more blocks than a grid can have"
	case block.X > maxBlockThreads || block.Y > maxBlockThreads || block.Z > maxBlockDepth || threads > maxBlockThreads:
		return cudadrv.InvalidValue, "more threads than a block can have"
	case threads > uint64(k.function.maxThreads):
		return cudadrv.LaunchOutOfResources, "more threads than the kernel was compiled for"
	case k.geometry.SharedBytes < 0 || k.geometry.SharedBytes > int64(k.function.dynamicSharedBytes):
		return cudadrv.InvalidValue, "more shared memory than the kernel's attribute allows"
	case int64(len(k.params)) > k.function.paramBytes:
		return cudadrv.LaunchOutOfResources, "there are more parameters than the kernel has"
	case int64(len(k.params)) < k.function.paramBytes: // hardware launches it with undefined parameters
		return cudadrv.InvalidValue, "there are fewer parameters than the kernel has"
	case k.function.module.unloaded:
		return cudadrv.InvalidHandle, "the module was unloaded"
	}
	return cudadrv.Success, ""
}

// check returns the error of a kernel that cannot be launched.
func (k kernel) check(c call.Call) error {
	if r, why := k.refused(); why != "" {
		return fail(c, r, "kernel %s, grid %v, block %v, %d bytes of shared memory, %d of parameters (it has %d): %s", k.function.name,
			k.geometry.Grid, k.geometry.Block, k.geometry.SharedBytes, len(k.params), k.function.paramBytes, why)
	}
	return nil
}

// kernelTime asks how long a kernel takes. It runs under no lock, as Config.KernelTime is the program's.
func (d *Device) kernelTime(f cudadrv.Function, geometry cudadrv.Geometry) time.Duration {
	if d.gpu.driver.config.KernelTime == nil {
		return DefaultKernelTime
	}
	d.gpu.mu.Lock()
	fn, ok := d.gpu.functions[f]
	d.gpu.mu.Unlock()
	if !ok {
		return 0 // the launch is refused
	}
	return d.timeOf(fn.name, geometry)
}

// timeOf is kernelTime of a name.
func (d *Device) timeOf(name string, geometry cudadrv.Geometry) time.Duration {
	ask := d.gpu.driver.config.KernelTime
	if ask == nil {
		return DefaultKernelTime
	}
	return max(ask(name, geometry), 0)
}

// LaunchKernel queues the time that the kernel takes. Config.Executor, if there is one, executes it at the end of that time.
// Error of a device with bytes and without an executor: ErrNoExecutor, but with Config.TimedKernels.
func (d *Device) LaunchKernel(f cudadrv.Function, geometry cudadrv.Geometry, params []byte, s cudadrv.Stream) error {
	return d.LaunchKernelDeclared(f, geometry, params, s, nil)
}

// LaunchKernelDeclared launches a kernel that, as the program declares, touches only these ranges: the executor may check that.
// nil accesses declare nothing.
func (d *Device) LaunchKernelDeclared(f cudadrv.Function, geometry cudadrv.Geometry, params []byte, s cudadrv.Stream, accesses []cudadrv.Access) error {
	const c = call.LaunchKernel
	duration := d.kernelTime(f, geometry)
	return d.do(c, cudadrv.KernelLaunches, func(g *gpu) error {
		fn, err := g.functionNamed(c, f)
		if err != nil {
			return err
		}
		k := kernel{function: fn, geometry: geometry, params: params, accesses: accesses}
		if err := k.check(c); err != nil {
			return err
		}
		if err := g.executes(c, fn); err != nil {
			return err
		}
		st, err := g.streamNamed(c, s)
		if err != nil {
			return err
		}
		k.captured = st.capture != nil
		if err := g.prepare(c, &k); err != nil {
			return err
		}
		if st.capture != nil {
			return st.add(c.String(), node{kind: cudadrv.KernelNode, kernel: k, duration: duration})
		}
		if err := g.implicit(c.String(), st); err != nil {
			return err
		}
		g.enqueue(st, duration)
		g.executeLater(st, &k)
		fn.module.drained = max(fn.module.drained, st.drained)
		g.charge(c)
		return nil
	})
}
