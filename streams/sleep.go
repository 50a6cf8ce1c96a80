package streams

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/internal/fence"
	"github.com/go-vram/vram/internal/stream/magazine"
	"github.com/go-vram/vram/pool"
)

// ErrAsleep refuses work on a buffer whose memory was given back to the driver, or is about to be: see package cuda/sleep.
var ErrAsleep = errors.New("vram: the buffer is asleep")

// gate counts the works that are being submitted and touch the memory of a stream, and refuses them while it is shut.
type gate struct {
	word  atomic.Int64  // the number of them; and shutBit
	empty chan struct{} // of one place: a shut gate may have become empty
	// copies: the device may not have done all copies of the owner's. Written while the gate is shut.
	copies atomic.Bool
}

const shutBit = int64(1) << 62

// enter begins a work, which leave ends. Its error is ErrAsleep.
func (g *gate) enter() error {
	if g.word.Add(1) >= shutBit {
		g.leave()
		return ErrAsleep
	}
	return nil
}

func (g *gate) leave() {
	if g.word.Add(-1) == shutBit {
		select {
		case g.empty <- struct{}{}:
		default:
		}
	}
}

// shut refuses further works, and waits for those that have begun. If ctx ends first the gate is open.
func (g *gate) shut(ctx context.Context) error {
	g.word.Or(shutBit)
	for g.word.Load() != shutBit {
		select {
		case <-g.empty:
		case <-ctx.Done():
			g.open()
			return ctx.Err()
		}
	}
	return nil
}

func (g *gate) open() { g.word.And(^shutBit) }

// isShut reports whether works are refused.
func (g *gate) isShut() bool { return g.word.Load() >= shutBit }

// gates are those that a work has entered. It is for one goroutine.
type gates struct {
	few   [4]*gate
	count int
	more  []*gate
}

// enter enters a stream's gate, if it has one, once.
func (all *gates) enter(home *Stream) error {
	g := home.cuda.gate
	if g == nil || slices.Contains(all.few[:all.count], g) || slices.Contains(all.more, g) {
		return nil
	}
	if err := g.enter(); err != nil {
		return err
	}
	if all.count < len(all.few) {
		all.few[all.count] = g
		all.count++
	} else {
		all.more = append(all.more, g)
	}
	return nil
}

// leave leaves all of them.
func (all *gates) leave() {
	for _, g := range all.few[:all.count] {
		g.leave()
	}
	for _, g := range all.more {
		g.leave()
	}
	all.count, all.more = 0, nil
}

// Asleep reports whether work on a buffer of the stream is refused.
func Asleep(home *Stream) bool { return home.cuda.gate != nil && home.cuda.gate.isShut() }

// Sleeper is a stream whose physical memory can be given back to the driver as a whole, while its buffers stay live and keep their
// addresses. No page leaves it before Close, nothing is submitted to it but copies of its owner's, and its handles hold no memory of
// other streams. The owner makes one of the calls Shut, Open, Settle, Release and Restore at a time.
type Sleeper struct{ s *Stream }

// NewSleeper makes a sleeper on a stream of its own, which Close closes. Errors: those of making a stream, ErrNotOpen,
// cudadrv.NotSupported with plain segments.
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
	if err := s.inTurn(context.Background(), func() { s.turn.core.Keep(true) }); err != nil {
		return Sleeper{}, errors.Join(err, s.Close())
	}
	return Sleeper{s}, nil
}

// Alloc allocates memory that can sleep. Errors: ErrAsleep, and those of Stream.Alloc.
func (x Sleeper) Alloc(bytes int64) (Buffer, error) {
	if err := x.s.cuda.gate.enter(); err != nil {
		return Buffer{}, err
	}
	defer x.s.cuda.gate.leave()
	return x.s.Alloc(bytes)
}

// Stats are those of the stream.
func (x Sleeper) Stats(ctx context.Context) (Stats, error) { return x.s.Stats(ctx) }

// Handle is the CUDA stream, for the copies of the owner.
func (x Sleeper) Handle() cudadrv.Stream { return x.s.Handle() }

// Shut refuses work on the buffers, and allocations, from here on, and waits for calls that have begun to submit some. The error is
// ctx's, and then nothing is refused.
func (x Sleeper) Shut(ctx context.Context) error { return x.s.cuda.gate.shut(ctx) }

// Open lets work begin again, and allocations.
func (x Sleeper) Open() { x.s.cuda.gate.open() }

// Settle waits until the device has finished all work on the buffers that package cuda has submitted; copies of the owner are behind
// it on the device, too. Errors: ctx's, after which the
// work goes on; *CaptureError for a stream that is being captured, *ClosedError for one that is being closed, and the driver's.
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

// settle waits until the device has finished the work submitted to a stream so far, and puts later work of another one behind it.
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
	if err := h.uncapturedMark(later.precede(m)); err != nil {
		h.discard(m)
		h.done()
		return err
	}
	passed := make(chan error, 1)
	go func() { // it ends with the work, which Close of the stream waits for
		defer h.done()
		passed <- h.outlast(m)
	}()
	select {
	case err := <-passed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outlast waits for a mark and releases it.
func (h *cudaStream) outlast(m fence.Mark) error {
	defer h.discard(m)
	return h.uncapturedMark(h.guard(func() error { return h.fences.Wait(m) }))
}

// Copy makes driver calls of the owner's on the sleeper's stream.
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
	// Both views learn of it: the program's later work is behind the copies, and so are the allocator's calls that unmap memory.
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

// Contents lists the memory whose bytes matter, in order of address: live buffers, and freed ones that graphs hold.
func (x Sleeper) Contents(ctx context.Context) ([]Memory, error) {
	var all []Memory
	add := func(p cudadrv.Ptr, bytes int64) { all = append(all, Memory{p, bytes}) }
	err := x.s.inTurn(ctx, func() {
		x.s.turn.core.Live(func(p cudadrv.Ptr, bytes int64, _ *magazine.Slot) { add(p, bytes) })
		x.s.turn.core.Pending(add)
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Memory) int { return cmp.Compare(a.Ptr, b.Ptr) })
	return all, nil
}

// Release gives the physical memory back to the driver: see pool.Sleep. Before it come Shut, Settle and AwaitCopies. It
// returns how much the driver has back.
func (x Sleeper) Release(ctx context.Context) (sleepingBytes int64, err error) {
	sleepingBytes, err = x.s.pool.Sleep(ctx, x.s.id)
	return sleepingBytes, x.s.asClosed(err)
}

// asClosed is the error of the stream where it is one of a pool that was closed.
func (s *Stream) asClosed(err error) error {
	if errors.Is(err, pool.ErrClosed) {
		return s.cuda.closed()
	}
	return err
}

// Ended reports whether the stream was closed, or its device.
func (x Sleeper) Ended() bool { return x.s.cuda.closing.Load() }

// Restore makes new memory for all buffers, at the same addresses: see pool.Wake. Its contents are undefined. A request that the
// driver refuses is tried once more where the device finds memory elsewhere, as an allocation is.
func (x Sleeper) Restore(ctx context.Context) error {
	err := x.s.pool.Wake(ctx, x.s.id)
	short := (*pool.OutOfMemoryError)(nil)
	if !errors.As(err, &short) || x.s.handler == nil || x.s.handles != nil && !x.s.handles() {
		return x.s.asClosed(err)
	}
	retry := false
	if refused := x.s.guardHandler(func() { retry = x.s.handler(short) }); refused != nil || !retry {
		return errors.Join(err, refused)
	}
	return x.s.asClosed(x.s.pool.Wake(ctx, x.s.id))
}

// View is the device as programs see it.
func (x Sleeper) View() cudadrv.Device { return cudadrv.ProgramView(x.s.cuda.device) }

// Close closes the stream. Live buffers stay valid until they are freed, and stay asleep if they are. Idempotent.
func (x Sleeper) Close() error { return x.s.Close() }
