package futures

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/go-vram/vram/internal/region"
)

// probeCount is how often Await yields and looks again before it parks. A yield takes 0.1 µs on an
// idle processor and lets others run on a busy one; sixteen take as long as one wake-up of a parked
// goroutine, so that failed probing at most doubles the price of a wait. Not fewer: four miss
// answers of actors that have to wake up first. Not more: a driver call takes longer than any
// probing should.
const probeCount = 16

// Promise is the producer's side of an answer. The zero value is pending and ready for use, so that
// a request can embed it; it must not be copied, and it serves for one answer only.
type Promise[T any] struct {
	core completion
	val  T
}

// completion is the part of a promise that does not depend on its type. It is not embedded: the compiler makes its code once, and the code of
// Promise for each type.
type completion struct {
	// claimed decides the winner; the goroutine that sets it writes val and err.
	claimed atomic.Bool

	// observers is a stack that grows until it is sealed. Sealing it publishes val and err.
	observers atomic.Pointer[observer]

	// gate is where waiters park, made by the first of them, shut by the completion.
	gate atomic.Pointer[gate]

	err error

	// canceled and host are written before the future is handed out.
	canceled func()
	awaited  func(begins bool)
	host     Host
	explains explainer
}

// gate is closed by the completion. One gate serves every waiter, so that a wait that is given up leaves nothing to clean up
// and no node is ever reused while a goroutine may still signal it.
type gate struct{ open chan struct{} }

// Marks: only their addresses mean something.
var (
	sealed observer                      //nolint:gochecknoglobals // An identity, never written.
	opened = gate{open: closedChannel()} //nolint:gochecknoglobals // An identity, never written.
)

// NewPromise returns a pending promise. onCancel may be nil, see OnCancel.
func NewPromise[T any](onCancel func()) *Promise[T] {
	return &Promise[T]{core: completion{canceled: onCancel}}
}

// OnCancel sets the function that is called after a cancellation won, so that the producer can drop
// the request. It runs on the canceling goroutine: a panic in it is swallowed, and the cancellation
// stands. It is set before the future is handed out, or not at all.
func (p *Promise[T]) OnCancel(fn func()) {
	if p == nil {
		return
	}
	p.core.canceled = fn
}

// OnAwait sets the function that is called with true when a goroutine begins to wait in Await for an answer that is not there,
// and with false when it stops without one. It runs on that goroutine, and must not wait. It is set before the future is handed
// out, or not at all. Other waits (Done, and those for a future that is made from this one) do not call it.
func (p *Promise[T]) OnAwait(fn func(begins bool)) {
	if p == nil {
		return
	}
	p.core.awaited = fn
}

// OnGiveUp sets the function that makes the error of an Await whose context has ended, of this future or of a derived one: it
// gets the context's error, and should wrap it. Else it is like OnAwait.
func (p *Promise[T]) OnGiveUp(fn func(ended error) error) {
	if p == nil || fn == nil {
		return
	}
	p.core.explains = explanation(fn)
}

// explainer makes the error of a wait whose context has ended.
type explainer interface{ gaveUp(ended error) error }

// explanation is the function of OnGiveUp.
type explanation func(ended error) error

func (e explanation) gaveUp(ended error) error { return e(ended) }

// explain returns the error of a wait whose context has ended.
func (p *completion) explain(ended error) error {
	if p.explains == nil {
		return ended
	}
	return p.explains.gaveUp(ended)
}

// Future returns the asking side.
func (p *Promise[T]) Future() Future[T] { return Future[T]{p: p} }

// Await is Future.Await, with a ctx that is not nil: for a producer that waits for its own answer.
func (p *Promise[T]) Await(ctx context.Context) (T, error) {
	if p == nil {
		var none T
		return none, ErrNoPromise
	}
	return p.await(ctx)
}

// Pending reports whether a completion could still win.
func (p *Promise[T]) Pending() bool { return p != nil && !p.core.claimed.Load() }

// Complete gives the answer. The first completion wins; false: another one came first, and v was
// not delivered: the producer keeps it. It does not wait and runs no function of a caller.
func (p *Promise[T]) Complete(v T, err error) bool {
	if p == nil || !p.core.claim() {
		return false
	}
	p.publish(v, err)
	return true
}

// Cancel completes with cause from the asking side and then calls OnCancel's function. It reports
// whether it won. A nil cause is ErrCanceled.
func (p *Promise[T]) Cancel(cause error) bool {
	if p == nil || !p.core.claim() {
		return false
	}
	if cause == nil {
		cause = ErrCanceled
	}
	var none T
	p.publish(none, cause)
	if p.core.canceled != nil {
		containPanic(p.core.canceled)
	}
	return true
}

// claim decides the winner, which has to publish.
func (p *completion) claim() bool { return p.claimed.CompareAndSwap(false, true) }

// publish makes the answer visible and notifies all waiters. The caller has claimed.
func (p *Promise[T]) publish(v T, err error) {
	first := p.seal(v, err)
	p.core.openGate()
	first.notifyAll()
}

// seal makes the answer visible and returns the observers to notify.
func (p *Promise[T]) seal(v T, err error) *observer {
	p.val, p.core.err = v, err
	return p.core.observers.Swap(&sealed)
}

// openGate wakes parked waiters and keeps others from parking.
func (p *completion) openGate() {
	if g := p.gate.Swap(&opened); g != nil {
		close(g.open)
	}
}

func (p *completion) completed() bool { return p.observers.Load() == &sealed }

// done returns the channel that the completion closes.
func (p *completion) done() <-chan struct{} {
	g := p.gate.Load()
	if g == nil {
		g = &gate{open: make(chan struct{})}
		if !p.gate.CompareAndSwap(nil, g) {
			g = p.gate.Load()
		}
	}
	return g.open
}

func (p *Promise[T]) await(ctx context.Context) (T, error) {
	if p.core.await(ctx) {
		return p.val, p.core.err
	}
	if p.core.awaited != nil {
		defer p.core.awaited(false) // last: the goroutines that it rouses would hold up the explanation
	}
	var none T
	return none, p.core.explain(ctx.Err())
}

// await waits for the completion or the end of ctx. It reports whether the answer is there.
func (p *completion) await(ctx context.Context) bool {
	if p.awaited != nil && !p.completed() {
		p.awaited(true)
	}
	if p.host != nil && !p.completed() {
		p.host.Wait(p.done(), ctx.Done())
	}
	for range probeCount {
		if p.completed() {
			return true
		}
		runtime.Gosched()
	}
	arrived := p.done()
	if p.completed() { // The completing goroutine may be held up before the gate.
		return true
	}
	end := region.Begin(region.Wait)
	p.park(arrived, ctx.Done())
	end()
	return p.completed()
}

// park waits for one of two channels; a nil ended is never ready.
func (p *completion) park(arrived, ended <-chan struct{}) {
	if ended == nil { // A plain receive is cheaper than a choice.
		<-arrived
		return
	}
	select {
	case <-arrived:
	case <-ended:
	}
}
