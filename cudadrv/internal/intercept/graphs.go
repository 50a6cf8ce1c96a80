package intercept

import (
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.Graphs = (*Device)(nil)

// StreamBeginCapture forwards cuStreamBeginCapture.
func (d *Device) StreamBeginCapture(s cudadrv.Stream, mode cudadrv.CaptureMode) error {
	return forward(d, call.StreamBeginCapture, func(t cudadrv.Graphs) error { return t.StreamBeginCapture(s, mode) })
}

// StreamEndCapture forwards cuStreamEndCapture.
func (d *Device) StreamEndCapture(s cudadrv.Stream) (cudadrv.Graph, error) {
	return obtain(d, call.StreamEndCapture, func(t cudadrv.Graphs) (cudadrv.Graph, error) { return t.StreamEndCapture(s) })
}

// ThreadExchangeStreamCaptureMode forwards cuThreadExchangeStreamCaptureMode.
func (d *Device) ThreadExchangeStreamCaptureMode(mode cudadrv.CaptureMode) (cudadrv.CaptureMode, error) {
	return obtain(d, call.ThreadExchangeStreamCaptureMode, func(t cudadrv.Graphs) (cudadrv.CaptureMode, error) {
		return t.ThreadExchangeStreamCaptureMode(mode)
	})
}

// StreamGetCaptureInfo forwards cuStreamGetCaptureInfo.
func (d *Device) StreamGetCaptureInfo(s cudadrv.Stream) (cudadrv.CaptureStatus, uint64, error) {
	return obtainTwo(d, call.StreamGetCaptureInfo, func(t cudadrv.Graphs) (cudadrv.CaptureStatus, uint64, error) {
		return t.StreamGetCaptureInfo(s)
	})
}

// GraphGetNodes forwards cuGraphGetNodes.
func (d *Device) GraphGetNodes(g cudadrv.Graph) ([]cudadrv.GraphNode, error) {
	return obtain(d, call.GraphGetNodes, func(t cudadrv.Graphs) ([]cudadrv.GraphNode, error) { return t.GraphGetNodes(g) })
}

// GraphNodeGetType forwards cuGraphNodeGetType.
func (d *Device) GraphNodeGetType(n cudadrv.GraphNode) (cudadrv.NodeKind, error) {
	return obtain(d, call.GraphNodeGetType, func(t cudadrv.Graphs) (cudadrv.NodeKind, error) { return t.GraphNodeGetType(n) })
}

// GraphDestroy forwards cuGraphDestroy.
func (d *Device) GraphDestroy(g cudadrv.Graph) error {
	return forward(d, call.GraphDestroy, func(t cudadrv.Graphs) error { return t.GraphDestroy(g) })
}

// GraphInstantiate forwards cuGraphInstantiate.
func (d *Device) GraphInstantiate(g cudadrv.Graph) (cudadrv.GraphExec, error) {
	return obtain(d, call.GraphInstantiate, func(t cudadrv.Graphs) (cudadrv.GraphExec, error) { return t.GraphInstantiate(g) })
}

// GraphExecUpdate forwards cuGraphExecUpdate.
func (d *Device) GraphExecUpdate(x cudadrv.GraphExec, g cudadrv.Graph) error {
	return forward(d, call.GraphExecUpdate, func(t cudadrv.Graphs) error { return t.GraphExecUpdate(x, g) })
}

// GraphExecKernelNodeSetParams forwards cuGraphExecKernelNodeSetParams.
func (d *Device) GraphExecKernelNodeSetParams(x cudadrv.GraphExec, n cudadrv.GraphNode, f cudadrv.Function, g cudadrv.Geometry, params []byte) error {
	return forward(d, call.GraphExecKernelNodeSetParams, func(t cudadrv.Graphs) error {
		return t.GraphExecKernelNodeSetParams(x, n, f, g, params)
	})
}

// GraphUpload forwards cuGraphUpload.
func (d *Device) GraphUpload(x cudadrv.GraphExec, s cudadrv.Stream) error {
	return forward(d, call.GraphUpload, func(t cudadrv.Graphs) error { return t.GraphUpload(x, s) })
}

// GraphLaunch forwards cuGraphLaunch.
func (d *Device) GraphLaunch(x cudadrv.GraphExec, s cudadrv.Stream) error {
	return forward(d, call.GraphLaunch, func(t cudadrv.Graphs) error { return t.GraphLaunch(x, s) })
}

// GraphExecDestroy forwards cuGraphExecDestroy.
func (d *Device) GraphExecDestroy(x cudadrv.GraphExec) error {
	return forward(d, call.GraphExecDestroy, func(t cudadrv.Graphs) error { return t.GraphExecDestroy(x) })
}
