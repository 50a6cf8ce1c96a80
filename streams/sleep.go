package streams

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// Asleep reports whether work on a buffer of the stream is refused.
func Asleep(home *Stream) bool { return home.cuda.gate != nil && home.cuda.gate.isShut() }

// Sleeper is a stream whose physical memory can be released to the driver as a whole, while its buffers stay
// live and keep their addresses. No page leaves it before Close, only its owner's copies are submitted to it,
// and its handles hold no memory of other streams. The owner must not call Shut, Open, Settle, Release and
// Restore concurrently.
type Sleeper struct{ s *Stream }

// NewSleeper makes a sleeper on its own stream, which Close closes. Errors: as for opening a stream,
// ErrNotOpen, cudadrv.NotSupported with plain segments.
func (x Submitter) NewSleeper() (Sleeper, error) {
	switch {
	case x.s.sibling == nil:
		return Sleeper{}, ErrNotOpen
	case x.s.pool.Places() != nil:
		return Sleeper{}, &cudadrv.CallError{Func: "cuMemMap", Result: cudadrv.NotSupported, Detail: "plain segments cannot sleep"}
	}
	s, err := x.s.sibling()
	if err != nil {
		return Sleeper{}, err
	}
	s.cuda.gate = &gate{empty: make(chan struct{}, 1)} // no buffer of the stream exists yet
	s.pool.Apart(s.id)
	if err := s.inTurn(context.Background(), func() { s.turn.state.core.Keep(true) }); err != nil {
		return Sleeper{}, errors.Join(err, s.Close())
	}
	return Sleeper{s}, nil
}

// Alloc allocates memory that can sleep. Errors: ErrAsleep, and the errors of Stream.Alloc.
func (x Sleeper) Alloc(bytes int64) (Buffer, error) {
	if err := x.s.cuda.gate.enter(); err != nil {
		return Buffer{}, err
	}
	defer x.s.cuda.gate.leave()
	return x.s.Alloc(bytes)
}

// Stats reads the statistics of the stream.
func (x Sleeper) Stats(ctx context.Context) (Stats, error) { return x.s.Stats(ctx) }

// Handle returns the CUDA stream, for the copies of the owner.
func (x Sleeper) Handle() cudadrv.Stream { return x.s.Handle() }

// Shut refuses work on the buffers, and allocations, from now on, and waits for submissions in progress. The
// error is ctx's, and then nothing is refused.
func (x Sleeper) Shut(ctx context.Context) error { return x.s.cuda.gate.shut(ctx) }

// Open allows work and allocations again.
func (x Sleeper) Open() { x.s.cuda.gate.open() }

// Settle waits until the device has finished all work on the buffers that package cuda has submitted. Later
// copies of the owner wait for that work on the device, too. Errors: ctx's, which does not stop the work;
// *CaptureError for a stream that is being captured, *ClosedError for one that is being closed, and the
// driver's.
func (x Sleeper) Settle(ctx context.Context) error {
	users := x.s.cuda.crossings.users.Load()
	if users == nil {
		return nil
	}
	for _, u := range *users {
		if err := u.settle(ctx, &x.s.cuda); err != nil {
			return err
		}
	}
	return nil
}

// settle waits until the device has finished the work submitted to a stream so far, and makes later work of
// another stream wait for it on the device.
func (h *cudaStream) settle(ctx context.Context, later *cudaStream) error {
	if !h.begin() {
		if h.line.Finished() {
			return nil
		}
		return h.closed()
	}
	m, err := h.mark()
	if err != nil {
		h.done()
		return err
	}
	if err := later.precede(m); err != nil {
		h.discard(m)
		h.done()
		return err
	}
	passed := make(chan error, 1)
	go func() { // it ends with the work, which Close of the stream waits for
		defer h.done()
		guardTo(h.panics, func(err error) {
			h.discard(m)
			passed <- err
		}, func() error { return h.fences.Wait(m) })
	}()
	select {
	case err := <-passed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Copy makes the owner's driver calls on the sleeper's stream.
func (x Sleeper) Copy(queue func(on cudadrv.Stream) error) error {
	h := &x.s.cuda
	if !h.begin() {
		return h.closed()
	}
	defer h.done()
	h.gate.copies.Store(true)
	return h.guard(func() error { return queue(h.stream) })
}

// AwaitCopies waits until the device has done them.
func (x Sleeper) AwaitCopies() error {
	h := &x.s.cuda
	if !h.begin() {
		return h.closed()
	}
	defer h.done()
	// Both views wait: the program's later work comes after the copies, and so do the allocator's calls that unmap memory.
	if err := h.synchronize(); err != nil {
		return err
	}
	err := h.guard(func() error { return cudadrv.ProgramView(h.device).StreamSynchronize(h.stream) })
	h.gate.copies.Store(err != nil)
	return err
}

// Memory is a range of a sleeper's memory.
type Memory struct {
	Ptr   cudadrv.Ptr
	Bytes int64
}

// Contents lists the memory whose contents matter, in order of address: live buffers, and freed ones that
// graphs hold.
func (x Sleeper) Contents(ctx context.Context) ([]Memory, error) {
	var all []Memory
	add := func(p cudadrv.Ptr, bytes int64) { all = append(all, Memory{p, bytes}) }
	err := x.s.inTurn(ctx, func() {
		x.s.turn.state.core.Live(func(p cudadrv.Ptr, bytes int64, _ *magazine.Slot) { add(p, bytes) })
		x.s.turn.state.core.Pending(add)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Memory) int { return cmp.Compare(a.Ptr, b.Ptr) })
	return all, nil
}

// Release returns the physical memory to the driver: see pool.Sleep. Call Shut, Settle and AwaitCopies first.
// It returns the number of bytes.
func (x Sleeper) Release(ctx context.Context) (sleepingBytes int64, err error) {
	x.s.cuda.gate.idle.Store(true)
	sleepingBytes, err = x.s.pool.Sleep(ctx, x.s.id)
	return sleepingBytes, x.s.asClosed(err)
}

// asClosed returns the error of the stream where it is one of a pool that was closed.
func (s *Stream) asClosed(err error) error {
	if errors.Is(err, pool.ErrClosed) {
		return s.cuda.closed()
	}
	return err
}

// Ended reports whether the stream or its device was closed.
func (x Sleeper) Ended() bool { return x.s.cuda.closing.Load() }

// Restore maps new memory for all buffers, at the same addresses: see pool.Wake. Its contents are undefined.
// If the driver refuses and the device frees memory elsewhere, it tries again, as for an allocation.
func (x Sleeper) Restore(ctx context.Context) error {
	x.s.cuda.gate.idle.Store(false)
	err := x.s.completed(x.s.pool.Wake(ctx, x.s.id))
	short := (*pool.OutOfMemoryError)(nil)
	if !errors.As(err, &short) || !x.s.handled() {
		return x.s.asClosed(err)
	}
	var failed error
	retry, answered := false, make(chan struct{})
	x.s.spawn(func() {
		defer close(answered)
		retry = x.s.askHandler(short, &failed)
	})
	actors.Wait(x.s.host, answered)
	if !retry {
		return errors.Join(err, failed)
	}
	return x.s.asClosed(x.s.completed(x.s.pool.Wake(ctx, x.s.id)))
}

// View returns the device as programs see it.
func (x Sleeper) View() cudadrv.Device { return cudadrv.ProgramView(x.s.cuda.device) }

// Close closes the stream. Live buffers stay valid until they are freed, and stay asleep if they are. Idempotent. Memory that is
// asleep returns to the device also if the driver fails to wait for the stream: no work uses it.
func (x Sleeper) Close() error { return x.s.Close() }
