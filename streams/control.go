package streams

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/internal/stream/core"
)

// Control has the methods of a stream that only its device calls. Any number of goroutines may use
// it.
type Control struct {
	*Stream
	usedBytes atomic.Int64  // at the last tick
	pressure  atomic.Uint32 // the level of the next tick
}

// Press sets the pressure level for the next ticks. It takes no turn.
func (c *Control) Press(level pressure.Level) { c.pressure.Store(uint32(level)) }

// Tick does the stream's periodic work, if no goroutine is in its turn.
func (c *Control) Tick() {
	var waits []LongWait
	c.peers.expire()
	c.sampler.tick()
	c.tryTurn(func() { waits = c.tick() })
	for _, w := range waits {
		c.turn.dispatch.longWait(w)
	}
}

func (c *Control) tick() (waits []LongWait) {
	usedBytes, waits := c.turn.tick(pressure.Level(c.pressure.Load()))
	c.usedBytes.Store(usedBytes)
	return waits
}

// Reconfigure replaces the settings of the cache, and returns the excess over the new budget to the
// pool. It waits for the current turn. Its error is ErrClosed, or the cause of the stream's end.
func (c *Control) Reconfigure(ctx context.Context, settings core.Settings) error {
	if err := c.callable(ctx); err != nil {
		return err
	}
	return c.inTurnReturning(ctx, func() { c.turn.configure(settings) })
}

// UsedBytes returns the bytes in buffers and in magazines; ok is false if a goroutine is in the turn.
// It does not wait.
func (c *Control) UsedBytes() (usedBytes int64, ok bool) {
	ok = c.tryTurn(func() { usedBytes = c.turn.state.usedBytes() })
	return usedBytes, ok
}

// LastUsedBytes is UsedBytes at the last tick. It takes no turn.
func (c *Control) LastUsedBytes() int64 { return c.usedBytes.Load() }

// Waits reports whether the last turn left pending memory. It does not wait.
func (c *Control) Waits() bool { return c.peer.waits.Load() }

// Closed reports whether Close has returned without an error that kept the stream open.
func (c *Control) Closed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// ResetPeak restarts the peaks at the present values. It drains the blocks that were freed before.
func (c *Control) ResetPeak(ctx context.Context) error {
	return c.call(ctx, func() { c.turn.state.core.ResetPeak() })
}

// BeginScope begins a scope of the peaks, under a number that no other scope has.
func (c *Control) BeginScope(ctx context.Context, number uint64) error {
	return c.call(ctx, func() { c.turn.state.core.BeginScope(number) })
}

// EndScope ends a scope of the peaks, and returns those inside it. It waits for the current turn. Of
// a stream whose actor has ended, nobody changes the books any more.
func (c *Control) EndScope(number uint64) core.Peaks {
	peaks, err := answered(context.Background(), c.Stream, func() core.Peaks { return c.turn.state.core.EndScope(number) })
	if err != nil {
		actors.Wait(c.host, c.ref.Done())
		return c.turn.state.core.Inside(number)
	}
	return peaks
}

// Check checks the invariants of the stream's books, block by block. It waits for the current turn
// only. Once the stream has ended it returns the cause.
func (c *Control) Check(ctx context.Context) error {
	finding, err := answered(ctx, c.Stream, func() error { return c.turn.state.core.Check() })
	if err != nil {
		return err
	}
	return finding
}

// Coalesce merges all free memory of the stream, and keeps it: magazines of large blocks and unused
// spans become free ranges. It waits for the current turn. Its
// error is ErrClosed, or the cause of the stream's end.
func (c *Control) Coalesce(ctx context.Context) error {
	return c.call(ctx, func() { c.turn.state.core.Coalesce() })
}

// Sweep makes pending memory free whose announced uses have finished, and takes the fences for the rest. Memory
// whose uses have finished before the call is free when it returns. It waits for the
// current turn, and for a bounded time for goroutines that query the same fences. Its error is the
// cause of the stream's end, or the context's.
func (c *Control) Sweep(ctx context.Context) error {
	pendingFences, err := answered(ctx, c.Stream, func() []fencing { return c.turn.state.pendingFences() })
	if err != nil {
		return err
	}
	for _, f := range pendingFences {
		f.sweep(c.host)
	}
	return c.inTurn(ctx, c.turn.lent.takePassed)
}

// LiveBuffers lists the live buffers, in no order. It is meant for a closed stream: on others the list may be
// outdated when it returns.
func (c *Control) LiveBuffers() (all []LiveBuffer) {
	all, _ = c.Live(context.Background())
	return all
}

// Watch replaces the settings as Reconfigure does, and visits the live buffers, which are watched from then
// on. It waits for the current turn; the visits are made in one, and may miss buffers that
// are freed at the same time.
func (c *Control) Watch(ctx context.Context, settings core.Settings, found func(BufferEvent)) error {
	return c.call(ctx, func() {
		c.turn.configure(settings)
		c.turn.state.watchLive(found)
	})
}

// Sampled lists the live buffers that the profile has samples of, in no order. It waits for the current
// turn.
func (c *Control) Sampled(ctx context.Context) ([]SampledBuffer, error) {
	return answered(ctx, c.Stream, func() []SampledBuffer { return c.turn.state.sampled() })
}

// Live lists the live buffers, in no order. It waits for the current turn only. Its error is ErrClosed,
// the cause of the stream's end, or the context's.
func (c *Control) Live(ctx context.Context) ([]LiveBuffer, error) {
	return answered(ctx, c.Stream, func() []LiveBuffer { return c.turn.state.live() })
}

// HoldCaptures keeps captures of the stream from beginning until release is called. It is false while one is announced.
func (c *Control) HoldCaptures() (release func(), ok bool) {
	a := &c.cuda.announcement
	if !a.enter() {
		return nil, false
	}
	return a.leave, true
}

// End makes every later free return ErrClosed and ends the actor: the memory is about to be
// released.
func (c *Control) End() {
	s := c.Stream
	if s.cuda.closing.CompareAndSwap(false, true) {
		close(s.closed)
	}
	_ = s.inTurn(context.Background(), s.turn.endFrees) // the actor may have ended already
	s.ref.Stop(s.cuda.closed())
	actors.Wait(s.host, s.ref.Done())
	s.turn.state.core.End() // for the buffers of a stream whose actor was stopped
	s.cuda.line.Shut()
	s.cuda.line.Drop()
}

// Gone reports whether the stream was closed and its last buffer freed. A quarantined stream is
// never gone: its memory is still held.
func (c *Control) Gone() bool {
	select {
	case <-c.ref.Done():
		return c.cuda.synced.Load()
	default:
		return false
	}
}

// Failure returns the cause of the stream's end, if Close did not end it: the books did not balance, or
// the actor was stopped. Nil while the stream serves and after Close.
func (c *Control) Failure() error {
	if cause := c.turn.ending.failure.Load(); cause != nil && !errors.Is(*cause, ErrClosed) {
		return *cause
	}
	return nil
}

// LastStats returns the statistics of the last read, or of the stream's end, whichever is later. Before either they are
// zero. It takes no turn.
func (c *Control) LastStats() Stats {
	if last := c.turn.state.last.Load(); last != nil {
		n := *last
		n.RequestCounts = c.tally.Counts() // frees are refused afterwards, too
		return n
	}
	return Stats{Stream: c.ID(), RequestCounts: c.tally.Counts()}
}
