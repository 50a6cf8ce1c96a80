//go:build linux && (amd64 || arm64)

package dynamic

import (
	"unsafe"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// StreamBeginCapture calls cuStreamBeginCapture on the calling thread, without changing it.
func (d *device) StreamBeginCapture(s cudadrv.Stream, mode cudadrv.CaptureMode) error {
	f, err := d.enterFeature(call.StreamBeginCapture, cudadrv.GraphLaunches)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	counted := mode != cudadrv.CaptureRelaxed
	if counted {
		d.lib.captures.begin(s)
	}
	f.args[0], f.args[1] = uintptr(s), uintptr(mode)
	r := d.callOn(s, call.StreamBeginCapture, f, 2)
	if r != cudadrv.Success && counted {
		d.lib.captures.end(s)
	}
	return d.done(f, call.StreamBeginCapture, r)
}

// StreamEndCapture calls cuStreamEndCapture on the calling thread, without changing it.
func (d *device) StreamEndCapture(s cudadrv.Stream) (cudadrv.Graph, error) {
	f, err := d.enterFeature(call.StreamEndCapture, cudadrv.GraphLaunches)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = uintptr(s), f.pointer(0)
	r := d.callOn(s, call.StreamEndCapture, f, 2)
	if !f.failing && r != cudadrv.CaptureUnmatched { // on the wrong thread it has ended, too
		d.lib.captures.end(s)
	}
	if r != cudadrv.Success {
		return 0, d.failed(f, call.StreamEndCapture, r, "")
	}
	return cudadrv.Graph(f.out[0]), nil
}

// ThreadExchangeStreamCaptureMode calls the function of that name on the calling thread, without changing it otherwise.
func (d *device) ThreadExchangeStreamCaptureMode(mode cudadrv.CaptureMode) (cudadrv.CaptureMode, error) {
	f, err := d.enterFeature(call.ThreadExchangeStreamCaptureMode, cudadrv.GraphLaunches)
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.mode = uint64(mode)
	if r := d.exchange(f); r != cudadrv.Success {
		return 0, d.failed(f, call.ThreadExchangeStreamCaptureMode, r, "mode %d", mode)
	}
	return cudadrv.CaptureMode(f.mode), nil
}

// StreamGetCaptureInfo calls cuStreamGetCaptureInfo, and drops the unfinished graph.
func (d *device) StreamGetCaptureInfo(s cudadrv.Stream) (cudadrv.CaptureStatus, uint64, error) {
	f, err := d.enterFeature(call.StreamGetCaptureInfo, cudadrv.GraphLaunches)
	if err != nil {
		return 0, 0, err
	}
	defer d.gate.leave(f)
	f.out[1] = 0
	f.args = [mostArgs]uintptr{uintptr(s), f.pointer(0), f.pointer(1)}
	if r := d.callOn(s, call.StreamGetCaptureInfo, f, 6); r != cudadrv.Success {
		return 0, 0, d.failed(f, call.StreamGetCaptureInfo, r, "")
	}
	return cudadrv.CaptureStatus(f.int32()), f.out[1], nil
}

// GraphGetNodes calls cuGraphGetNodes, twice: for the number, and for the nodes.
func (d *device) GraphGetNodes(g cudadrv.Graph) ([]cudadrv.GraphNode, error) {
	f, err := d.enterHandle(call.GraphGetNodes, cudadrv.GraphLaunches, uint64(g))
	if err != nil {
		return nil, err
	}
	defer d.gate.leave(f)
	var nodes []cudadrv.GraphNode
	for {
		f.out[0] = uint64(len(nodes))
		f.args = [mostArgs]uintptr{uintptr(g), f.hold(unsafe.Pointer(unsafe.SliceData(nodes))), f.pointer(0)}
		if r := d.outside(inContext, call.GraphGetNodes, f, 3); r != cudadrv.Success {
			return nil, d.failed(f, call.GraphGetNodes, r, "")
		}
		if nodes != nil || f.out[0] == 0 {
			return nodes[:f.out[0]], nil
		}
		nodes = make([]cudadrv.GraphNode, f.out[0])
	}
}

// GraphNodeGetType calls cuGraphNodeGetType.
func (d *device) GraphNodeGetType(n cudadrv.GraphNode) (cudadrv.NodeKind, error) {
	f, err := d.enterHandle(call.GraphNodeGetType, cudadrv.GraphLaunches, uint64(n))
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = uintptr(n), f.pointer(0)
	if r := d.outside(inContext, call.GraphNodeGetType, f, 2); r != cudadrv.Success {
		return 0, d.failed(f, call.GraphNodeGetType, r, "")
	}
	return cudadrv.NodeKind(f.int32()), nil
}

// GraphDestroy calls cuGraphDestroy.
func (d *device) GraphDestroy(g cudadrv.Graph) error {
	return d.onGraph(call.GraphDestroy, uint64(g))
}

// GraphExecDestroy calls cuGraphExecDestroy.
func (d *device) GraphExecDestroy(x cudadrv.GraphExec) error {
	return d.onGraph(call.GraphExecDestroy, uint64(x))
}

// onGraph makes a call that takes a handle and nothing else.
func (d *device) onGraph(c call.Call, handle uint64) error {
	f, err := d.enterHandle(c, cudadrv.GraphLaunches, handle)
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0] = uintptr(handle)
	return d.done(f, c, d.outside(inContext, c, f, 1))
}

// GraphInstantiate calls cuGraphInstantiateWithFlags without flags.
func (d *device) GraphInstantiate(g cudadrv.Graph) (cudadrv.GraphExec, error) {
	f, err := d.enterHandle(call.GraphInstantiate, cudadrv.GraphLaunches, uint64(g))
	if err != nil {
		return 0, err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1], f.args[2] = f.pointer(0), uintptr(g), 0
	if r := d.outside(inContext, call.GraphInstantiate, f, 3); r != cudadrv.Success {
		return 0, d.failed(f, call.GraphInstantiate, r, "")
	}
	return cudadrv.GraphExec(f.out[0]), nil
}

// GraphExecUpdate calls cuGraphExecUpdate.
func (d *device) GraphExecUpdate(x cudadrv.GraphExec, g cudadrv.Graph) error {
	f, err := d.enterHandle(call.GraphExecUpdate, cudadrv.GraphLaunches, min(uint64(x), uint64(g)))
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	info := (*updateInfo)(unsafe.Pointer(&f.block))
	*info = updateInfo{}
	f.args[0], f.args[1], f.args[2] = uintptr(x), uintptr(g), uintptr(unsafe.Pointer(info))
	if r := d.outside(inContext, call.GraphExecUpdate, f, 3); r != cudadrv.Success {
		return d.failed(f, call.GraphExecUpdate, r, "the driver's reason %d", info.reason)
	}
	return nil
}

// GraphExecKernelNodeSetParams calls cuGraphExecKernelNodeSetParams.
func (d *device) GraphExecKernelNodeSetParams(x cudadrv.GraphExec, n cudadrv.GraphNode, fn cudadrv.Function, g cudadrv.Geometry, params []byte) error {
	const c = call.GraphExecKernelNodeSetParams
	f, err := d.enterHandle(c, cudadrv.GraphLaunches, min(uint64(x), uint64(n), uint64(fn)))
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	if !shareable(g) {
		return d.launchFailed(f, c, cudadrv.InvalidValue, g, params)
	}
	node := (*kernelNode)(unsafe.Pointer(&f.block))
	*node = kernelNode{
		function: fn, grid: g.Grid, block: g.Block, sharedBytes: uint32(g.SharedBytes), extra: uint64(f.parameters(params)),
	}
	f.args[0], f.args[1], f.args[2] = uintptr(x), uintptr(n), uintptr(unsafe.Pointer(node))
	if r := d.outside(inContext, call.GraphExecKernelNodeSetParams, f, 3); r != cudadrv.Success {
		return d.launchFailed(f, c, r, g, params)
	}
	return nil
}

// GraphUpload calls cuGraphUpload.
func (d *device) GraphUpload(x cudadrv.GraphExec, s cudadrv.Stream) error {
	f, err := d.enterHandle(call.GraphUpload, cudadrv.GraphLaunches, uint64(x))
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = uintptr(x), uintptr(s)
	return d.done(f, call.GraphUpload, d.outside(on(s), call.GraphUpload, f, 2))
}

// GraphLaunch calls cuGraphLaunch.
func (d *device) GraphLaunch(x cudadrv.GraphExec, s cudadrv.Stream) error {
	f, err := d.enterHandle(call.GraphLaunch, cudadrv.GraphLaunches, uint64(x))
	if err != nil {
		return err
	}
	defer d.gate.leave(f)
	f.args[0], f.args[1] = uintptr(x), uintptr(s)
	return d.done(f, call.GraphLaunch, d.callOn(s, call.GraphLaunch, f, 2))
}
