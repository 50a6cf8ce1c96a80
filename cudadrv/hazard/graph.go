package hazard

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

var _ cudadrv.Graphs = (*Device)(nil)

// StreamBeginCapture records later accesses of the stream's work in the graph.
func (d *Device) StreamBeginCapture(s cudadrv.Stream, mode cudadrv.CaptureMode) error {
	return d.checker.call(func() error { return d.Device.StreamBeginCapture(s, mode) }, func() { d.checker.core.CaptureBegan(s) })
}

// StreamEndCapture ends that.
func (d *Device) StreamEndCapture(s cudadrv.Stream) (g cudadrv.Graph, err error) {
	d.checker.do(func() {
		g, err = d.Device.StreamEndCapture(s)
		switch {
		case err == nil:
			d.checker.core.CaptureEnded(s, g)
		case errors.Is(err, cudadrv.CaptureUnmatched): // the capture continues
		default:
			d.checker.core.CaptureDropped(s)
		}
	})
	return g, err
}

// GraphGetNodes notes the names of the nodes.
func (d *Device) GraphGetNodes(g cudadrv.Graph) (nodes []cudadrv.GraphNode, err error) {
	err = d.checker.call(func() (err error) { nodes, err = d.Device.GraphGetNodes(g); return err },
		func() { d.checker.core.NodesNamed(g, nodes) })
	return nodes, err
}

// GraphDestroy forgets a graph.
func (d *Device) GraphDestroy(g cudadrv.Graph) error {
	return d.checker.call(func() error { return d.Device.GraphDestroy(g) }, func() { d.checker.core.GraphDestroyed(g) })
}

// GraphInstantiate makes an executable graph whose launches make the captured accesses.
func (d *Device) GraphInstantiate(g cudadrv.Graph) (x cudadrv.GraphExec, err error) {
	err = d.checker.call(func() (err error) { x, err = d.Device.GraphInstantiate(g); return err },
		func() { d.checker.core.GraphInstantiated(g, x) })
	return x, err
}

// GraphExecUpdate replaces the accesses of x by the graph's.
func (d *Device) GraphExecUpdate(x cudadrv.GraphExec, g cudadrv.Graph) error {
	return d.checker.call(func() error { return d.Device.GraphExecUpdate(x, g) }, func() { d.checker.core.GraphUpdated(x, g) })
}

// GraphExecKernelNodeSetParams makes the accesses of the kernel unknown.
func (d *Device) GraphExecKernelNodeSetParams(x cudadrv.GraphExec, n cudadrv.GraphNode, f cudadrv.Function, g cudadrv.Geometry, params []byte) error {
	return d.checker.call(func() error { return d.Device.GraphExecKernelNodeSetParams(x, n, f, g, params) },
		func() { d.checker.core.NodeChanged(x, n) })
}

// KernelNodeSetParamsTouching sets the launch of a kernel that reads and writes only these ranges.
func (d *Device) KernelNodeSetParamsTouching(x cudadrv.GraphExec, n cudadrv.GraphNode, f cudadrv.Function, g cudadrv.Geometry, params []byte, accesses []cudadrv.Access) error {
	from := d.driver.helpers.Load().Here(1)
	return d.checker.call(func() error {
		if executes, ok := d.inner.(executes); ok {
			return executes.KernelNodeSetParamsDeclared(x, n, f, g, params, accesses)
		}
		return d.Device.GraphExecKernelNodeSetParams(x, n, f, g, params)
	}, func() { d.checker.core.NodeTouches(x, n, from, accesses) })
}

// GraphLaunch makes the accesses of the graph's nodes.
func (d *Device) GraphLaunch(x cudadrv.GraphExec, s cudadrv.Stream) error {
	from := d.driver.helpers.Load().Here(1)
	return d.checker.call(func() error { return d.Device.GraphLaunch(x, s) }, func() { d.checker.core.GraphLaunched(x, s, from) })
}

// GraphExecDestroy forgets x.
func (d *Device) GraphExecDestroy(x cudadrv.GraphExec) error {
	return d.checker.call(func() error { return d.Device.GraphExecDestroy(x) }, func() { d.checker.core.GraphExecDestroyed(x) })
}
