package core

import (
	"slices"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/site"
)

// graphs are the captures in progress, and their graphs.
type graphs struct {
	captured map[cudadrv.Stream]*capture
	made     map[cudadrv.Graph]*graph
	execs    map[cudadrv.GraphExec]*exec
}

func newGraphs() graphs {
	return graphs{
		captured: map[cudadrv.Stream]*capture{},
		made:     map[cudadrv.Graph]*graph{},
		execs:    map[cudadrv.GraphExec]*exec{},
	}
}

// step is a node of a graph: work as it was captured.
type step struct {
	what     string
	from     site.Stack
	accesses []Access
	owners   []*buffer // that had the memory of the accesses when it was captured
}

// capture is a graph in the making. Its order and memory are its own: nothing in it runs before it is launched.
type capture struct {
	*Core
	origin cudadrv.Stream
	steps  []step
}

// graph is captured work. Its steps do not change.
type graph struct {
	steps []step
	names []cudadrv.GraphNode // of the steps, after GraphGetNodes
}

// exec is a graph that can be launched.
type exec struct {
	of    *graph // that it was made of
	steps []step
	keeps bool  // its memory is not reused: see GraphKeeps
	last  Clock // after its last launch
}

// CaptureBegan records that work of the stream goes into a graph.
func (c *Core) CaptureBegan(s cudadrv.Stream) {
	c.graphs.captured[s] = &capture{Core: New(), origin: s}
}

// capture adds a step. Two steps of which none comes before the other are checked against each other.
func (c *Core) capture(k *capture, s cudadrv.Stream, now step) {
	now.accesses = slices.Clone(now.accesses)
	now.owners = c.owners(now.accesses)
	k.steps = append(k.steps, now)
	for _, a := range now.accesses {
		if end, ok := endOf(a); ok {
			k.memory.put(a.Ptr, end, false) // decided when the graph is launched
		}
	}
	known := k.KeptCount()
	k.Work(s, now.what, now.from, now.accesses)
	for _, r := range k.ReportsFrom(known) {
		r.Hint = "both are in one graph, on branches without an order"
		c.reports.add(r)
	}
}

// CaptureEnded records that the capture that began with the stream has made a graph.
func (c *Core) CaptureEnded(s cudadrv.Stream, g cudadrv.Graph) {
	k := c.graphs.captured[s]
	if k == nil { // it began past the checker
		return
	}
	c.graphs.end(k)
	made := &graph{steps: k.steps}
	for i := range made.steps {
		made.steps[i].what += ", captured at " + made.steps[i].from.String() + ","
	}
	c.graphs.made[g] = made
}

// CaptureDropped records that the capture of the stream, if there was one, has ended without a graph.
func (c *Core) CaptureDropped(s cudadrv.Stream) {
	if k := c.graphs.captured[s]; k != nil {
		c.graphs.end(k)
	}
}

// end ends the capture of its streams.
func (g *graphs) end(k *capture) {
	for s, of := range g.captured {
		if of == k {
			delete(g.captured, s)
		}
	}
}

// leave takes a stream that is destroyed out of its capture, which ends if it began there.
func (g *graphs) leave(s cudadrv.Stream) {
	if k := g.captured[s]; k != nil && k.origin == s {
		g.end(k)
	}
	delete(g.captured, s)
}

// NodesNamed records the driver's names of the nodes of a graph, in the order of their capture.
func (c *Core) NodesNamed(g cudadrv.Graph, names []cudadrv.GraphNode) {
	if made := c.graphs.made[g]; made != nil {
		made.names = slices.Clone(names)
	}
}

// GraphDestroyed forgets a graph, but not its instances.
func (c *Core) GraphDestroyed(g cudadrv.Graph) { delete(c.graphs.made, g) }

// GraphInstantiated records that x was made from a graph.
func (c *Core) GraphInstantiated(g cudadrv.Graph, x cudadrv.GraphExec) {
	if made := c.graphs.made[g]; made != nil {
		c.graphs.execs[x] = &exec{of: made, steps: slices.Clone(made.steps)}
	}
}

// GraphUpdated replaces the steps of x by a graph's. Steps of a graph made past the checker are unknown.
func (c *Core) GraphUpdated(x cudadrv.GraphExec, g cudadrv.Graph) {
	e := c.graphs.execs[x]
	if e == nil {
		return
	}
	e.steps = nil
	if made := c.graphs.made[g]; made != nil {
		e.steps = slices.Clone(made.steps)
	}
}

// NodeChanged records new parameters of a kernel of x: its accesses become unknown. If the node is unknown too, all kernels of
// the graph do.
func (c *Core) NodeChanged(x cudadrv.GraphExec, n cudadrv.GraphNode) {
	if one := c.graphs.stepOf(x, n); one != nil {
		one.accesses = nil
	}
}

// NodeTouches records new parameters of a kernel that touches only these ranges.
func (c *Core) NodeTouches(x cudadrv.GraphExec, n cudadrv.GraphNode, from site.Stack, accesses []Access) {
	if one := c.graphs.stepOf(x, n); one != nil {
		accesses = slices.Clone(accesses)
		*one = step{"kernel, set at " + from.String() + ",", from, accesses, c.owners(accesses)}
	}
}

// stepOf returns the step of a node of x. It returns nil for an unknown node, and forgets the steps of x.
func (g *graphs) stepOf(x cudadrv.GraphExec, n cudadrv.GraphNode) *step {
	e := g.execs[x]
	if e == nil {
		return nil
	}
	i := slices.Index(e.of.names, n)
	if i < 0 || len(e.of.names) != len(e.steps) {
		e.steps = nil
		return nil
	}
	return &e.steps[i]
}

// GraphExecDestroyed forgets a graph that can be launched.
func (c *Core) GraphExecDestroyed(x cudadrv.GraphExec) { delete(c.graphs.execs, x) }

// GraphLaunched records the work of all steps on a stream, one after the other, after the last launch of x. The stream is not
// captured: the driver refuses that.
func (c *Core) GraphLaunched(x cudadrv.GraphExec, s cudadrv.Stream, from site.Stack) {
	e := c.graphs.execs[x]
	if e == nil { // made past the checker
		return
	}
	c.order.reach(s).point.join(e.last)
	for _, one := range e.steps {
		c.work(s, one.what, from, one.accesses, func(b *buffer) bool { return e.mayTouch(c, b, one.owners) })
	}
	e.last = c.order.reach(s).point.copied()
}

// mayTouch reports whether a launch may touch memory of a buffer: of one that had it when the graph was captured and has not
// been freed, or, where the graph keeps its memory, freed or not, or that a hold has.
func (e *exec) mayTouch(c *Core, b *buffer, owners []*buffer) bool {
	if e.keeps && c.holds[b.Stream] {
		return true
	}
	return slices.Contains(owners, b) && (e.keeps || !b.freed)
}

// owners returns the buffers that have the memory of accesses, or had it last.
func (c *Core) owners(accesses []Access) (all []*buffer) {
	for _, a := range accesses {
		end, ok := endOf(a)
		if !ok {
			continue
		}
		for _, p := range c.memory.cut(a.Ptr, end) {
			if p.cell != nil && p.cell.buffer != nil && !slices.Contains(all, p.cell.buffer) {
				all = append(all, p.cell.buffer)
			}
		}
		c.memory.merge(a.Ptr, end)
	}
	return all
}

// HoldBegan records that memory of a stream's buffers stays with graphs, freed or not, until HoldEnded.
func (c *Core) HoldBegan(s cudadrv.Stream) { c.holds[s] = true }

// HoldEnded ends a hold.
func (c *Core) HoldEnded(s cudadrv.Stream) { delete(c.holds, s) }

// GraphKeeps records that the memory of a graph is not reused, even if its buffers are freed.
func (c *Core) GraphKeeps(x cudadrv.GraphExec) {
	if e := c.graphs.execs[x]; e != nil {
		e.keeps = true
	}
}
