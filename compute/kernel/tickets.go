package kernel

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"

	"github.com/go-vram/vram/compute/kernel/plan"
	"github.com/go-vram/vram/cuda"
)

// The blocks of a split launch take tickets: one counter for each row or group of rows, which is 0 before a launch and which
// the last block resets to 0. Launches on a stream share their tickets, as they run in order. A graph may run concurrently with
// the stream and with other graphs, so each launch of a capture gets tickets of its own from a stock of zeroed memory, which
// the graph keeps. When the stock is used up, a fill node zeroes other memory at each launch of the graph.

const (
	// streamTickets is the bytes of the tickets of a context's launches.
	streamTickets = plan.MaxSplitRows * 4
	// graphTickets is the size of a stock of tickets for captures: enough for some hundred launches with the most rows.
	graphTickets = 256 << 10
	// ticketsApart is a sector of the device's cache, so that the atomics of two launches use different sectors.
	ticketsApart = 32
)

// tickets are the tickets of one launch.
type tickets struct {
	at    cuda.Range
	stock *ticketStock // of a capture
	own   bool         // the memory is of this launch alone
}

// release ends the use of the memory by a launch that was submitted, or captured.
func (t *tickets) release() error {
	switch {
	case t.own:
		return t.at.Buffer.Free()
	case t.stock != nil:
		return t.stock.leave()
	}
	return nil
}

// contextTickets are the tickets of a context.
type contextTickets struct {
	on       *cuda.Context
	launches cuda.Buffer

	low   atomic.Bool // the stock is to be renewed by the next launch that is not captured
	mu    sync.Mutex  // of launches in captures, and of renewals
	stock *ticketStock
}

// ticketStock is memory that launches of captures divide. It is freed once it is used up; the graphs keep it.
type ticketStock struct {
	of     *contextTickets
	buffer cuda.Buffer
	used   int64
	users  int // launches that are being captured
}

// Close frees the memory: graphs keep theirs.
func (t *contextTickets) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return errors.Join(t.launches.Free(), t.retire())
}

// retire drops the stock, and frees it unless a launch uses it.
func (t *contextTickets) retire() error {
	s := t.stock
	if t.stock = nil; s == nil || s.users > 0 {
		return nil
	}
	return s.buffer.Free()
}

// take returns a part of the stock, if it has room.
func (t *contextTickets) take(bytes int64) (taken tickets, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, bytes := t.stock, (bytes+ticketsApart-1)/ticketsApart*ticketsApart
	if s == nil || s.used+bytes > graphTickets {
		t.low.Store(true)
		return tickets{}, false
	}
	if s.used > graphTickets/2 {
		t.low.Store(true)
	}
	taken = tickets{at: cuda.Range{Buffer: s.buffer, Offset: s.used, Bytes: bytes}, stock: s}
	s.used += bytes
	s.users++
	return taken, true
}

// renew replaces a stock that is low, for later captures.
func (t *contextTickets) renew(c *cuda.Context) error {
	b, err := zeroed(c, graphTickets)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.launches.Live() { // closed in between
		return errors.Join(cuda.ErrNotOpen, b.Free())
	}
	err = t.retire()
	t.stock = &ticketStock{of: t, buffer: b}
	t.low.Store(false)
	return err
}

// leave ends the use by a launch. The last one frees a stock that was dropped.
func (s *ticketStock) leave() error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.users--; s.users > 0 || s.of.stock == s {
		return nil
	}
	return s.buffer.Free()
}

type ticketsKey struct{}

// zeroed returns memory that is zeroed once, now. In a capture its error is a *vram.CaptureError, or cuda.ErrCapturing.
func zeroed(c *cuda.Context, bytes int64) (b cuda.Buffer, err error) {
	err = uncaptured(c, func() (err error) { b, err = c.AllocZeroed(bytes); return err }) // else the fill would be the graph's
	return b, err
}

// ticketsOf returns the tickets of a context, and renews their stock. known caches the last context's. In a capture it makes
// neither: it returns the known tickets, or nil.
func ticketsOf(c *cuda.Context, known *atomic.Pointer[contextTickets]) (*contextTickets, error) {
	t := known.Load()
	if t == nil || t.on != c || !t.launches.Live() {
		opened, err := c.Lazily(ticketsKey{}, func() (io.Closer, error) {
			b, err := zeroed(c, streamTickets)
			if err != nil {
				return nil, err
			}
			t := &contextTickets{on: c, launches: b}
			t.low.Store(true)
			return t, nil
		})
		if errors.Is(err, cuda.ErrCapturing) {
			return nil, nil //nolint:nilnil // there are none
		}
		if err != nil {
			return nil, err
		}
		t = opened.(*contextTickets) //nolint:forcetypeassert // of this key
		known.Store(t)
	}
	if t.low.Load() {
		if err := t.renew(c); err != nil && !errors.Is(err, cuda.ErrCapturing) {
			return nil, err
		}
	}
	return t, nil
}

// of returns the tickets of a launch, which the caller releases after it. t is nil where the context had none as a capture began.
// The caller launches in the same call of cuda.Together.
func (t *contextTickets) of(c *cuda.Context, captured bool, bytes int64) (tickets, error) {
	switch {
	case !captured && t == nil: // that capture has ended
		return tickets{}, cuda.ErrCapturing
	case !captured:
		return tickets{at: cuda.Range{Buffer: t.launches, Bytes: bytes}}, nil
	case t != nil:
		if taken, ok := t.take(bytes); ok {
			return taken, nil
		}
	}
	b, err := c.AllocZeroed(bytes)
	if err != nil {
		return tickets{}, err
	}
	return tickets{at: cuda.Range{Buffer: b, Bytes: bytes}, own: true}, nil
}
