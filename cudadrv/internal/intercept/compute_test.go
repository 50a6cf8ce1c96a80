package intercept_test

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
	"github.com/go-vram/vram/cudadrv/internal/intercept"
)

func (f full) ModuleLoadData([]byte) (cudadrv.Module, error) { return 0, f.note("cuModuleLoadData") }
func (f full) ModuleUnload(cudadrv.Module) error             { return f.note("cuModuleUnload") }

func (f full) ModuleGetFunction(cudadrv.Module, string) (cudadrv.Function, error) {
	return 0, f.note("cuModuleGetFunction")
}

func (f full) ModuleGetGlobal(cudadrv.Module, string) (cudadrv.Ptr, int64, error) {
	return 0, 0, f.note("cuModuleGetGlobal")
}

func (f full) LinkImages(...[]byte) ([]byte, error) { return nil, f.note("cuLinkComplete") }

func (f full) FuncGetAttribute(cudadrv.Function, cudadrv.FunctionAttribute) (int, error) {
	return 0, f.note("cuFuncGetAttribute")
}

func (f full) FuncSetAttribute(cudadrv.Function, cudadrv.FunctionAttribute, int) error {
	return f.note("cuFuncSetAttribute")
}

func (f full) FuncGetParamInfo(cudadrv.Function, int) (offsetBytes, bytes int64, err error) {
	return 0, 0, f.note("cuFuncGetParamInfo")
}

func (f full) OccupancyMaxActiveBlocksPerMultiprocessor(cudadrv.Function, int, int64) (int, error) {
	return 0, f.note("cuOccupancyMaxActiveBlocksPerMultiprocessor")
}

func (f full) OccupancyMaxPotentialBlockSize(cudadrv.Function, int64, int) (gridBlocks, blockThreads int, err error) {
	return 0, 0, f.note("cuOccupancyMaxPotentialBlockSize")
}

func (f full) LaunchKernel(cudadrv.Function, cudadrv.Geometry, []byte, cudadrv.Stream) error {
	return f.note("cuLaunchKernel")
}

func (f full) StreamBeginCapture(cudadrv.Stream, cudadrv.CaptureMode) error {
	return f.note("cuStreamBeginCapture")
}

func (f full) StreamEndCapture(cudadrv.Stream) (cudadrv.Graph, error) {
	return 0, f.note("cuStreamEndCapture")
}

func (f full) ThreadExchangeStreamCaptureMode(cudadrv.CaptureMode) (cudadrv.CaptureMode, error) {
	return 0, f.note("cuThreadExchangeStreamCaptureMode")
}

func (f full) StreamGetCaptureInfo(cudadrv.Stream) (cudadrv.CaptureStatus, uint64, error) {
	return 0, 0, f.note("cuStreamGetCaptureInfo")
}

func (f full) GraphGetNodes(cudadrv.Graph) ([]cudadrv.GraphNode, error) {
	return nil, f.note("cuGraphGetNodes")
}

func (f full) GraphNodeGetType(cudadrv.GraphNode) (cudadrv.NodeKind, error) {
	return 0, f.note("cuGraphNodeGetType")
}

func (f full) GraphDestroy(cudadrv.Graph) error { return f.note("cuGraphDestroy") }

func (f full) GraphInstantiate(cudadrv.Graph) (cudadrv.GraphExec, error) {
	return 0, f.note("cuGraphInstantiate")
}

func (f full) GraphExecUpdate(cudadrv.GraphExec, cudadrv.Graph) error {
	return f.note("cuGraphExecUpdate")
}

func (f full) GraphExecKernelNodeSetParams(cudadrv.GraphExec, cudadrv.GraphNode, cudadrv.Function, cudadrv.Geometry, []byte) error {
	return f.note("cuGraphExecKernelNodeSetParams")
}

func (f full) GraphUpload(cudadrv.GraphExec, cudadrv.Stream) error { return f.note("cuGraphUpload") }

func (f full) GraphLaunch(cudadrv.GraphExec, cudadrv.Stream) error { return f.note("cuGraphLaunch") }

func (f full) GraphExecDestroy(cudadrv.GraphExec) error { return f.note("cuGraphExecDestroy") }

func (f full) EventCreateTimed() (cudadrv.Event, error) { return 0, f.note("cuEventCreate") }

func (f full) EventElapsedTime(cudadrv.Event, cudadrv.Event) (time.Duration, error) {
	return 0, f.note("cuEventElapsedTime")
}

func (f full) MemsetD16Async(cudadrv.Ptr, uint16, int64, cudadrv.Stream) error {
	return f.note("cuMemsetD16Async")
}

func (f full) MemsetD32Async(cudadrv.Ptr, uint32, int64, cudadrv.Stream) error {
	return f.note("cuMemsetD32Async")
}

func (f full) Memcpy2DAsync(cudadrv.Copy2D, cudadrv.Stream) error { return f.note("cuMemcpy2DAsync") }

func (f full) Context() cudadrv.Context { return 77 }

func (f full) DeviceCanAccessPeer(int) (bool, error) { return false, f.note("cuDeviceCanAccessPeer") }

func (f full) MemSetPeerAccess(cudadrv.Ptr, int64, ...int) error { return f.note("cuMemSetAccess") }

func (f full) MemcpyPeerAsync(cudadrv.Ptr, cudadrv.Context, cudadrv.Ptr, cudadrv.Context, int64, cudadrv.Stream) error {
	return f.note("cuMemcpyPeerAsync")
}

func (f full) EventCreateShared() (cudadrv.Event, error) { return 0, f.note("cuEventCreate") }

func (f full) IpcGetEventHandle(cudadrv.Event) (cudadrv.EventDescriptor, error) {
	return cudadrv.EventDescriptor{}, f.note("cuIpcGetEventHandle")
}

func (f full) TensorMapEncodeTiled(cudadrv.TensorMap) (cudadrv.EncodedTensorMap, error) {
	return cudadrv.EncodedTensorMap{}, f.note("cuTensorMapEncodeTiled")
}

func (f full) IpcOpenEventHandle(cudadrv.EventDescriptor) (cudadrv.Event, error) {
	return 0, f.note("cuIpcOpenEventHandle")
}

// third drops the first two results.
func third[A, B any](_ A, _ B, err error) error { return err }

// computeCalls returns the calls for kernels, graphs, peers and related objects.
func computeCalls(dev *intercept.Device) []optionalCall {
	return []optionalCall{
		{call.ModuleLoadData, func() error { return second(dev.ModuleLoadData(nil)) }},
		{call.ModuleUnload, func() error { return dev.ModuleUnload(1) }},
		{call.ModuleGetFunction, func() error { return second(dev.ModuleGetFunction(1, "")) }},
		{call.ModuleGetGlobal, func() error { return third(dev.ModuleGetGlobal(1, "")) }},
		{call.LinkComplete, func() error { return second(dev.LinkImages(nil)) }},
		{call.FuncGetAttribute, func() error { return second(dev.FuncGetAttribute(1, 0)) }},
		{call.FuncSetAttribute, func() error { return dev.FuncSetAttribute(1, 0, 0) }},
		{call.FuncGetParamInfo, func() error { return third(dev.FuncGetParamInfo(1, 0)) }},
		{call.OccupancyMaxActiveBlocksPerMultiprocessor, func() error {
			return second(dev.OccupancyMaxActiveBlocksPerMultiprocessor(1, 1, 0))
		}},
		{call.OccupancyMaxPotentialBlockSize, func() error { return third(dev.OccupancyMaxPotentialBlockSize(1, 0, 0)) }},
		{call.LaunchKernel, func() error { return dev.LaunchKernel(1, cudadrv.Geometry{}, nil, 1) }},
		{call.StreamBeginCapture, func() error { return dev.StreamBeginCapture(1, 0) }},
		{call.StreamEndCapture, func() error { return second(dev.StreamEndCapture(1)) }},
		{call.ThreadExchangeStreamCaptureMode, func() error { return second(dev.ThreadExchangeStreamCaptureMode(0)) }},
		{call.StreamGetCaptureInfo, func() error { return third(dev.StreamGetCaptureInfo(1)) }},
		{call.GraphGetNodes, func() error { return second(dev.GraphGetNodes(1)) }},
		{call.GraphNodeGetType, func() error { return second(dev.GraphNodeGetType(1)) }},
		{call.GraphDestroy, func() error { return dev.GraphDestroy(1) }},
		{call.GraphInstantiate, func() error { return second(dev.GraphInstantiate(1)) }},
		{call.GraphExecUpdate, func() error { return dev.GraphExecUpdate(1, 1) }},
		{call.GraphExecKernelNodeSetParams, func() error {
			return dev.GraphExecKernelNodeSetParams(1, 1, 1, cudadrv.Geometry{}, nil)
		}},
		{call.GraphUpload, func() error { return dev.GraphUpload(1, 1) }},
		{call.GraphLaunch, func() error { return dev.GraphLaunch(1, 1) }},
		{call.GraphExecDestroy, func() error { return dev.GraphExecDestroy(1) }},
		{call.EventCreate, func() error { return second(dev.EventCreateTimed()) }},
		{call.EventElapsedTime, func() error { return second(dev.EventElapsedTime(1, 1)) }},
		{call.MemsetD16Async, func() error { return dev.MemsetD16Async(1, 0, 1, 1) }},
		{call.MemsetD32Async, func() error { return dev.MemsetD32Async(1, 0, 1, 1) }},
		{call.Memcpy2DAsync, func() error { return dev.Memcpy2DAsync(cudadrv.Copy2D{}, 1) }},
		{call.DeviceCanAccessPeer, func() error { return second(dev.DeviceCanAccessPeer(0)) }},
		{call.MemSetAccess, func() error { return dev.MemSetPeerAccess(1, 1, 0) }},
		{call.MemcpyPeerAsync, func() error { return dev.MemcpyPeerAsync(1, 1, 1, 1, 1, 1) }},
		{call.EventCreate, func() error { return second(dev.EventCreateShared()) }},
		{call.IpcGetEventHandle, func() error { return second(dev.IpcGetEventHandle(1)) }},
		{call.TensorMapEncodeTiled, func() error { return second(dev.TensorMapEncodeTiled(cudadrv.TensorMap{})) }},
		{call.IpcOpenEventHandle, func() error { return second(dev.IpcOpenEventHandle(cudadrv.EventDescriptor{})) }},
	}
}
