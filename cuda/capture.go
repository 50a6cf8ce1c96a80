package cuda

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// CaptureMode says which driver calls may be made during a capture. Calls of vram are always made: they exchange the mode of
// their thread.
type CaptureMode = cudadrv.CaptureMode

// The modes of a capture.
const (
	// Relaxed forbids nothing. Capture uses it.
	Relaxed = cudadrv.CaptureRelaxed
	// ThreadLocal refuses calls of the capturing thread that a graph cannot have, as an allocation past vram, which would
	// otherwise be made once, at the capture.
	ThreadLocal = cudadrv.CaptureThreadLocal
	// Global refuses them from any thread.
	Global = cudadrv.CaptureGlobal
)

// Option changes a capture.
type Option func(*options)

type options struct {
	mode CaptureMode
	pool *Pool
}

// Mode captures in that mode.
func Mode(m CaptureMode) Option { return func(o *options) { o.mode = m } }

// capture is a capture in progress.
type capture struct {
	pool *Pool
	mu   sync.Mutex // guards the fields below; launches in a capture are cold

	streams []*submission // that are captured: the first began it. The index is the number in order
	order   reuse
	own     []captured // buffers of this capture that were live
	homes   []*Stream  // of buffers from outside
	kernels []*node    // each counts as a user of its module, until drop or Graph.Close
	events  []cudadrv.Event
	scratch []Buffer // the graph's, or drop's
	ended   bool     // nothing more becomes part of it

	replaceable bool           // these are arguments for SetArgs, not a capture
	lease       *streams.Lease // keeps the memory of such arguments; nil: none is from outside
}

// captured is a buffer that was allocated in a capture.
type captured struct {
	buffer Buffer
	by     int    // the stream
	count  uint64 // of the allocation
}

// Capture runs f, and makes a graph of the work that it submits to the context, and to others that join it by Context.Wait;
// none of that work runs. It takes memory of Context.Alloc inside from the graph's hold: see the package comment. f runs on
// this goroutine and its thread. If f returns an error, or panics, there is no graph. The caller closes the graph.
//
// The capture begins once the driver calls of others on the stream, Synchronize included, have returned. After f it waits for
// calls that others have begun. Until then further calls that may not be part of it are refused: see the package comment. If a
// call does not return within ten seconds, or Capture is called from within one, the capture is refused.
//
// Errors: f's; a *vram.CaptureError for a context that is captured, or with vram.ErrBusy as above; cudadrv.NotSupported, errors
// of making a stream, and the driver's.
func (c *Context) Capture(f func() error, with ...Option) (g *Graph, err error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	if c.graphs == nil || !c.Info().Capabilities.Has(cudadrv.GraphLaunches) {
		return nil, unsupported("cuStreamBeginCapture")
	}
	o := options{mode: Relaxed}
	for _, option := range with {
		option(&o)
	}
	pool := o.pool
	if pool == nil {
		own, err := c.NewPool()
		if err != nil {
			return nil, err
		}
		pool = own
		own.shared = false
		defer func() { err = errors.Join(err, own.Close()) }() // the graph keeps it open; without a graph it is freed
	}
	if err := pool.enter(); err != nil {
		return nil, err
	}
	defer func() {
		if g == nil { // also after a panic of f
			err = errors.Join(err, pool.leave(nil))
		}
	}()
	p, captured, err := c.capturing(pool, o.mode, f)
	if err != nil {
		return nil, err
	}
	return c.instantiate(p, captured)
}

// instantiate makes a graph of the captured work, or drops it on an error.
func (c *Context) instantiate(p *capture, captured cudadrv.Graph) (g *Graph, err error) {
	defer func() {
		if g == nil { // also after a panic
			p.drop()
			err = errors.Join(err, c.destroyGraph(captured))
		}
	}()
	exec, err := c.graphs.GraphInstantiate(captured)
	if err != nil {
		return nil, err
	}
	g = &Graph{on: c.submission, pool: p.pool, captured: captured, exec: exec, scratch: p.scratch, outside: p.homes, kernels: p.kernels}
	g.gate.init()
	g.orderBehind()
	if checked, ok := c.device.(cudadrv.CheckedHolds); ok {
		checked.GraphKeeps(exec)
	}
	return g, nil
}

// capturing runs f in a capture. After an error, or a panic, nothing of it is left.
func (c *Context) capturing(pool *Pool, mode CaptureMode, f func() error) (_ *capture, captured cudadrv.Graph, err error) {
	p := &capture{pool: pool, streams: []*submission{c.submission}}
	p.order.add()
	runtime.LockOSThread() // but in relaxed mode the capture is this thread's
	defer runtime.UnlockOSThread()
	if err := c.work.Begin(); err != nil {
		return nil, 0, err
	}
	defer c.work.End()
	if err := c.work.BeginCapture(func() error {
		if err := c.graphs.StreamBeginCapture(c.handle, mode); err != nil {
			return err
		}
		c.captured(p)
		return nil
	}); err != nil {
		return nil, 0, err
	}
	complete := false
	defer func() {
		p.end() // later work runs
		if !complete {
			p.drop()
		}
	}()
	panicked := true
	defer func() {
		p.settleStreams()
		var g cudadrv.Graph
		err = errors.Join(err, c.work.Guarded(func() (err error) {
			g, err = c.graphs.StreamEndCapture(c.handle)
			return err
		}))
		for _, e := range p.events {
			err = errors.Join(err, c.work.Guarded(func() error { return c.device.EventDestroy(e) }))
		}
		if complete = err == nil && !panicked; complete {
			captured = g
		} else if g != 0 {
			err = errors.Join(err, c.destroyGraph(g))
		}
	}()
	err = f()
	panicked = false
	return p, 0, err
}

func (c *submission) destroyGraph(g cudadrv.Graph) error {
	return c.work.Guarded(func() error { return c.graphs.GraphDestroy(g) })
}

// drop releases the resources of a capture that does not become a graph.
func (p *capture) drop() {
	for _, b := range p.scratch {
		_ = b.Free() // a caller of the capture may have done so
	}
	for _, k := range p.kernels {
		k.Function.module.graphs.Add(-1)
	}
}

// alloc allocates for a captured stream. Branches of a graph may run at the same time, so a stream may reuse memory that
// another freed only after all its uses. alloc sets memory that the stream may not use aside until it has tried the rest.
func (p *capture) alloc(c *submission, bytes int64) (b Buffer, err error) {
	var aside []Buffer
	for {
		if b, err = p.pool.hold.Stream().Alloc(bytes); err != nil || p.take(c, b) {
			break
		}
		aside = append(aside, b)
	}
	for _, one := range aside {
		_ = one.Free() // no other user has it
	}
	return b, err
}

// take records a new buffer of a captured stream, and reports whether the stream may use its memory.
func (p *capture) take(c *submission, b Buffer) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.settle()
	stream, memory := slices.Index(p.streams, c), spanOf(b)
	if stream < 0 || !p.order.free(stream, memory) {
		return stream < 0 // the capture has ended
	}
	p.own = append(p.own, captured{b, stream, p.order.take(stream, memory)})
	return true
}

// settle looks which buffers were freed. Work that was submitted past this package to the stream that allocated one was
// submitted before: so the free counts as a use by that stream.
func (p *capture) settle() {
	p.own = slices.DeleteFunc(p.own, func(one captured) bool {
		if one.buffer.Live() {
			return false
		}
		p.order.use(one.by, spanOf(one.buffer))
		return true
	})
}

// touch notes that work of a captured stream has the address of a buffer. It records a use by the hold for a buffer from
// outside. A buffer of the hold belongs to the stream until other streams wait for the work. Work on a buffer of another stream
// waits for its allocation, since the memory may have been in use before.
func (p *capture) touch(c *submission, b Buffer) error {
	home, ok := streams.Home(b)
	if !ok {
		return ErrNotLive
	}
	if home != p.pool.hold.Stream() {
		if streams.Asleep(home) {
			return ErrAsleep
		}
		if err := p.keep(b); err != nil {
			return err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if !slices.Contains(p.homes, home) {
			p.homes = append(p.homes, home)
		}
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	stream := slices.Index(p.streams, c)
	if stream < 0 { // other arguments for a graph, whose work has its order
		return nil
	}
	memory := spanOf(b)
	for _, one := range p.own {
		if spanOf(one.buffer) == memory && one.buffer.Live() && !p.order.behind(stream, one.by, one.count) {
			if err := p.wait(c, p.streams[one.by]); err != nil {
				return err
			}
		}
	}
	p.order.use(stream, memory)
	return nil
}

// launched notes a kernel.
func (p *capture) launched(f *Function, g Geometry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	f.module.graphs.Add(1)
	p.kernels = append(p.kernels, &node{Kernel: Kernel{Function: f, Geometry: g}})
}

// workspace returns a buffer that the graph frees.
func (p *capture) workspace(c *submission, bytes int64) (Buffer, error) {
	b, err := p.alloc(c, bytes)
	if err != nil {
		return Buffer{}, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return Buffer{}, errors.Join(ErrCapturing, b.Free())
	}
	p.scratch = append(p.scratch, b)
	return b, nil
}

// settleStreams waits for submissions to the capture that have begun, and ends it for later ones.
func (p *capture) settleStreams() {
	p.mu.Lock()
	p.ended = true
	for _, one := range p.streams {
		one.released()
	}
	p.mu.Unlock()
	for _, one := range p.streams { // no further stream joins
		one.work.SettleCapture()
	}
}

// end ends the capture of its streams.
func (p *capture) end() {
	for _, one := range p.streams {
		one.work.EndCapture()
	}
}

// join makes a stream wait for one that is captured, inside the capture.
func (p *capture) join(c, behind *submission) error {
	if !c.work.SameDevice(behind.work) {
		return ErrForeign
	}
	if c == behind {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return behind.work.Forbidden("cuEventRecord")
	}
	if c.capture.Load() == p {
		return p.wait(c, behind)
	}
	return c.work.BeginCapture(func() error { // from here on submissions of others may become part of the graph
		p.streams = append(p.streams, c)
		p.order.add()
		joined := false
		defer func() { // also after a panic of the driver
			if !joined {
				p.streams = p.streams[:len(p.streams)-1]
				p.order.remove()
			}
		}()
		if err := p.wait(c, behind); err != nil {
			return err
		}
		c.captured(p)
		joined = true
		return nil
	})
}

// wait makes a captured stream wait for another one.
func (p *capture) wait(c, behind *submission) error {
	stream, before := slices.Index(p.streams, c), slices.Index(p.streams, behind)
	if stream < 0 || before < 0 {
		return c.work.Forbidden("cuStreamWaitEvent") // one has left it
	}
	p.settle()
	e, err := c.device.EventCreate()
	if err != nil {
		return err
	}
	p.events = append(p.events, e)
	if err := behind.open(func() error { return c.device.EventRecord(e, behind.handle) }); err != nil {
		return err
	}
	if err := c.open(func() error { return c.device.StreamWaitEvent(c.handle, e) }); err != nil {
		return err
	}
	p.order.wait(stream, before)
	return nil
}

// Pool is memory for graphs that run one after the other: a graph may reuse memory that the one before it freed inside its
// capture. So a buffer that outlives its capture keeps its contents until another graph of the pool is launched. Close the pool
// after the last capture with it; its memory is freed with the last graph.
type Pool struct {
	on     *submission
	hold   streams.Hold
	shared bool // by several graphs

	mu       sync.Mutex // of cold calls, and of launches of graphs that share it
	users    int        // graphs and captures
	closed   bool
	ended    bool
	launched []*Stream        // of closed graphs, except streams that have finished
	leases   []*streams.Lease // of graphs' arguments that were replaced, for which buffers may still wait, in the order of their ends
}

// NewPool makes a pool for graphs of the context's device.
func (c *Context) NewPool() (*Pool, error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	hold, err := c.work.NewHold()
	if err != nil {
		return nil, err
	}
	if checked, ok := c.device.(cudadrv.CheckedHolds); ok {
		checked.HoldBegins(hold.Stream().Handle())
	}
	return &Pool{on: c.submission, hold: hold, shared: true}, nil
}

// Shared captures with the memory of a pool. The graphs of a pool run one after the other: launches see to it where they are on
// different streams.
func Shared(p *Pool) Option { return func(o *options) { o.pool = p } }

// HeldBytes returns the size of the pool's memory.
func (p *Pool) HeldBytes(ctx context.Context) (int64, error) {
	if p == nil || p.on == nil {
		return 0, ErrNotOpen
	}
	n, err := p.hold.Stream().Stats(ctx)
	return n.HeldBytes, err
}

// Close refuses further captures with the pool. Its memory is freed when the last graph is closed: this call, or that one,
// waits for its launches. Idempotent.
func (p *Pool) Close() error {
	if p == nil || p.on == nil {
		return ErrNotOpen
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.end()
}

func (p *Pool) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrGraphClosed
	}
	p.users++
	return nil
}

// leave ends a graph, which was launched on streams.
func (p *Pool) leave(launched []*Stream) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	for _, s := range launched {
		if !slices.Contains(p.launched, s) {
			p.launched = append(p.launched, s)
		}
	}
	p.launched = unfinished(p.launched)
	return p.end()
}

// endAgain retries end for a graph that was closed before.
func (p *Pool) endAgain() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.end()
}

// end frees the memory, once, when the pool has no users.
func (p *Pool) end() error {
	if !p.closed || p.users > 0 || p.ended {
		return nil
	}
	if checked, ok := p.on.device.(cudadrv.CheckedHolds); ok {
		checked.HoldEnds(p.hold.Stream().Handle())
	}
	err := p.hold.End(p.launched...)
	p.ended = err == nil
	p.finishLeases()
	return err
}
