package sleep

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/host"
	"github.com/go-vram/vram/streams"
)

// Contents is the fate of the bytes in an arena's buffers.
type Contents uint8

// The fates.
const (
	Save Contents = iota + 1 // Wake brings every byte back
	Drop                     // they are undefined after Wake
)

// String returns the fate in lower case.
func (c Contents) String() string {
	switch c {
	case Save:
		return "save"
	case Drop:
		return "drop"
	}
	return fmt.Sprintf("Contents(%d)", uint8(c))
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (c Contents) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// State is the state of an arena.
type State int32

// The states: see the package comment.
const (
	Awake State = iota
	Asleep
	Closed
)

// String returns the state in lower case.
func (s State) String() string {
	switch s {
	case Awake:
		return "awake"
	case Asleep:
		return "asleep"
	case Closed:
		return "closed"
	}
	return "in an unknown state"
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// BlockBytes is the default length of the blocks in which contents are saved. Not longer: a call that is to end waits for the
// copy of one, 10 ms on an H200. Not shorter: each costs a driver call for its memory, and a wait.
const BlockBytes = 256 << 20

// Options configure an arena.
type Options struct {
	// Host makes the memory for saved contents; it should be page-locked (host.NewPageLocked keeps it from sleep to sleep).
	// Nil: each Sleep has the driver make it, and each Wake has it freed, which waits for all queued work of the device.
	Host host.Allocator
	// BlockBytes is the length of a block of Host; 0: the constant BlockBytes.
	BlockBytes int64
}

// Arena is memory that sleeps and wakes as a whole. Make one with New, and close it before its device, or after. Any number of
// goroutines may use it.
type Arena struct {
	memory  streams.Sleeper
	checker cudadrv.CheckedSleep // nil: none
	copies  cudadrv.HostMemory   // nil: contents cannot be saved
	options Options
	own     bool // Host belongs to the arena: its memory is freed with the device

	turn chan struct{} // of one place: holds a token while Sleep, Wake or Close runs. Work and Alloc never take it

	// Written in the turn.
	state         atomic.Int32
	savedBytes    atomic.Int64
	sleepingBytes atomic.Int64
	sleeps, wakes atomic.Uint64

	// Owned by the turn.
	saved   []chunk
	spent   []host.Block // that Host has not taken back
	copying bool         // it is not known that the device has done all copies
}

// New makes an arena on the device of a context, for the work of all contexts of that device. Errors: ErrNotOpen,
// vram.ErrClosed, cudadrv.NotSupported for a device with plain segments, and errors of making a stream.
func New(c *cuda.Context, o Options) (*Arena, error) {
	s := c.Stream()
	if s == nil {
		return nil, ErrNotOpen
	}
	work, err := streams.NewSubmitter(s)
	if err != nil {
		return nil, err
	}
	memory, err := work.NewSleeper()
	if err != nil {
		return nil, err
	}
	if o.BlockBytes <= 0 {
		o.BlockBytes = BlockBytes
	}
	a := &Arena{memory: memory, options: o, turn: make(chan struct{}, 1)}
	device := memory.View()
	a.checker, _ = device.(cudadrv.CheckedSleep)
	if source, err := host.PageLockedSource(device); err == nil { // else contents cannot be saved
		a.copies, _ = device.(cudadrv.HostMemory)
		if o.Host == nil {
			a.own, a.options.Host = true, source
		}
	}
	return a, nil
}

func (a *Arena) opened() bool { return a != nil && a.turn != nil }

// Alloc allocates a buffer that sleeps with the arena. Work of every context of the device may use it, and Free returns its
// memory to the arena. Errors: ErrAsleep, ErrClosed, and the errors of vram.Stream.Alloc.
func (a *Arena) Alloc(bytes int64) (cuda.Buffer, error) {
	if !a.opened() {
		return cuda.Buffer{}, ErrNotOpen
	}
	return a.memory.Alloc(bytes)
}

// State returns the state at this moment.
func (a *Arena) State() State {
	if !a.opened() {
		return Closed
	}
	return State(a.state.Load())
}

// begin takes the turn.
func (a *Arena) begin(ctx context.Context) error {
	switch {
	case !a.opened():
		return ErrNotOpen
	case ctx == nil:
		return ErrNilContext
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case a.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if a.State() == Closed {
		a.end()
		return ErrClosed
	}
	return nil
}

func (a *Arena) end() { <-a.turn }

// failed returns the error of a call.
func (a *Arena) failed(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{doing, a.State(), err}
}

// Sleep returns the arena's physical memory to the driver. It waits for all earlier work on its buffers, and for the copies of
// the contents. Errors, in an *Error with the state after the call: ctx's, *vram.CaptureError, *host.MemoryError, and the
// driver's; ErrClosed, ErrNilContext, *ContentsError. See the package comment.
func (a *Arena) Sleep(ctx context.Context, c Contents) error {
	if c != Save && c != Drop {
		return &ContentsError{c}
	}
	if err := a.begin(ctx); err != nil {
		return err
	}
	defer a.end()
	if a.State() == Asleep {
		if c == Drop {
			a.dropSaved()
		}
		return a.release(ctx)
	}
	if err := a.memory.Shut(ctx); err != nil {
		return a.failed("waiting for calls", err)
	}
	ready := false
	defer func() {
		if !ready { // also after a panic of the host or the driver
			a.memory.Open()
		}
	}()
	if doing, err := a.prepare(ctx, c); err != nil {
		return a.failed(doing, err)
	}
	ready = true
	a.state.Store(int32(Asleep))
	a.sleeps.Add(1)
	return a.release(ctx)
}

// prepare brings the arena to the point at which its memory may go. After an error, or a panic, nothing of it is left.
func (a *Arena) prepare(ctx context.Context, c Contents) (doing string, err error) {
	if err := a.memory.Settle(ctx); err != nil {
		return "waiting for work", err
	}
	prepared := false
	if a.checker != nil {
		a.checker.SleepBegins(a.memory.Handle())
		defer func() {
			if !prepared {
				a.checker.SleepEnds(a.memory.Handle())
			}
		}()
	}
	if c == Save {
		defer func() {
			if !prepared {
				a.dropSaved()
			}
		}()
		if err := a.save(ctx); err != nil {
			return "saving contents", err
		}
	}
	prepared = true
	return "", nil
}

// save copies the contents of all live buffers, and of freed ones that graphs hold, into memory of the host.
func (a *Arena) save(ctx context.Context) error {
	if a.copies == nil {
		return &cudadrv.CallError{Func: "cuMemcpyDtoHAsync", Result: cudadrv.NotSupported, Detail: "contents cannot be saved"}
	}
	contents, err := a.memory.Contents(ctx)
	if err != nil {
		return err
	}
	a.saved = plan(contents, a.options.BlockBytes)
	for i := range a.saved {
		c := &a.saved[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if c.block, err = a.options.Host.Alloc(c.bytes, 0); err != nil {
			return err
		}
		a.savedBytes.Add(c.bytes)
		if err := a.copyAll(c, func(at cudadrv.Ptr, bytes []byte, on cudadrv.Stream) error {
			return a.copies.MemcpyDtoHAsync(bytes, at, on)
		}); err != nil {
			return err
		}
	}
	return nil
}

// copyAll copies the pieces of a chunk, and waits until the device has done so.
func (a *Arena) copyAll(c *chunk, copyOne func(at cudadrv.Ptr, bytes []byte, on cudadrv.Stream) error) error {
	a.copying = true
	failed := a.memory.Copy(func(on cudadrv.Stream) error {
		return c.each(func(at cudadrv.Ptr, bytes []byte) error { return copyOne(at, bytes, on) })
	})
	return errors.Join(failed, a.awaitCopies())
}

// awaitCopies waits for copies in progress: neither their device memory nor their host memory may be released before.
func (a *Arena) awaitCopies() error {
	if !a.copying {
		return nil
	}
	err := a.memory.AwaitCopies()
	a.copying = err != nil
	return err
}

// release returns the memory to the driver. It is not interrupted: a part of it would be of no use to others.
func (a *Arena) release(ctx context.Context) error {
	if err := a.awaitCopies(); err != nil {
		return a.failed("waiting for copies", err)
	}
	bytes, err := a.memory.Release(context.WithoutCancel(ctx))
	a.sleepingBytes.Store(bytes)
	return a.failed("giving memory back", err)
}

// Wake makes new physical memory for the arena's buffers, at the same addresses, and copies saved contents back. It waits for
// the copies. Errors, in an *Error with the state after the call: ctx's, *vram.OutOfMemoryError, and the driver's; ErrClosed,
// ErrNilContext. After an error the arena is asleep, with nothing lost.
func (a *Arena) Wake(ctx context.Context) error {
	if err := a.begin(ctx); err != nil {
		return err
	}
	defer a.end()
	if a.State() == Awake {
		return nil
	}
	doing := "getting memory"
	err := a.memory.Restore(ctx)
	if err == nil {
		doing = "copying contents back"
		err = a.restore(ctx)
	}
	if err != nil {
		if errors.Is(err, ErrClosed) {
			return a.failed(doing, err)
		}
		// All of it is returned: a request whose ctx has ended may still be granted.
		return errors.Join(a.failed(doing, err), a.release(ctx))
	}
	a.sleepingBytes.Store(0)
	a.dropSaved()
	if a.checker != nil {
		a.checker.SleepEnds(a.memory.Handle())
	}
	a.state.Store(int32(Awake))
	a.wakes.Add(1)
	a.memory.Open()
	return nil
}

// restore copies saved contents back.
func (a *Arena) restore(ctx context.Context) error {
	for i := range a.saved {
		c := &a.saved[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.copyAll(c, func(at cudadrv.Ptr, bytes []byte, on cudadrv.Stream) error {
			return a.copies.MemcpyHtoDAsync(at, bytes, on)
		}); err != nil {
			return err
		}
	}
	return nil
}

// dropSaved returns the memory of saved contents to the host. The next call, and Close, retry what the host refuses.
func (a *Arena) dropSaved() {
	a.spent = append(a.spent, blocks(a.saved)...)
	a.saved = nil
	a.savedBytes.Store(0)
	_ = a.freeSpent()
}

func (a *Arena) freeSpent() (err error) {
	if err := a.awaitCopies(); err != nil && !errors.Is(err, ErrClosed) { // closing a stream waits for its work
		return err
	}
	kept := a.spent[:0]
	for _, b := range a.spent {
		if refused := b.Free(); refused != nil && b.Live() {
			err = errors.Join(err, refused)
			kept = append(kept, b)
		}
	}
	a.spent = kept
	return err
}

// Stats are figures of an arena at one moment.
type Stats struct {
	State         State
	HeldBytes     int64 // pages of the arena, with physical memory or without
	LiveBytes     int64 // of HeldBytes: in buffers
	SleepingBytes int64 // of HeldBytes: released to the driver
	SavedBytes    int64 // contents in memory of the host
	Sleeps, Wakes uint64
}

// Stats reads the figures. It waits for the request that the arena is serving, as any request does, and not for Sleep or Wake.
func (a *Arena) Stats(ctx context.Context) (Stats, error) {
	if !a.opened() {
		return Stats{}, ErrNotOpen
	}
	if ctx == nil {
		return Stats{}, ErrNilContext
	}
	n, err := a.memory.Stats(ctx)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		State: a.State(), HeldBytes: n.HeldBytes, LiveBytes: n.LiveBytes, SleepingBytes: a.sleepingBytes.Load(),
		SavedBytes: a.savedBytes.Load(), Sleeps: a.sleeps.Load(), Wakes: a.wakes.Load(),
	}, nil
}

// Close waits for a Sleep or Wake that has begun, and for the arena's copies, and closes the arena. Live buffers stay valid
// until they are freed, and stay asleep if they are. Idempotent. Errors: errors of freeing host memory, which the next call
// retries, and of vram.Stream.Close.
func (a *Arena) Close() error {
	if !a.opened() {
		return ErrNotOpen
	}
	a.turn <- struct{}{}
	defer a.end()
	if a.own && a.State() != Closed && a.memory.Ended() {
		a.saved, a.spent = nil, nil
	}
	a.dropSaved()
	a.state.Store(int32(Closed))
	return errors.Join(a.freeSpent(), a.memory.Close())
}
