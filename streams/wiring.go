package streams

import (
	"context"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/futures"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/recovered"
	"github.com/go-vram/vram/internal/stream/core"
	"github.com/go-vram/vram/pool"
)

// callback is a function that a caller runs in the stream's turn.
type callback struct {
	actors.Link
	run           func()
	awaitsReturns bool // run returns memory: it is answered once the pool has the memory
	promise       futures.Promise[struct{}]
}

// Fail answers the callback with an error.
func (c *callback) Fail(err error) { c.promise.Complete(struct{}{}, err) }

// wiring has the fields that all parts of a stream use. Open sets them; cuda, peer and suspensions
// guard their own state. Any number of goroutines may use it.
type wiring struct {
	id          poolcore.Client
	pool        *pool.Pool
	limit       *atomic.Int64 // bytes, of the device
	host        actors.Host   // nil: the Go scheduler
	ref         *actors.Ref
	client      pool.Client // the stream as the pool sees it
	panics      *recovered.Log
	cuda        cudaStream
	peer        peer
	peers       *Peers
	suspensions suspensions
	sampler     sampler
	handler     func(*pool.OutOfMemoryError) bool // may be nil
	handles     func() bool                       // whether it has anything to do; nil: always
	complete    func(*pool.OutOfMemoryError)      // may be nil
	limitSource func() string                     // likewise
	charged     atomic.Bool                       // some buffer was charged to a tenant
	tally       pool.Tally
	parts       *core.Parts // of batches that the stream's callers ask for
}

// inTurn runs f in the stream's turn and waits for it: on this goroutine, or on the one that is in
// the turn. The end of ctx ends only the waiting. The error may be the *PanicError of f, or the
// cause of the stream's end.
func (w *wiring) inTurn(ctx context.Context, f func()) error { return w.await(ctx, &callback{run: f}) }

// inTurnReturning is inTurn for an f that returns memory: it waits until the pool has the memory.
func (w *wiring) inTurnReturning(ctx context.Context, f func()) error {
	return w.await(ctx, &callback{run: f, awaitsReturns: true})
}

func (w *wiring) await(ctx context.Context, c *callback) error {
	c.promise.On(w.host)
	w.ref.Call(c)
	_, err := c.promise.Await(ctx)
	return err
}

// tryTurn runs f in the stream's turn on this goroutine, if no other is in it, and performs the
// effects. The actor reports a panic of f.
func (w *wiring) tryTurn(f func()) (entered bool) {
	if !w.ref.TryEnter() {
		return false
	}
	w.ref.Perform(w.runEntered(f))
	return true
}

func (w *wiring) runEntered(f func()) (left actors.Effects) {
	defer w.ref.Exit(&left, nil)
	f()
	return left
}

// post has f run in the stream's turn, without waiting for it: here, if no goroutine is in the
// turn.
func (w *wiring) post(f func()) { w.ref.Call(&callback{run: f}) }

// handled reports whether a refusal goes to the caller's handler.
func (w *wiring) handled() bool { return w.handler != nil && (w.handles == nil || w.handles()) }

// spawn runs f on a goroutine of its own.
func (w *wiring) spawn(f func()) { actors.Go(w.host, "", f) }
