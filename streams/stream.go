package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/streams/magazine"
)

// Stream is the cache of one CUDA stream. Any number of goroutines may use it.
type Stream struct {
	cache magazine.Cache // first: every allocation begins here
	wiring
	turn   turn          // owned by the turn
	closed chan struct{} // Close has returned
}

// opened reports whether it is one that Open made: neither nil nor the zero Stream.
func (s *Stream) opened() bool { return s != nil && s.ref != nil }

// callable says why a call cannot be made: ErrNotOpen, ErrNilContext.
func (s *Stream) callable(ctx context.Context) error {
	if !s.opened() {
		return ErrNotOpen
	}
	if ctx == nil {
		return futures.ErrNilContext
	}
	return nil
}

// call is inTurn for a caller.
func (s *Stream) call(ctx context.Context, f func()) error {
	if err := s.callable(ctx); err != nil {
		return err
	}
	return s.inTurn(ctx, f)
}

// ID is the number by which reports name the stream, from 1 on. 0 of a nil or zero Stream.
func (s *Stream) ID() uint32 {
	if s == nil {
		return 0
	}
	return s.cuda.id
}

// Handle is the CUDA stream, as long as the stream is open: Close destroys one that was not adopted. It is 0, the legacy default
// stream, of a nil or zero Stream.
func (s *Stream) Handle() cudadrv.Stream {
	if s == nil {
		return 0
	}
	return s.cuda.stream
}

// Closed reports whether Close has returned without an error that kept the stream open.
func (s *Stream) Closed() bool {
	if !s.opened() {
		return false
	}
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Close ends the stream's service: magazines are closed, free memory goes back to the pool once the work
// submitted so far has finished, and, unless the handle was adopted, the CUDA stream is destroyed. It
// waits for the stream. Buffers that live stay valid and may be freed later; work that still uses them
// must have finished by then. Requests that wait fail with ErrClosed. Idempotent: later calls wait for the
// first and return nil. A stream that is being captured cannot be waited for: it stays open then, and the error is a
// *CaptureError.
func (s *Stream) Close() error {
	if !s.opened() {
		return ErrNotOpen
	}
	h := &s.cuda
	if !h.closing.Load() {
		if err := h.uncaptured("cuStreamSynchronize"); err != nil {
			return err
		}
	}
	if !h.closing.CompareAndSwap(false, true) {
		actors.Wait(s.host, s.closed)
		return nil
	}
	defer close(s.closed)
	closeErr := s.inTurn(context.Background(), s.turn.endService)
	h.line.Shut()
	h.awaitCalls(s.host) // what is submitted behind the synchronisation would be covered by nothing
	syncErr := h.synchronize()
	var trimErr error
	if syncErr == nil { // else nobody knows what the device still touches: the memory stays
		h.line.Finish()
		s.peers.lines.Remove(&h.line.Line)
		trimErr = s.inTurnReturning(context.Background(), s.turn.finished)
	}
	s.pool.Leave(s.id, syncErr == nil)
	h.awaitCalls(s.host) // a call on a destroyed stream is undefined
	if h.adopted {
		return errors.Join(closeErr, syncErr, trimErr)
	}
	return errors.Join(closeErr, syncErr, trimErr, h.destroy())
}

// Stats reads the stream's books. It waits for the turn at hand and for nothing else.
func (s *Stream) Stats(ctx context.Context) (Stats, error) {
	var n Stats
	if err := s.call(ctx, func() { n = s.turn.stats() }); err != nil {
		return Stats{}, err
	}
	return n, nil
}

// ResetPeak restarts the peak of live bytes at what lives now: what was freed until then has come home.
func (s *Stream) ResetPeak(ctx context.Context) error {
	return s.call(ctx, func() { s.turn.core.ResetPeak() })
}

// Check holds the stream's books against their invariants, block by block. It waits for the turn at hand and for
// nothing else. Once the stream has ended it says why.
func (s *Stream) Check(ctx context.Context) error {
	var finding error
	if err := s.call(ctx, func() { finding = s.turn.core.Check() }); err != nil {
		return err
	}
	return finding
}

// Coalesce merges all that the stream has free, and keeps it: magazines of large blocks end, and so do spans that nobody uses.
// Lanes follow at their next calls. It waits for the turn at hand. Its error is ErrClosed, or why the stream has ended.
func (s *Stream) Coalesce(ctx context.Context) error {
	return s.call(ctx, func() { s.turn.core.Coalesce() })
}

// Return gives all that the stream keeps free back to the pool, for other streams and the driver, behind a fence that is
// recorded now. An idle stream does so by itself, save that on an adopted one only its callers record: there what
// was freed since the last request of theirs stays until the next one, or until Return. It waits for the turn at hand,
// and not for the device. Lanes give back what they keep at their next calls. Errors: ErrClosed, ErrQuarantined, and the
// end of ctx, which ends only the waiting.
func (s *Stream) Return(ctx context.Context) error {
	if err := s.callable(ctx); err != nil {
		return err
	}
	var refused error
	if err := s.inTurnReturning(ctx, func() { refused = s.turn.returnFree() }); err != nil {
		return err
	}
	if refused == nil {
		s.cuda.awaitCalls(s.host) // the record is the caller's: it is made before the caller goes on
	}
	return refused
}

// Sweep takes home what announced uses kept that have finished, and sees to the fences for all others. What has finished when it is
// called is home when it returns. It waits for the turn at hand; to those who look at a fence at the same time it gives some time to
// say what they saw; it waits for nothing else. The error is that of a stream that has ended, or the context's.
func (s *Stream) Sweep(ctx context.Context) error {
	var pendingFences []fencing
	if err := s.call(ctx, func() { pendingFences = s.turn.pendingFences() }); err != nil {
		return err
	}
	for _, f := range pendingFences {
		f.sweep(s.host)
	}
	return s.inTurn(ctx, s.turn.takePassed)
}

// Lookup finds the live buffer of this stream in whose memory an address lies. Its Bytes are those of the block, which may
// be more than was asked for; else it is the same buffer. The caller sees to it that nobody frees the buffer meanwhile. It takes the
// stream's turn; the first call on a stream visits every block of it, later ones take logarithmic time.
func (s *Stream) Lookup(p cudadrv.Ptr) (Buffer, bool) {
	if !s.opened() {
		return Buffer{}, false
	}
	var b Buffer
	if entered, _ := s.tryTurn(func() { b = s.turn.find(p) }); entered {
		return b, b.slot != nil
	}
	return s.lookupByMessage(p)
}

// lookupBehind is Lookup where somebody is in the turn.
func (s *Stream) lookupByMessage(p cudadrv.Ptr) (Buffer, bool) {
	var b Buffer
	if err := s.inTurn(context.Background(), func() { b = s.turn.find(p) }); err != nil {
		return Buffer{}, false
	}
	return b, b.slot != nil
}

// LiveBuffers lists the buffers that live, in no order. It is meant for a closed stream: with others at
// work the list is one of many that were true.
func (s *Stream) LiveBuffers() (all []LiveBuffer) {
	if err := s.call(context.Background(), func() { all = s.turn.live() }); err != nil {
		return nil
	}
	return all
}

// Exclusive says that one goroutine uses the stream: while it waits for memory, or in a Handover, nobody frees on the stream. Only
// then can a wait be known for a deadlock that the stream takes part in: see the package comment. A stream is otherwise taken to
// have several callers, of which others free while one waits. Say it before the stream is used.
func (s *Stream) Exclusive() {
	if s.opened() {
		s.suspensions.exclusive.Store(true)
	}
}

// Suspend says that, until resume is called, nobody frees on the stream, because its goroutine waits for what only other
// streams' goroutines do: a lock, the end of a step. by are the streams of the device of which any may end the wait; none: any that
// holds memory or waits for some. A wait for memory is then a deadlock also where some streams that hold memory are suspended,
// if of those that may have them go on none does. That holds for a stream that is not Exclusive, too. Waits at once
// all have to end.
//
// The goroutine that ends such a wait calls resume, before it does anything else: only then is no deadlock declared meanwhile. A
// resume that the waiting goroutine calls itself comes too late: for a value that one goroutine sends and another receives use a
// Handover. resume may be called from any goroutine; the second call does nothing. Neither call waits.
func (s *Stream) Suspend(by ...*Stream) (resume func()) {
	x := &suspension{}
	if !s.opened() {
		return func() {}
	}
	for _, other := range by {
		if !other.opened() || other.pool != s.pool { // the pool knows nothing of it, and has to take it to go on
			return func() {}
		}
		x.by = append(x.by, other.id)
	}
	s.suspensions.suspend(x)
	return func() { s.suspensions.resume(x) }
}

// ExcludeFromWaits says whether the stream's kernels may take without end, or end only when something else happens: those of a
// persistent kernel, or of a collective that waits for another GPU. No request waits for the work of such a stream, neither on the
// host nor on the device: one that only memory behind that work could serve is refused. It does not wait, and holds for
// requests that wait already. Close and Transfer wait for the stream all the same.
func (s *Stream) ExcludeFromWaits(exclude bool) {
	if !s.opened() {
		return
	}
	s.cuda.line.Excluded.Store(exclude)
	s.pool.Exclude(s.id, exclude)
}

// String is the stream's number, and what sets it apart. It takes no turn.
func (s *Stream) String() string {
	if !s.opened() {
		return "no stream"
	}
	text := fmt.Sprintf("stream %d", s.ID())
	if s.cuda.adopted {
		text += fmt.Sprintf(", adopted (handle %#x)", uint64(s.cuda.stream))
	}
	if s.cuda.closing.Load() {
		text += ", closed"
	}
	return text
}
