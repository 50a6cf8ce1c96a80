package sim

import (
	"slices"
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

var _ cudadrv.Graphs = (*Device)(nil)

// StreamBeginCapture makes later work of s part of a graph.
func (d *Device) StreamBeginCapture(s cudadrv.Stream, mode cudadrv.CaptureMode) error {
	const c = call.StreamBeginCapture
	return d.do(c, cudadrv.GraphLaunches, func(g *gpu) error {
		if mode > cudadrv.CaptureRelaxed {
			return fail(c, cudadrv.InvalidValue, "mode %d", mode)
		}
		return g.beginCapture(s, mode)
	})
}

// StreamEndCapture ends the capture that began with s. It returns the errors of EndCapture. The ids of the graph and its nodes
// are never used again.
func (d *Device) StreamEndCapture(s cudadrv.Stream) (cudadrv.Graph, error) {
	const c = call.StreamEndCapture
	return value(d, c, cudadrv.GraphLaunches, func(g *gpu) (cudadrv.Graph, error) {
		graph, err := g.endCapture(s)
		if err != nil {
			return 0, err
		}
		for _, n := range graph.nodes {
			name := cudadrv.GraphNode(g.driver.id(firstNode, &g.driver.nodes))
			graph.names = append(graph.names, name)
			g.nodes[name] = n.kind
		}
		id := cudadrv.Graph(g.driver.id(firstGraph, &g.driver.graphs))
		g.graphs[id] = graph
		return id, nil
	})
}

// StreamGetCaptureInfo returns the result of StreamIsCapturing and the number of the capture, 0 for none.
func (d *Device) StreamGetCaptureInfo(s cudadrv.Stream) (cudadrv.CaptureStatus, uint64, error) {
	const c = call.StreamGetCaptureInfo
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := d.enterWith(c, cudadrv.GraphLaunches); err != nil {
		return 0, 0, err
	}
	return g.captureOf(c, s)
}

// graphFor returns the graph of a call.
func (d *Device) graphFor(c call.Call, graph cudadrv.Graph) (*Graph, error) {
	if err := d.enterWith(c, cudadrv.GraphLaunches); err != nil {
		return nil, err
	}
	found, ok := d.gpu.graphs[graph]
	if !ok {
		return nil, fail(c, cudadrv.InvalidHandle, "no graph %#x", uint64(graph))
	}
	return found, nil
}

// GraphGetNodes returns the nodes, in the order of the calls that made them.
func (d *Device) GraphGetNodes(graph cudadrv.Graph) ([]cudadrv.GraphNode, error) {
	const c = call.GraphGetNodes
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	found, err := d.graphFor(c, graph)
	if err != nil {
		return nil, err
	}
	return slices.Clone(found.names), nil
}

// GraphNodeGetType returns the kind of a node of a graph that was not destroyed.
func (d *Device) GraphNodeGetType(n cudadrv.GraphNode) (cudadrv.NodeKind, error) {
	const c = call.GraphNodeGetType
	return value(d, c, cudadrv.GraphLaunches, func(g *gpu) (cudadrv.NodeKind, error) {
		kind, ok := g.nodes[n]
		if !ok {
			return 0, fail(c, cudadrv.InvalidHandle, "no node %#x", uint64(n))
		}
		return kind, nil
	})
}

// GraphDestroy ends the names of a graph and its nodes.
func (d *Device) GraphDestroy(graph cudadrv.Graph) error {
	const c = call.GraphDestroy
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	found, err := d.graphFor(c, graph)
	if err != nil {
		return err
	}
	for _, name := range found.names {
		delete(g.nodes, name)
	}
	delete(g.graphs, graph)
	return nil
}

// graphExec is a graph that can be launched.
type graphExec struct {
	nodes   []node
	names   []cudadrv.GraphNode // of the graph that it was made of
	drained time.Duration       // when the last launch has finished
}

// GraphInstantiate copies the nodes of a graph.
func (d *Device) GraphInstantiate(graph cudadrv.Graph) (cudadrv.GraphExec, error) {
	const c = call.GraphInstantiate
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	found, err := d.graphFor(c, graph)
	if err != nil {
		return 0, err
	}
	if err := runnable(c, found.nodes); err != nil {
		return 0, err
	}
	id := cudadrv.GraphExec(g.driver.id(firstExec, &g.driver.execs))
	g.execs[id] = &graphExec{nodes: slices.Clone(found.nodes), names: found.names}
	g.chargeBytes(c, int64(len(found.nodes)))
	return id, nil
}

// runnable returns the error of a graph with a kernel whose module was unloaded.
func runnable(c call.Call, all []node) error {
	for _, n := range all {
		if fn := n.kernel.function; fn != nil && fn.module.unloaded {
			return fail(c, cudadrv.InvalidHandle, "the module of kernel %s was unloaded", fn.name)
		}
	}
	return nil
}

// execFor returns the executable graph of a call.
func (d *Device) execFor(c call.Call, x cudadrv.GraphExec) (*graphExec, error) {
	if err := d.enterWith(c, cudadrv.GraphLaunches); err != nil {
		return nil, err
	}
	found, ok := d.gpu.execs[x]
	if !ok {
		return nil, fail(c, cudadrv.InvalidHandle, "no graph %#x that can be launched", uint64(x))
	}
	return found, nil
}

// alike reports whether two lists of nodes have the same kinds in the same order and depend on the same ones.
func alike(a, b []node) bool {
	return slices.EqualFunc(a, b, func(m, n node) bool {
		return m.kind == n.kind && slices.Equal(m.behind, n.behind)
	})
}

// GraphExecUpdate replaces the nodes of x by copies of the nodes of a graph with the same topology. x keeps the names of its
// first graph.
func (d *Device) GraphExecUpdate(x cudadrv.GraphExec, graph cudadrv.Graph) error {
	const c = call.GraphExecUpdate
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	exec, err := d.execFor(c, x)
	if err != nil {
		return err
	}
	found, ok := g.graphs[graph]
	if !ok {
		return fail(c, cudadrv.InvalidHandle, "no graph %#x", uint64(graph))
	}
	if err := runnable(c, found.nodes); err != nil {
		return err
	}
	if !alike(exec.nodes, found.nodes) {
		return fail(c, cudadrv.UpdateFailure, "the topology of %d nodes differs from %d nodes", len(found.nodes), len(exec.nodes))
	}
	exec.nodes = slices.Clone(found.nodes)
	g.chargeBytes(c, int64(len(found.nodes)))
	return nil
}

// GraphExecKernelNodeSetParams replaces the launch of a kernel node of x.
func (d *Device) GraphExecKernelNodeSetParams(x cudadrv.GraphExec, n cudadrv.GraphNode, f cudadrv.Function, geometry cudadrv.Geometry, params []byte) error {
	return d.KernelNodeSetParamsDeclared(x, n, f, geometry, params, nil)
}

// KernelNodeSetParamsDeclared sets the launch of a kernel that touches only these ranges, as LaunchKernelDeclared does.
func (d *Device) KernelNodeSetParamsDeclared(x cudadrv.GraphExec, n cudadrv.GraphNode, f cudadrv.Function, geometry cudadrv.Geometry, params []byte, accesses []cudadrv.Access) error {
	const c = call.GraphExecKernelNodeSetParams
	duration := d.kernelTime(f, geometry)
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	exec, err := d.execFor(c, x)
	if err != nil {
		return err
	}
	i := slices.Index(exec.names, n)
	if i < 0 || exec.nodes[i].kind != cudadrv.KernelNode {
		return fail(c, cudadrv.InvalidValue, "node %#x is no kernel of the graph", uint64(n))
	}
	fn, err := g.functionNamed(c, f)
	if err != nil {
		return err
	}
	k := kernel{function: fn, geometry: geometry, params: slices.Clone(params), accesses: accesses, replaces: true, captured: true}
	if err := k.check(c); err != nil {
		return err
	}
	if err := g.prepare(c, &k); err != nil {
		return err
	}
	exec.nodes[i].kernel, exec.nodes[i].duration = k, duration
	return nil
}

// GraphUpload takes no time: the simulated GPU has the graph at once.
func (d *Device) GraphUpload(x cudadrv.GraphExec, s cudadrv.Stream) error {
	const c = call.GraphUpload
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := d.execFor(c, x); err != nil {
		return err
	}
	st, err := g.streamNamed(c, s)
	if err != nil {
		return err
	}
	if err := g.unwaitable(c, st); err != nil {
		return err
	}
	return nil
}

// GraphLaunch queues the work of x on s, one node after the other, after the previous launch of x. On a captured stream it is
// refused, and ends that capture.
func (d *Device) GraphLaunch(x cudadrv.GraphExec, s cudadrv.Stream) error {
	const c = call.GraphLaunch
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	exec, err := d.execFor(c, x)
	if err != nil {
		return err
	}
	st, err := g.streamNamed(c, s)
	if err != nil {
		return err
	}
	if err := runnable(c, exec.nodes); err != nil {
		return err
	}
	if err := g.unwaitable(c, st); err != nil {
		return err
	}
	st.drained = max(st.drained, exec.drained)
	g.replay(st, exec.nodes)
	exec.drained = st.drained
	g.charge(c)
	return nil
}

// GraphExecDestroy destroys the handle x. Launches in progress finish.
func (d *Device) GraphExecDestroy(x cudadrv.GraphExec) error {
	const c = call.GraphExecDestroy
	g := d.gpu
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, err := d.execFor(c, x); err != nil {
		return err
	}
	delete(g.execs, x)
	return nil
}
