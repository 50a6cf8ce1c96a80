package cuda

import (
	"errors"
	"runtime"

	"github.com/go-vram/vram/cudadrv"
)

// Option changes a capture.
type Option func(*options)

type options struct {
	mode CaptureMode
	pool *Pool
}

// Mode captures in that mode.
func Mode(m CaptureMode) Option { return func(o *options) { o.mode = m } }

// Capture runs f, and makes a graph of the work that it submits to the context, and to others that join it by Context.Wait;
// none of that work runs. It takes memory of Context.Alloc inside from the graph's hold: see the package comment. f runs on
// this goroutine and its thread. If f returns an error, or panics, there is no graph. The caller closes the graph.
//
// The capture begins once the driver calls of others on the stream, Synchronize included, have returned. After f it waits for
// calls that others have begun. Until then further calls that may not be part of it are refused: see the package comment. If a
// call does not return within ten seconds, or Capture is called from within one, the capture is refused.
//
// Errors: f's; a *vram.CaptureError for a context that is captured, or with vram.ErrBusy as above; ErrGraphClosed for a pool that
// is closed; cudadrv.NotSupported, errors of making a stream, and the driver's.
func (c *Context) Capture(f func() error, with ...Option) (g *Graph, err error) {
	if !c.opened() {
		return nil, ErrNotOpen
	}
	if c.graphs == nil || !c.Info().Capabilities.Has(cudadrv.GraphLaunches) {
		return nil, unsupported("cuStreamBeginCapture")
	}
	o := options{mode: Relaxed}
	for _, option := range with {
		if option != nil {
			option(&o)
		}
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
	if err := pool.enter(c); err != nil {
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
		return nil, c.failure(err)
	}
	g = &Graph{on: c.submission, pool: p.pool, captured: captured, exec: exec, scratch: p.scratch, outside: p.outside, kernels: p.kernels}
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
			return c.failure(err)
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
			return c.failure(err)
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

// Shared captures with the memory of a pool. The graphs of a pool run one after the other: launches see to it where they are on
// different streams. A nil pool is none, a zero one is refused with ErrNotOpen, and one of another device with ErrForeign.
func Shared(p *Pool) Option { return func(o *options) { o.pool = p } }
