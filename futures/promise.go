package futures

import (
	"context"
	"runtime"
	"sync/atomic"
)

// probeCount is how often Await yields and looks again before it parks. An actor on another processor answers in
// less time than parking takes; two probes miss some of those, and beyond four a busy machine pays for nothing.
const probeCount = 4

// Promise is the producer's side of an answer. The zero value is pending and ready for use, so that a
// request can embed it; it must not be copied, and it serves for one answer only.
type Promise[T any] struct {
	// claimed decides the winner; who sets it writes val and err.
	claimed atomic.Bool

	// observers is a stack that grows until it is sealed. Sealing it publishes val and err.
	observers atomic.Pointer[observer]

	// gate is what waiters park on, made by the first of them, shut by the completion.
	gate atomic.Pointer[gate]

	val T
	err error

	// canceled is written before the future is handed out.
	canceled func()
}

// observer is told of a completion on the goroutine that completes: it must be short and call no foreign code.
type observer struct {
	next *observer
	tell func()
}

// gate is closed by the completion. One gate serves every waiter, so that a wait that is given up leaves nothing behind
// and no node is ever reused while somebody may still signal it.
type gate struct{ open chan struct{} }

// Marks: only their addresses mean something.
var (
	sealed observer //nolint:gochecknoglobals // An identity, never written.
	opened gate     //nolint:gochecknoglobals // An identity, never written.
)

// NewPromise returns a pending promise. onCancel may be nil, see OnCancel.
func NewPromise[T any](onCancel func()) *Promise[T] {
	return &Promise[T]{canceled: onCancel}
}

// OnCancel sets the function that is told after a cancellation won, so that the producer can drop the request. It runs
// on the canceling goroutine. It is set before the future is handed out, or not at all.
func (p *Promise[T]) OnCancel(fn func()) { p.canceled = fn }

// Future returns the asking side.
func (p *Promise[T]) Future() Future[T] { return Future[T]{p: p} }

// Pending reports whether a completion could still win.
func (p *Promise[T]) Pending() bool { return !p.claimed.Load() }

// Complete gives the answer. The first completion wins; false tells the producer that somebody was earlier
// and that v was not delivered to anyone: it must take v back. It does not wait and runs no function of a caller.
func (p *Promise[T]) Complete(v T, err error) bool {
	if !p.claim() {
		return false
	}
	p.publish(v, err)
	return true
}

// Cancel completes with cause from the asking side and then tells OnCancel's function. It reports whether it won.
// A nil cause is ErrCanceled.
func (p *Promise[T]) Cancel(cause error) bool {
	if !p.claim() {
		return false
	}
	if cause == nil {
		cause = ErrCanceled
	}
	var none T
	p.publish(none, cause)
	if p.canceled != nil {
		p.canceled()
	}
	return true
}

// claim decides the winner, who has to publish.
func (p *Promise[T]) claim() bool { return p.claimed.CompareAndSwap(false, true) }

// publish makes the answer visible and tells everybody. The caller has claimed.
func (p *Promise[T]) publish(v T, err error) {
	p.val, p.err = v, err
	o := p.observers.Swap(&sealed)
	if g := p.gate.Swap(&opened); g != nil {
		close(g.open)
	}
	for o != nil {
		next := o.next // Before telling: the observer's owner may let go of it.
		o.tell()
		o = next
	}
}

func (p *Promise[T]) completed() bool { return p.observers.Load() == &sealed }

// observe arranges that tell is called once by the completion. False means that the answer is there and tell is
// not called.
func (p *Promise[T]) observe(tell func()) bool {
	o := &observer{tell: tell}
	for {
		top := p.observers.Load()
		if top == &sealed {
			return false
		}
		o.next = top
		if p.observers.CompareAndSwap(top, o) {
			return true
		}
	}
}

// done returns the channel that the completion closes.
func (p *Promise[T]) done() <-chan struct{} {
	g := p.gate.Load()
	if g == nil {
		g = &gate{open: make(chan struct{})}
		if !p.gate.CompareAndSwap(nil, g) {
			g = p.gate.Load()
		}
	}
	if g == &opened {
		return closedChannel()
	}
	return g.open
}

func (p *Promise[T]) await(ctx context.Context) (T, error) {
	for range probeCount {
		if p.completed() {
			return p.val, p.err
		}
		runtime.Gosched()
	}
	arrived := p.done()
	if p.completed() { // Nobody parks for a completion that was seen, even if its goroutine is held up before the gate.
		return p.val, p.err
	}
	select {
	case <-arrived:
		return p.val, p.err
	case <-ctx.Done():
	}
	if p.completed() {
		return p.val, p.err
	}
	var none T
	return none, ctx.Err()
}
