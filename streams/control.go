package streams

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/go-vram/vram/actors"
	"github.com/go-vram/vram/internal/pressure"
	"github.com/go-vram/vram/streams/core"
)

// Control is a stream as the device has it that the stream belongs to: what it does with a stream, and no caller. Any number of
// goroutines may use it.
type Control struct {
	*Stream
	usedBytes atomic.Int64  // as the last tick found it
	pressure  atomic.Uint32 // the level of the next tick
}

// Press says how close the device is to its limit, from the next tick on. It takes no turn.
func (c *Control) Press(level pressure.Level) { c.pressure.Store(uint32(level)) }

// Tick lets the stream do what is due, if nobody is in its turn.
func (c *Control) Tick() {
	var waits []LongWait
	_, _ = c.tryTurn(func() { waits = c.tick() }) // a panic is the actor's to report
	for _, w := range waits {
		c.turn.longWait(w)
	}
}

func (c *Control) tick() (waits []LongWait) {
	usedBytes, waits := c.turn.tick(pressure.Level(c.pressure.Load()))
	c.usedBytes.Store(usedBytes)
	return waits
}

// Collect takes home what announced uses kept that have finished, and sees to the fences for all others. It does nothing if somebody
// is in the stream's turn, and does not wait.
func (c *Control) Collect() { _, _ = c.tryTurn(c.turn.collect) }

// Reconfigure replaces the settings of the cache, and gives back what is over its new budget, which the pool has then. It waits for
// the turn at hand. Its error is ErrClosed, or why the stream has ended.
func (c *Control) Reconfigure(ctx context.Context, settings core.Settings) error {
	if err := c.callable(ctx); err != nil {
		return err
	}
	return c.inTurnReturning(ctx, func() { c.turn.configure(settings) })
}

// UsedBytes are those of the stream's pages that are in buffers or cached by magazines, if nobody is in its turn. It does not wait.
func (c *Control) UsedBytes() (usedBytes int64, ok bool) {
	ok, _ = c.tryTurn(func() { usedBytes = c.turn.usedBytes() })
	return usedBytes, ok
}

// LastUsedBytes are those that the last tick found. It takes no turn.
func (c *Control) LastUsedBytes() int64 { return c.usedBytes.Load() }

// Waits reports whether memory of the stream waited for uses on others at the end of the last turn. It waits for nothing.
func (c *Control) Waits() bool { return c.peer.waits.Load() }

// End makes every later free say ErrClosed and ends the actor: the memory is about to go.
func (c *Control) End() {
	s := c.Stream
	if s.cuda.closing.CompareAndSwap(false, true) {
		close(s.closed)
	}
	_ = s.inTurn(context.Background(), s.turn.endFrees) // an actor that has ended already is no worse
	s.ref.Stop(ErrClosed)
	actors.Wait(s.host, s.ref.Done())
	s.turn.core.End() // for the buffers of one that was stopped before
	s.cuda.line.Shut()
	s.cuda.line.Drop()
}

// Gone reports whether the stream was closed and its last buffer freed. A stream that was quarantined is never gone: its memory is
// still there.
func (c *Control) Gone() bool {
	select {
	case <-c.ref.Done():
		return c.cuda.synced.Load()
	default:
		return false
	}
}

// Failure says why the stream has ended by itself: its books did not balance, or somebody stopped its actor. Nil while it serves and
// after Close.
func (c *Control) Failure() error {
	if cause := c.turn.failure.Load(); cause != nil && !errors.Is(*cause, ErrClosed) {
		return *cause
	}
	return nil
}

// LastStats is what the books said when the stream ended; zero before.
func (c *Control) LastStats() Stats {
	if last := c.turn.last.Load(); last != nil {
		return *last
	}
	return Stats{Stream: c.ID()}
}
