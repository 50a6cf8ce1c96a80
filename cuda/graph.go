package cuda

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/units"
	"github.com/go-vram/vram/streams"
)

// Graph is captured work that can be launched any number of times. Make one with Context.Capture, and close it. Any number of
// goroutines may use it.
type Graph struct {
	on       *submission
	pool     *Pool
	captured cudadrv.Graph
	exec     cudadrv.GraphExec
	scratch  []Buffer
	kernels  []*node // in the order of the capture; the slice does not change, and the nodes are under gate.mu

	gate     gate
	uses     atomic.Pointer[uses]      // of buffers from outside, and of the hold; replaced, never changed
	launched atomic.Pointer[[]*Stream] // of its launches, except streams that have finished; likewise

	// Under gate.mu:
	outside uses             // of buffers from outside that were captured
	named   bool             // the kernels' nodes are known
	unused  []*streams.Lease // of replaced arguments, whose memory launches may still use
}

// enter begins a call that Close and SetArgs wait for, with gate.mu held: so the call may not wait for that lock.
func (g *Graph) enter() error {
	if g == nil || g.on == nil {
		return ErrNotOpen
	}
	return g.gate.enter()
}

// Launch submits the graph's work to a context of its device. It does not wait. As with Context.Launch, the work waits for the
// work of the streams whose buffers the graph touches. Errors: ErrGraphClosed, ErrForeign, ErrNotOpen, vram.ErrClosed, the
// driver's, and a *vram.CaptureError in a capture, and where Context.Launch has one.
func (g *Graph) Launch(c *Context) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.gate.leave()
	if err := g.launchable(c); err != nil {
		return err
	}
	if c.recording() {
		return c.failure(c.recorded(g.name(), nil, nil, func() error { return g.launchNow(c) }))
	}
	return c.failure(g.launchNow(c))
}

func (g *Graph) launchNow(c *Context) error {
	err := g.launchOnce(c)
	if err != nil && errors.Is(err, ErrFrozen) && c.work.ThawFreed(g.uses.Load().touched) { // a free ends the freeze
		return g.launchOnce(c)
	}
	return err
}

func (g *Graph) launchOnce(c *Context) error {
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

// launchInTurn launches one of several graphs that share memory: their launches run one after the other.
func (g *Graph) launchInTurn(c *Context) error {
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	return g.launch(c)
}

// launch launches the graph without Launch's checks. It, and each function above, has so few returns that the compiler puts its
// deferred call in line.
func (g *Graph) launch(c *Context) error {
	if err := c.work.Enter(false); err != nil {
		return err
	}
	defer c.work.Leave()
	crossing := c.work.Crossing()
	defer crossing.Leave()
	if err := g.before(&crossing); err != nil {
		return named("Graph.Launch", err)
	}
	g.note(c.Stream())
	if err := c.graphs.GraphLaunch(g.exec, c.handle); err != nil {
		return err
	}
	crossing.After()
	return nil
}

// before makes a launch wait for other work on the graph's buffers.
func (g *Graph) before(crossing *streams.Crossing) error {
	all := g.uses.Load()
	for _, home := range all.homes {
		if err := crossing.TouchStream(home); err != nil {
			return err
		}
	}
	crossing.TouchAll(all.touched)
	_, err := crossing.Begin()
	return err
}

// note notes a stream on which the graph is launched.
func (g *Graph) note(s *Stream) {
	for {
		old := g.launched.Load()
		if old != nil && slices.Contains(*old, s) {
			return
		}
		all := []*Stream{s} // on the heap, and so not above
		if old != nil {
			all = append(unfinished(*old), s)
		}
		if g.launched.CompareAndSwap(old, &all) {
			return
		}
	}
}

// launches returns the streams on which the graph was launched, except streams that have finished.
func (g *Graph) launches() []*Stream {
	if all := g.launched.Load(); all != nil {
		return *all
	}
	return nil
}

// Upload does the part of the first launch that later ones save. It returns the errors of Launch.
func (g *Graph) Upload(c *Context) error {
	if err := g.enter(); err != nil {
		return err
	}
	defer g.gate.leave()
	if !c.opened() {
		return notOpen("context")
	}
	if !c.work.SameDevice(g.on.work) {
		return ErrForeign
	}
	return c.outside("cuGraphUpload", func() error { return c.graphs.GraphUpload(g.exec, c.handle) }) // it would break a capture
}

// HeldBytes returns the size of the graph's hold, or of its pool if it shares one. Buffers from outside are not counted.
func (g *Graph) HeldBytes(ctx context.Context) (int64, error) {
	if err := g.enter(); err != nil {
		return 0, err
	}
	defer g.gate.leave()
	return g.pool.HeldBytes(ctx)
}

// String includes the number of kernels.
func (g *Graph) String() string {
	if g == nil || g.on == nil {
		return "no graph"
	}
	if g.gate.closed() {
		return g.name() + ", closed"
	}
	return g.name()
}

// name names the graph in reports of its launches.
func (g *Graph) name() string { return "graph of " + units.Count(len(g.kernels), "kernel") }

// Close refuses later launches, waits for the launches in progress, and frees the graph's memory, and buffers from outside that
// the caller has freed. Idempotent; if the memory could not be freed, the next call tries again.
func (g *Graph) Close() error {
	if g == nil || g.on == nil {
		return ErrNotOpen
	}
	if !g.gate.close() {
		return g.pool.endAgain()
	}
	for _, b := range g.scratch {
		_ = b.Free() // the graph's own
	}
	for _, k := range g.kernels {
		k.Function.module.release()
		g.unused = append(g.unused, k.leases()...)
	}
	if g.pool.shared {
		g.giveUp()
	}
	g.pool.take(g.unused) // they end with the hold
	destroyed := g.on.work.Guarded(func() error { return g.on.graphs.GraphExecDestroy(g.exec) })
	return errors.Join(destroyed, g.on.destroyGraph(g.captured), g.pool.leave(g.launches()))
}

// giveUp ends leases of arguments that no kernel has, after the launches so far, and others that could not be ended before: the
// driver may refuse that, and a launch's stream may be captured.
func (g *Graph) giveUp(all ...*streams.Lease) {
	g.unused = append(g.unused, all...)
	if len(g.unused) == 0 {
		return
	}
	launched, ended := g.launches(), []*streams.Lease{}
	g.unused = slices.DeleteFunc(g.unused, func(l *streams.Lease) bool {
		if l.End(launched...) != nil {
			return false
		}
		ended = append(ended, l)
		return true
	})
	g.pool.take(ended)
}

// Kernels returns the launches of kernels in the graph, in the order in which they were captured.
func (g *Graph) Kernels() []Kernel {
	if g == nil {
		return nil
	}
	g.gate.mu.Lock()
	defer g.gate.mu.Unlock()
	all := make([]Kernel, len(g.kernels))
	for i, k := range g.kernels {
		all[i] = k.Kernel
	}
	return all
}

// orderBehind notes the buffers that the graph touches, for launches to come. Other graphs of the pool, and works of others,
// have the hold's memory.
func (g *Graph) orderBehind() {
	all := uses{touched: []streams.Touched{g.pool.hold.Touched()}}
	all.add(g.outside)
	for _, k := range g.kernels {
		for i := range k.args {
			all.add(k.args[i].uses)
		}
	}
	g.uses.Store(&all)
}
