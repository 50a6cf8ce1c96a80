package cuda

import (
	"errors"
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
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
	return g.change(kernel, func(k *node, p *params) error {
		if err := k.Function.accepts(0, len(k.Function.params), args); err != nil {
			return err
		}
		if _, err := g.on.placeAll(k.Function, p, args); err != nil {
			return err
		}
		return g.set(k, newNode(k.Function, geometry, p, args, false), 0, args)
	})
}

// SetArg replaces one argument of a kernel, by the indices in Kernels and in Function.Parameters, as SetArgs replaces all. The
// geometry and the other arguments stay, also buffers that the caller has freed: the graph keeps their memory. Memory of the
// replaced argument that SetArgs had set stays with the graph as long as another argument of that call. Buffers that LaunchPacked
// declared stay until SetArgs. Errors: as SetArgs, and an *ArgumentError with ErrNoParameter.
func (g *Graph) SetArg(kernel, parameter int, arg Arg) error {
	return g.change(kernel, func(k *node, p *params) error {
		f := k.Function
		if parameter < 0 || parameter >= len(k.args) {
			return &ArgumentError{Kernel: f.name, Index: parameter, Got: arg.got(), Err: ErrNoParameter}
		}
		old, args := &k.args[parameter], []Arg{arg}
		if !f.known && (arg.size != old.size || alignUp(old.at, max(int(arg.align), 1)) != old.at) {
			return f.refused(parameter, &arg, ErrArgumentSize, int64(arg.size), int64(old.size))
		}
		if err := f.accepts(parameter, 1, args); err != nil {
			return err
		}
		p.size = copy(p.bytes[:], k.packed)
		if _, _, err := g.on.place(f, p, parameter, old.at, args); err != nil {
			return err
		}
		to := *k
		to.packed, to.args = slices.Clone(p.bytes[:p.size]), slices.Clone(k.args)
		to.args[parameter] = nodeArg{at: old.at, size: old.size, accesses: arg.accesses()}
		return g.set(k, &to, parameter, args)
	})
}

// change calls f, which changes a kernel, with memory for its parameters.
func (g *Graph) change(kernel int, f func(k *node, p *params) error) error {
	if g == nil || g.on == nil {
		return ErrNotOpen
	}
	g.gate.mu.Lock()
	defer g.gate.mu.Unlock()
	if g.gate.closed() {
		return ErrGraphClosed
	}
	if err := g.findNodes(); err != nil {
		return g.on.failure(err)
	}
	if kernel < 0 || kernel >= len(g.kernels) {
		return ErrNoKernel
	}
	k := g.kernels[kernel]
	if err := k.Function.usable(); err != nil {
		return err
	}
	p := g.on.borrow()
	defer g.on.giveBack(p)
	return g.on.failure(f(k, p))
}

// set changes a node to another one of the same kernel, which has new arguments from the first on. It checks their buffers, and
// keeps them by a lease. The graph gives up the leases that the node has no more, or after an error the new one.
func (g *Graph) set(k, to *node, first int, args []Arg) error {
	held := &capture{pool: g.pool, replaceable: true}
	leases := k.leases()
	err := g.keep(held, to, first, args)
	if err == nil {
		err = g.replace(k, to)
	}
	if held.lease != nil {
		leases = append(leases, held.lease)
	}
	has := k.leases()
	g.giveUp(slices.DeleteFunc(leases, func(l *streams.Lease) bool { return slices.Contains(has, l) })...)
	return err
}

// keep checks the buffers of new arguments of a node, and keeps their memory by the lease of held.
func (g *Graph) keep(held *capture, k *node, first int, args []Arg) error {
	for i := range args {
		a := &args[i]
		if a.mode == byValue {
			continue
		}
		held.outside = uses{}
		if err := held.touch(g.on, a.buffer, a.writes()); err != nil {
			return k.Function.refused(first+i, a, err, 0, 0)
		}
		k.args[first+i].uses = held.outside
	}
	for i := range args {
		if args[i].mode != byValue {
			k.args[first+i].lease = held.lease
		}
	}
	return nil
}

// replace sets the launch of a node.
func (g *Graph) replace(k, to *node) error {
	g.gate.change()
	defer g.gate.changed()
	var err error
	if f := to.Function.handle; g.on.checked != nil {
		err = g.on.checked.KernelNodeSetParamsTouching(g.exec, k.name, f, to.Geometry, to.packed, to.accesses())
	} else {
		err = g.on.graphs.GraphExecKernelNodeSetParams(g.exec, k.name, f, to.Geometry, to.packed)
	}
	if err != nil {
		return &LaunchError{k.Function.name, to.Geometry, err}
	}
	to.name = k.name
	*k = *to
	g.orderBehind()
	return nil
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
