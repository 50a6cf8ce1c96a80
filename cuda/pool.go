package cuda

import (
	"context"
	"slices"
	"sync"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

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

// enter begins a capture of a context with the pool.
func (p *Pool) enter(c *Context) error {
	if p.on == nil {
		return ErrNotOpen
	}
	if !c.work.SameDevice(p.on.work) {
		return ErrForeign
	}
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

// take takes leases that no graph uses any more.
func (p *Pool) take(all []*streams.Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leases = append(p.leases, all...)
	p.finishLeases()
}

// finishLeases finishes the leases for which nothing waits. It asks the driver about the oldest one, and about others only
// after one that has finished.
func (p *Pool) finishLeases() {
	waits := false
	p.leases = slices.DeleteFunc(p.leases, func(l *streams.Lease) bool {
		if waits {
			return false
		}
		finished := l.Finish()
		waits = !finished && l.Ended()
		return finished
	})
}

// unfinished returns the streams of a list that have work, or may get some. It does not change the list.
func unfinished(all []*Stream) []*Stream {
	return slices.DeleteFunc(slices.Clone(all), streams.Finished)
}
