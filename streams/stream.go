package streams

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"weak"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/futures"
	"github.com/go-vram/vram/internal/stream/magazine"
)

// Stream is the cache of one CUDA stream. Any number of goroutines may use it.
type Stream struct {
	cache magazine.Cache // first field: every allocation begins here
	wiring
	turn     turn          // owned by the turn
	closed   chan struct{} // Close has returned
	closeErr error         // of that Close
	sibling  func() (*Stream, error)
	tail     *Tail
	attached atomic.Value // see Submitter.Attached
}

// opened reports whether Open made the stream: it is neither nil nor the zero Stream.
func (s *Stream) opened() bool { return s != nil && s.ref != nil }

// orNone returns nil for a zero Stream, and others unchanged.
func (s *Stream) orNone() *Stream {
	if !s.opened() {
		return nil
	}
	return s
}

// callable returns the error of a call that cannot be made: ErrNotOpen, ErrNilContext.
func (s *Stream) callable(ctx context.Context) error {
	if !s.opened() {
		return ErrNotOpen
	}
	if ctx == nil {
		return futures.ErrNilContext
	}
	return nil
}

// call runs inTurn for a method that callers use.
func (s *Stream) call(ctx context.Context, f func()) error {
	if err := s.callable(ctx); err != nil {
		return err
	}
	return s.inTurn(ctx, f)
}

// answered returns the result of a function that runs in the stream's turn, or with an error of call none: after the end of ctx
// the function may still run, and write its result.
func answered[T any](ctx context.Context, s *Stream, f func() T) (T, error) {
	var result T
	if err := s.call(ctx, func() { result = f() }); err != nil {
		var none T
		return none, err
	}
	return result, nil
}

// ID returns the stream's number in reports, from 1 on. 0 of a nil or zero Stream.
func (s *Stream) ID() uint32 {
	if s == nil {
		return 0
	}
	return s.cuda.id
}

// Handle returns the CUDA stream, while the stream is open: Close destroys one that was not adopted. It
// is 0, the legacy default stream, of a nil or zero Stream.
func (s *Stream) Handle() cudadrv.Stream {
	if s == nil {
		return 0
	}
	return s.cuda.stream
}

// Close ends the stream: it closes magazines, returns free memory to the pool once the work
// submitted so far has finished, and destroys the CUDA stream unless that was adopted. It waits for
// the stream. Live buffers stay valid and may be freed later; work that still uses them must have
// finished by then. Waiting requests fail with ErrClosed. Idempotent: of several calls at once one
// ends the stream. The others wait for it; they return its error if they began on an open stream,
// else nil. A stream that is being captured cannot be waited for: it stays open, and the error is a
// *CaptureError. If the driver fails to wait for the stream, the stream is closed with that error; its memory
// is not reused, and later work of other streams on buffers that it used is refused, since nothing can
// order it after the closed stream's work. A stream whose work waits for a process that died is not waited for: it is closed,
// the error of this call and all further ones is a *StrandedError, and CUDA stream and memory stay
// until this process ends.
func (s *Stream) Close() error {
	if !s.opened() {
		return ErrNotOpen
	}
	h := &s.cuda
	if !h.begin() {
		actors.Wait(s.host, s.closed)
		if errors.Is(s.closeErr, ErrStranded) { // its work is still not finished
			return s.closeErr
		}
		return nil
	}
	switch first, err := h.claimClose(); {
	case first:
		defer close(s.closed)
		s.closeErr = s.close()
		return s.closeErr
	case err != nil:
		return err
	}
	actors.Wait(s.host, s.closed) // another Close has overtaken this one
	return s.closeErr
}

// close is Close for the one call that ends the stream.
func (s *Stream) close() error {
	h := &s.cuda
	closeErr := s.inTurn(context.Background(), s.turn.endService)
	h.line.Shut()
	h.awaitCalls(s.host) // the synchronization below does not wait for calls that come later
	syncErr := h.await()
	finished := syncErr == nil || h.gate.finished()
	if !finished {
		s.tail.kept.Store(s)
	}
	var trimErr error
	if finished { // else the device may still use the memory: it stays
		h.line.Finish()
		h.crossings.seen.Store(nil) // else a stream would keep the one before it, and so on
		s.peers.lines.Remove(&h.line.Line)
		trimErr = s.inTurnReturning(context.Background(), s.turn.finished)
	}
	s.pool.Leave(s.id, finished)
	h.awaitCalls(s.host) // a call on a destroyed stream is undefined
	stranded := errors.Is(syncErr, ErrStranded)
	if stranded {
		s.peers.stranded.Store(true)
	}
	if h.adopted || stranded { // a goroutine may wait for the CUDA stream
		return errors.Join(closeErr, syncErr, trimErr)
	}
	return errors.Join(closeErr, syncErr, trimErr, h.guard(func() error { return h.device.StreamDestroy(h.stream) }))
}

// Stats reads the stream's statistics. It waits for the current turn only.
func (s *Stream) Stats(ctx context.Context) (Stats, error) {
	return answered(ctx, s, func() Stats { return s.turn.state.saveStats() })
}

// Trim returns all free memory of the stream to the pool, for other streams and the driver, after
// a fence that it records; Device.Trim releases it to the driver, too. An idle stream does so on
// its own; but on an adopted one only callers record fences, so that memory freed since their last
// request stays until the next one, or until Trim. It waits for the current turn, and not for the
// device, nor for other calls on the stream. Errors: ErrClosed, ErrQuarantined, and the end of ctx,
// which ends only the waiting. While the stream is being captured its memory
// stays with it, without an error, and the capture is not disturbed.
func (s *Stream) Trim(ctx context.Context) error {
	if err := s.callable(ctx); err != nil {
		return err
	}
	var refused error
	if err := s.inTurnReturning(ctx, func() { refused = s.turn.returnFree() }); err != nil { // the record is made before it returns
		return err
	}
	return refused
}

// Lookup finds the live buffer of this stream in whose memory an address lies. Its Bytes are those
// of the block, which may be longer than requested; else it is the same buffer. The caller must
// ensure that the buffer is not freed concurrently. It takes the stream's turn; the first call on a
// stream visits every block, later ones take logarithmic time.
func (s *Stream) Lookup(p cudadrv.Ptr) (Buffer, bool) {
	if !s.opened() {
		return Buffer{}, false
	}
	var b Buffer
	if s.tryTurn(func() { b = s.turn.state.find(p) }) {
		return b, b.slot != nil
	}
	return s.lookupByMessage(p)
}

// lookupByMessage is Lookup while another goroutine is in the turn.
func (s *Stream) lookupByMessage(p cudadrv.Ptr) (Buffer, bool) {
	var b Buffer
	_ = s.inTurn(context.Background(), func() { b = s.turn.state.find(p) }) // a stream that has failed finds none
	return b, b.slot != nil
}

// Exclusive declares that one goroutine uses the stream: while it waits for memory, or in a
// Handover, it frees nothing. Only exclusive streams take part in deadlocks that are found: see the
// package comment. Otherwise a stream is assumed to have several callers, of which others free
// while one waits. Call it before the stream is used.
func (s *Stream) Exclusive() {
	if s.opened() {
		s.suspensions.exclusive.Store(true)
	}
}

// Suspend declares that, until resume is called, no buffer of the stream is freed, because its
// goroutine waits for other streams' goroutines: for a lock, or the end of a step. Any stream of by
// may end the wait; without by any stream that holds memory or waits for some. A wait for memory is
// then a deadlock also where streams that hold memory are suspended, if none of the streams that
// may end those waits makes progress. A closed one counts as making progress, since its goroutine may still
// end the wait. This holds for a stream that is not Exclusive, too. Of
// several suspensions at once all have to end.
//
// The goroutine that ends the wait calls resume before it does anything else: otherwise a
// deadlock may be declared. A resume by the waiting goroutine comes too late: for a value that
// one goroutine sends and another receives use a Handover. resume may be called from any goroutine;
// the second call does nothing. Neither call waits.
func (s *Stream) Suspend(by ...*Stream) (resume func()) {
	x := &suspension{}
	if !s.opened() {
		return func() {}
	}
	for _, other := range by {
		if !other.opened() || other.pool != s.pool { // unknown to the pool: it may make progress
			return func() {}
		}
		x.by = append(x.by, other.id)
	}
	s.suspensions.suspend(x)
	return func() { s.suspensions.resume(x) }
}

// WaitStream makes later work of the stream wait, on the device, for all work submitted so far to
// another stream of the device, as an event recorded there and waited for here does. The allocator
// then knows the order: memory of this stream whose uses on the other have ended by Use.Done
// before the call is collected with its free, without a fence and without a wait for the device. So a
// program that copies buffers out on a second stream, waits for the copy and frees holds one
// buffer, and not one for each copy in flight. A use that lasts until the free, as with
// RecordStream, ends for the stream with the next WaitStream after the free.
//
// It makes two driver calls and does not wait on the host. For the stream itself, and for a closed
// one, it does nothing. Errors: ErrNotOpen, ErrForeign, ErrClosed, *CaptureError while one of the
// two is being captured, and the driver's, after which nothing waits.
func (s *Stream) WaitStream(other *Stream) error {
	switch {
	case !s.opened():
		return ErrNotOpen
	case !other.opened():
		return &cudadrv.NotOpenError{Argument: "other"}
	case s.peers != other.peers:
		return ErrForeign
	case s == other:
		return nil
	}
	number, err := s.cuda.follow(other.cuda.line, "waiting for a stream")
	if err != nil || number == 0 {
		return err
	}
	s.post(func() { s.turn.state.core.Join(&other.cuda.line.Line, number) })
	return nil
}

// ExcludeFromWaits declares that the stream's kernels may run without end, or end only after some
// other event: a persistent kernel, or a collective that waits for another GPU. No request waits
// for the work of such a stream, neither on the host nor on the device: a request that only
// memory in use by that work could serve is refused. It does not wait, and applies to waiting requests, too.
// Close and Transfer still wait for the stream.
func (s *Stream) ExcludeFromWaits(exclude bool) {
	if !s.opened() {
		return
	}
	s.cuda.line.Excluded.Store(exclude)
	s.pool.Exclude(s.id, exclude)
}

// String returns the stream's number, and whether it is adopted or closed. It takes no turn.
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

// Finished reports whether a stream is closed and the device has finished its work: nothing has to wait for it.
func Finished(s *Stream) bool { return s.cuda.line.Finished() }

// Tail is the end of a stream's work, for packages that may wait for it later. It keeps a closed stream only
// while its work has not finished.
type Tail struct {
	stream weak.Pointer[Stream]
	kept   atomic.Pointer[Stream] // a stream that was closed and has not finished
}
