//go:build linux && (amd64 || arm64)

package dynamic

import (
	"math"
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// text returns a C string for the frame's call.
func (f *frame) text(s string) uintptr {
	return f.hold(unsafe.Pointer(unsafe.SliceData(append([]byte(s), 0))))
}

// ModuleUnload calls cuModuleUnload.
func (d *device) ModuleUnload(m cudadrv.Module) error {
	f, err := d.enterHandle(call.ModuleUnload, cudadrv.KernelLaunches, uint64(m))
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0] = uintptr(m)
	return d.done(f, call.ModuleUnload, d.outside(inContext, call.ModuleUnload, f, 1))
}

// ModuleGetFunction calls cuModuleGetFunction. The driver may load the kernel's code only now.
func (d *device) ModuleGetFunction(m cudadrv.Module, name string) (cudadrv.Function, error) {
	f, err := d.enterHandle(call.ModuleGetFunction, cudadrv.KernelLaunches, uint64(m))
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(m), f.text(name)
	if r := d.outside(inContext, call.ModuleGetFunction, f, 3); r != cudadrv.Success {
		return 0, d.failed(f, call.ModuleGetFunction, r, "%q", name)
	}
	return cudadrv.Function(f.out[0]), nil
}

// ModuleGetGlobal calls cuModuleGetGlobal.
func (d *device) ModuleGetGlobal(m cudadrv.Module, name string) (cudadrv.Ptr, int64, error) {
	f, err := d.enterHandle(call.ModuleGetGlobal, cudadrv.KernelLaunches, uint64(m))
	if err != nil {
		return 0, 0, err
	}
	defer d.gate.leave(f)
	f.args = [mostArgs]uintptr{f.pointer(0), f.pointer(1), uintptr(m), f.text(name)}
	if r := d.outside(inContext, call.ModuleGetGlobal, f, 4); r != cudadrv.Success {
		return 0, 0, d.failed(f, call.ModuleGetGlobal, r, "%q", name)
	}
	return cudadrv.Ptr(f.out[0]), int64(f.out[1]), nil
}

// FuncGetAttribute calls cuFuncGetAttribute.
func (d *device) FuncGetAttribute(fn cudadrv.Function, a cudadrv.FunctionAttribute) (int, error) {
	f, err := d.enterHandle(call.FuncGetAttribute, cudadrv.KernelLaunches, uint64(fn))
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(a), uintptr(fn)
	if r := d.outside(inContext, call.FuncGetAttribute, f, 3); r != cudadrv.Success {
		return 0, d.failed(f, call.FuncGetAttribute, r, "attribute %d", a)
	}
	return int(f.int32()), nil
}

// FuncSetAttribute calls cuFuncSetAttribute.
func (d *device) FuncSetAttribute(fn cudadrv.Function, a cudadrv.FunctionAttribute, value int) error {
	f, err := d.enterHandle(call.FuncSetAttribute, cudadrv.KernelLaunches, uint64(fn))
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if int(int32(value)) != value {
		return refuse(call.FuncSetAttribute, cudadrv.InvalidValue, "attribute %d to %d", a, value)
	}
	f.args[0], f.args[1], f.args[2] = uintptr(fn), uintptr(a), uintptr(value)
	if r := d.outside(inContext, call.FuncSetAttribute, f, 3); r != cudadrv.Success {
		return d.failed(f, call.FuncSetAttribute, r, "attribute %d to %d", a, value)
	}
	return nil
}

// FuncGetParamInfo calls cuFuncGetParamInfo, where the driver has it.
func (d *device) FuncGetParamInfo(fn cudadrv.Function, index int) (offsetBytes, bytes int64, err error) {
	f, err := d.enterHandle(call.FuncGetParamInfo, cudadrv.KernelLaunches, uint64(fn))
	if err != nil {
		return 0, 0, err
	}
	defer d.gate.leave(f)
	if d.lib.functions[call.FuncGetParamInfo] == 0 {
		return 0, 0, refuse(call.FuncGetParamInfo, cudadrv.NotSupported, "%s lacks it", d.lib.path)
	}
	if index < 0 {
		return 0, 0, refuse(call.FuncGetParamInfo, cudadrv.InvalidValue, "parameter %d", index)
	}
	f.args = [mostArgs]uintptr{uintptr(fn), uintptr(index), f.pointer(0), f.pointer(1)}
	if r := d.outside(inContext, call.FuncGetParamInfo, f, 4); r != cudadrv.Success {
		return 0, 0, d.failed(f, call.FuncGetParamInfo, r, "parameter %d", index)
	}
	return int64(f.out[0]), int64(f.out[1]), nil
}

// OccupancyMaxActiveBlocksPerMultiprocessor calls the function of that name.
func (d *device) OccupancyMaxActiveBlocksPerMultiprocessor(fn cudadrv.Function, blockThreads int, sharedBytes int64) (int, error) {
	const c = call.OccupancyMaxActiveBlocksPerMultiprocessor
	f, err := d.enterHandle(c, cudadrv.KernelLaunches, uint64(fn))
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	if blockThreads <= 0 || sharedBytes < 0 {
		return 0, refuse(c, cudadrv.InvalidValue, "%d threads, %d bytes", blockThreads, sharedBytes)
	}
	f.args = [mostArgs]uintptr{f.pointer(0), uintptr(fn), uintptr(blockThreads), uintptr(sharedBytes)}
	if r := d.outside(inContext, call.OccupancyMaxActiveBlocksPerMultiprocessor, f, 4); r != cudadrv.Success {
		return 0, d.failed(f, c, r, "%d threads, %d bytes", blockThreads, sharedBytes)
	}
	return int(f.int32()), nil
}

// OccupancyMaxPotentialBlockSize calls the function of that name.
func (d *device) OccupancyMaxPotentialBlockSize(fn cudadrv.Function, sharedBytes int64, maxBlockThreads int) (gridBlocks, blockThreads int, err error) {
	const c = call.OccupancyMaxPotentialBlockSize
	f, err := d.enterHandle(c, cudadrv.KernelLaunches, uint64(fn))
	if err != nil {
		return 0, 0, err
	}
	defer d.gate.leave(f)
	if sharedBytes < 0 || maxBlockThreads < 0 {
		return 0, 0, refuse(c, cudadrv.InvalidValue, "%d bytes, at most %d threads", sharedBytes, maxBlockThreads)
	}
	f.args = [mostArgs]uintptr{f.pointer(0), f.pointer(1), uintptr(fn), 0, uintptr(sharedBytes), uintptr(maxBlockThreads)}
	if r := d.outside(inContext, call.OccupancyMaxPotentialBlockSize, f, 6); r != cudadrv.Success {
		return 0, 0, d.failed(f, c, r, "%d bytes, at most %d threads", sharedBytes, maxBlockThreads)
	}
	return int(f.int32()), int(f.second()), nil
}

// parameters makes the list that names a kernel's parameters to the driver, and gives its address: 0 where there are
// none.
func (f *frame) parameters(params []byte) uintptr {
	if len(params) == 0 {
		return 0
	}
	f.bytes = uintptr(len(params))
	f.extra = [5]uintptr{
		parameterBuffer, f.hold(unsafe.Pointer(unsafe.SliceData(params))),
		parameterBytes, uintptr(unsafe.Pointer(&f.bytes)), parametersEnd,
	}
	return uintptr(unsafe.Pointer(&f.extra))
}

// LaunchKernel calls cuLaunchKernel with the parameters in one piece. Its stream determines the context, except for the
// standard streams.
func (d *device) LaunchKernel(fn cudadrv.Function, g cudadrv.Geometry, params []byte, s cudadrv.Stream) error {
	f := d.gate.enter()
	if f == nil || fn == 0 || !shareable(g) || !d.info.Capabilities.Has(cudadrv.KernelLaunches) {
		return d.refuseLaunch(f, fn, g, params)
	}
	defer d.gate.leave(f)
	f.args = [mostArgs]uintptr{
		uintptr(fn), uintptr(g.Grid.X), uintptr(g.Grid.Y), uintptr(g.Grid.Z),
		uintptr(g.Block.X), uintptr(g.Block.Y), uintptr(g.Block.Z), uintptr(g.SharedBytes), uintptr(s), 0, f.parameters(params),
	}
	if r := d.callOn(s, call.LaunchKernel, f, 11); r != cudadrv.Success {
		return d.launchFailed(f, call.LaunchKernel, r, g, params)
	}
	return nil
}

// refuseLaunch returns the reason for which a launch is not passed to the driver, and gives its frame back, if it has one.
func (d *device) refuseLaunch(f *frame, fn cudadrv.Function, g cudadrv.Geometry, params []byte) error {
	if f != nil {
		d.gate.leave(f)
	}
	f, err := d.enterHandle(call.LaunchKernel, cudadrv.KernelLaunches, uint64(fn))
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	return d.launchFailed(f, call.LaunchKernel, cudadrv.InvalidValue, g, params)
}

// shareable reports whether the driver's type has the shared memory of a launch.
func shareable(g cudadrv.Geometry) bool { return uint64(g.SharedBytes) <= math.MaxUint32 }

// launchFailed is separate from LaunchKernel: its format arguments would be in the heap at every launch.
func (d *device) launchFailed(f *frame, c call.Call, r cudadrv.Result, g cudadrv.Geometry, params []byte) error {
	return d.failed(f, c, r, "grid %v, block %v, %d bytes of shared memory, %d bytes of parameters", g.Grid, g.Block, g.SharedBytes, len(params))
}
