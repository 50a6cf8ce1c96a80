package cuda

import (
	"errors"

	"github.com/go-vram/vram/cudadrv"
)

// ErrNoKernel says that a graph has no kernel of that index.
var ErrNoKernel = errors.New("cuda: the graph has no such kernel")

// ErrNodes refuses a graph whose kernels cannot be identified: some were not launched by Context.Launch.
var ErrNodes = errors.New("cuda: the graph has kernels that this package did not launch")

// SetArgs replaces geometry and arguments of a kernel, by its index in Kernels, for launches to come: a launch uses all of the
// old ones or all of the new ones, and waits for the work on its own buffers. SetArgs waits until the calls of Launch that have
// begun have returned, not for the device. Buffers are checked as in Context.Launch, and the graph keeps their memory until
// they are replaced in turn and the launches that had them have finished. Buffers of the capture stay the graph's until Close:
// other work of it may have them. Errors: *ArgumentError, ErrNoKernel, ErrNodes, ErrGraphClosed, and the driver's: with each
// the graph keeps its arguments.
func (g *Graph) SetArgs(kernel int, geometry Geometry, args ...Arg) error {
	if g == nil || g.on == nil {
		return ErrNotOpen
	}
	g.gate.mu.Lock()
	defer g.gate.mu.Unlock()
	if g.gate.closed() {
		return ErrGraphClosed
	}
	if err := g.findNodes(); err != nil {
		return err
	}
	if kernel < 0 || kernel >= len(g.kernels) {
		return ErrNoKernel
	}
	k := g.kernels[kernel]
	if err := k.Function.usable(); err != nil {
		return err
	}
	p := freeParams.Get().(*params) //nolint:forcetypeassert // of this pool
	defer freeParams.Put(p)
	if _, err := g.on.place(k.Function, p, args); err != nil {
		return err
	}
	held := &capture{pool: g.pool, replaceable: true}
	err := g.replace(k, geometry, p, args, held)
	if err == nil {
		k.lease, held.lease = held.lease, k.lease
	}
	g.giveUp(held.lease)
	return err
}

// replace sets the launch of a node. It checks the buffers, and keeps them by the lease of held.
func (g *Graph) replace(k *node, geometry Geometry, p *params, args []Arg, held *capture) error {
	for i := range args {
		if args[i].mode == byValue {
			continue
		}
		if err := held.touch(g.on, args[i].buffer, args[i].writes()); err != nil {
			return &ArgumentError{Kernel: k.Function.name, Index: i, Err: err}
		}
	}
	g.gate.change()
	defer g.gate.changed()
	if err := g.setParams(k, geometry, p, args); err != nil {
		return &LaunchError{k.Function.name, geometry, err}
	}
	k.Geometry, k.uses = geometry, held.outside
	g.orderBehind()
	return nil
}

// setParams sets the launch of a node.
func (g *Graph) setParams(k *node, geometry Geometry, p *params, args []Arg) error {
	if g.on.checked != nil {
		return g.on.checked.KernelNodeSetParamsTouching(g.exec, k.name, k.Function.handle, geometry, p.bytes[:p.size], accessesOf(args))
	}
	return g.on.graphs.GraphExecKernelNodeSetParams(g.exec, k.name, k.Function.handle, geometry, p.bytes[:p.size])
}

// findNodes finds the nodes of the kernels.
func (g *Graph) findNodes() error {
	if g.named {
		return nil
	}
	all, err := g.on.graphs.GraphGetNodes(g.captured)
	if err != nil {
		return err
	}
	var found []cudadrv.GraphNode
	for _, n := range all {
		kind, err := g.on.graphs.GraphNodeGetType(n)
		if err != nil {
			return err
		}
		if kind == cudadrv.KernelNode {
			found = append(found, n)
		}
	}
	if len(found) != len(g.kernels) {
		return ErrNodes
	}
	for i, k := range g.kernels {
		k.name = found[i]
	}
	g.named = true
	return nil
}
