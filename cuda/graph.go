package cuda

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/streams"
)

// Graph is captured work that can be launched any number of times. Make one with Context.Capture, and close it. Any number of goroutines
// may use it.
type Graph struct {
	on       *submission
	pool     *Pool
	captured cudadrv.Graph
	exec     cudadrv.GraphExec
	scratch  []Buffer

	gate     atomic.Int64              // calls under way; closedGate: closed
	homes    atomic.Pointer[[]*Stream] // of buffers from outside; replaced, never changed
	launched atomic.Pointer[[]*Stream] // on which it was launched; likewise

	mu      sync.Mutex // of cold calls
	kernels []*Kernel
	nodes   []cudadrv.GraphNode // of the kernels; nil before they were asked for
}

// Kernel is a launch in a graph.
type Kernel struct {
	Function *Function
	Geometry Geometry
}

const closedGate = int64(1) << 62

// enter begins a call, which Close waits for.
func (g *Graph) enter() error {
	if g == nil || g.on == nil {
		return ErrNotOpen
	}
	if g.gate.Add(1) >= closedGate {
		g.gate.Add(-1)
		return ErrGraphClosed
	}
	return nil
}

func (g *Graph) leave() { g.gate.Add(-1) }

// Launch submits the graph's work to a context of its device. It does not wait. The work is behind what was submitted to the streams whose
// buffers the graph touches, as that of Context.Launch is. Errors: ErrGraphClosed, ErrForeign, ErrNotOpen, vram.ErrClosed, the driver's, and
// a *vram.CaptureError in a capture, and where Context.Launch has one.
func (g *Graph) Launch(c *Context) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.leave()
	if err := g.launchable(c); err != nil {
		return err
	}
	if g.pool.shared {
		return g.launchInTurn(c)
	}
	return g.launch(c)
}

// launchable returns the error of a context to which the graph cannot be launched.
func (g *Graph) launchable(c *Context) error {
	if !c.opened() {
		return notOpen("context")
	}
	if c.submission != g.on && !c.work.SameDevice(g.on.work) {
		return ErrForeign
	}
	if c.capture.Load() != nil {
		return c.work.Forbidden("cuGraphLaunch") // the driver would break the capture: it has no graphs in graphs
	}
	return nil
}

// launchInTurn is launch for one of several graphs with the same memory: a launch of another one is before this one or behind it.
func (g *Graph) launchInTurn(c *Context) error {
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	return g.launch(c)
}

// launch is Launch without its checks. It, and each function above, has so few returns that the compiler puts its deferred call in line.
func (g *Graph) launch(c *Context) error {
	crossing := c.work.Crossing()
	defer crossing.Leave()
	if err := g.before(c, &crossing); err != nil {
		return err
	}
	if err := c.enter(nil); err != nil {
		return err
	}
	defer c.work.Leave()
	if err := c.graphs.GraphLaunch(g.exec, c.handle); err != nil {
		return err
	}
	crossing.After()
	return nil
}

// before puts a launch behind other work on the graph's buffers.
func (g *Graph) before(c *Context, crossing *streams.Crossing) error {
	for _, home := range *g.homes.Load() {
		if err := crossing.BeforeStream(home); err != nil {
			return err
		}
	}
	if err := crossing.BeforeHold(g.pool.hold.Stream()); err != nil { // other graphs of the pool, and works of others, have its memory
		return err
	}
	return g.first(c)
}

// first puts the first launch on a stream behind what the memory of the hold has to be behind, and notes the stream.
func (g *Graph) first(c *Context) error {
	s := c.Stream()
	if old := g.launched.Load(); old != nil && slices.Contains(*old, s) {
		return nil
	}
	if err := g.pool.hold.Precede(s); err != nil {
		return err
	}
	g.note(s)
	return nil
}

// note notes a stream on which the graph is launched.
func (g *Graph) note(s *Stream) {
	for {
		old := g.launched.Load()
		var all []*Stream
		if old != nil {
			if slices.Contains(*old, s) {
				return
			}
			all = slices.Clone(*old)
		}
		all = append(all, s)
		if g.launched.CompareAndSwap(old, &all) {
			return
		}
	}
}

// Upload submits what the first launch does beyond the others, so that it costs no more. Errors are those of Launch.
func (g *Graph) Upload(c *Context) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.leave()
	if !c.opened() {
		return notOpen("context")
	}
	if !c.work.SameDevice(g.on.work) {
		return ErrForeign
	}
	return c.outside("cuGraphUpload", func() error { return c.graphs.GraphUpload(g.exec, c.handle) }) // it would break a capture
}

// HeldBytes is how much memory the graph's hold has: that of its pool, if it shares one. Buffers from outside are not counted.
func (g *Graph) HeldBytes(ctx context.Context) (int64, error) {
	if err := g.enter(); err != nil {
		return 0, err
	}
	defer g.leave()
	return g.pool.HeldBytes(ctx)
}

// String has the number of kernels.
func (g *Graph) String() string {
	if g == nil || g.on == nil {
		return "no graph"
	}
	text := "graph of " + units.Count(len(g.Kernels()), "kernel")
	if g.gate.Load() >= closedGate {
		text += ", closed"
	}
	return text
}

// Kernels are the launches of kernels in the graph, in the order in which they were captured.
func (g *Graph) Kernels() []Kernel {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]Kernel, len(g.kernels))
	for i, k := range g.kernels {
		all[i] = *k
	}
	return all
}

// ErrNoKernel says that a graph has no kernel of that index.
var ErrNoKernel = errors.New("cuda: the graph has no such kernel")

// ErrNodes says that the graph's kernels cannot be told apart: some were not launched by Context.Launch.
var ErrNodes = errors.New("cuda: the graph has kernels that this package did not launch")

// SetArgs replaces geometry and arguments of a kernel, by its index in Kernels, for launches to come; those under way keep theirs.
// Buffers are checked as in Context.Launch, and belong to the graph from here on, in addition to those before. Errors:
// *ArgumentError, ErrNoKernel, ErrNodes, ErrGraphClosed, and the driver's.
func (g *Graph) SetArgs(kernel int, geometry Geometry, args ...Arg) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.leave()
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.findNodes(); err != nil {
		return err
	}
	if kernel < 0 || kernel >= len(g.kernels) {
		return ErrNoKernel
	}
	f := g.kernels[kernel].Function
	if err := f.usable(); err != nil {
		return err
	}
	p := freeParams.Get().(*params) //nolint:forcetypeassert // of this pool
	defer freeParams.Put(p)
	if _, err := g.on.place(f, p, args); err != nil {
		return err
	}
	held := &capture{pool: g.pool, homes: slices.Clone(*g.homes.Load())}
	for i := range args {
		if args[i].mode == byValue {
			continue
		}
		if err := held.touch(g.on, args[i].buffer); err != nil {
			return &ArgumentError{Kernel: f.name, Index: i, Err: err}
		}
	}
	g.homes.Store(&held.homes)
	err := g.on.graphs.GraphExecKernelNodeSetParams(g.exec, g.nodes[kernel], f.handle, geometry, p.bytes[:p.size])
	if err != nil {
		return &LaunchError{f.name, geometry, err}
	}
	g.kernels[kernel].Geometry = geometry
	return nil
}

// findNodes finds the nodes of the kernels.
func (g *Graph) findNodes() error {
	if g.nodes != nil {
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
	g.nodes = found
	return nil
}

// Close ends the graph: launches are refused from here on, and once those under way have finished its memory goes back, as do
// buffers from outside that were freed meanwhile. It waits for them. Idempotent; where the memory could not be let go, the next call tries
// that again.
func (g *Graph) Close() error {
	if g == nil || g.on == nil {
		return ErrNotOpen
	}
	for {
		n := g.gate.Load()
		if n >= closedGate {
			return g.pool.endAgain()
		}
		if g.gate.CompareAndSwap(n, n+closedGate) {
			break
		}
	}
	for g.gate.Load() > closedGate { // calls that were under way
		runtime.Gosched()
	}
	var launched []*Stream
	if all := g.launched.Load(); all != nil {
		launched = *all
	}
	for _, b := range g.scratch {
		_ = b.Free() // the graph's own
	}
	for _, k := range g.kernels {
		k.Function.module.graphs.Add(-1)
	}
	return errors.Join(g.on.graphs.GraphExecDestroy(g.exec), g.on.graphs.GraphDestroy(g.captured), g.pool.leave(launched))
}
