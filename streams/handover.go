package streams

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/go-vram/vram/futures"
	poolcore "github.com/go-vram/vram/internal/pool/core"
	"github.com/go-vram/vram/internal/units"
)

// Handover carries values between the goroutines of two streams, first in first out,
// as a channel does, and reports to the allocator which stream waits for which: while an Exclusive
// stream's goroutine waits in Receive it frees nothing before the sender continues, and while it
// waits in Send nothing before the receiver does. So a deadlock is found where no free can come,
// and never declared because a goroutine that was sent a value has not run yet: the side that sends
// or receives reports the end of the other side's wait before its call returns.
//
// A value may be memory of the sender's stream: from the first value on the receiver counts as one
// that may free it, so that the sender is not refused memory before the receiver makes no progress
// either. For a stream that is not Exclusive no wait is reported: its other callers may free.
// A goroutine does everything that others wait for before it calls Send or Receive. A Handover has
// no end of its own: a value may mark the last one, and the end of the contexts ends all calls.
// TryReceive returns the values that remain.
type Handover[T any] struct {
	values         chan T
	from, to       *Stream
	sent, received atomic.Uint64              // values
	sender         atomic.Pointer[suspension] // the last one that began
	receiver       atomic.Pointer[suspension]
}

// NewHandover makes a Handover between the goroutines of two streams of the device, with room for
// capacity values, at least one. A nil or zero stream stands for goroutines without a stream: they count as
// making progress, and so does a stream of another device, and one that is closed.
func NewHandover[T any](from, to *Stream, capacity int) *Handover[T] {
	return &Handover[T]{values: make(chan T, max(1, capacity)), from: from.orNone(), to: to.orNone()}
}

// Send hands a value over. It waits while there is no room. Errors: the context's, after which the
// caller still owns the value; ErrNilContext, and ErrNotOpen for a Handover that NewHandover did
// not make.
func (h *Handover[T]) Send(ctx context.Context, v T) error {
	if err := h.callable(ctx); err != nil {
		return err
	}
	if h.from != nil {
		h.from.suspensions.addFreer(h.receiverID())
	}
	select {
	case h.values <- v:
	default:
		defer waitFor(h.from, h.to, &h.sender, &h.received, h.receipts())()
		select {
		case h.values <- v:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	endWait(h.to, &h.receiver, h.sent.Add(1))
	return nil
}

// receipts returns how many values are received in all once there is room for the next one.
func (h *Handover[T]) receipts() uint64 {
	room := uint64(cap(h.values))
	return max(h.sent.Load()+1, room) - room
}

func (h *Handover[T]) receiverID() poolcore.Client {
	if h.to == nil || h.to.pool != h.from.pool {
		return poolcore.Anybody
	}
	return h.to.id
}

// Receive waits for a value. Errors: as of Send.
func (h *Handover[T]) Receive(ctx context.Context) (v T, err error) {
	if err := h.callable(ctx); err != nil {
		return v, err
	}
	select {
	case v = <-h.values:
	default:
		defer waitFor(h.to, h.from, &h.receiver, &h.sent, h.received.Load()+1)()
		select {
		case v = <-h.values:
		case <-ctx.Done():
			return v, ctx.Err()
		}
	}
	endWait(h.from, &h.sender, h.received.Add(1))
	return v, nil
}

// TryReceive returns the next value, if there is one. It does not wait.
func (h *Handover[T]) TryReceive() (v T, ok bool) {
	if h == nil {
		return v, false
	}
	select {
	case v = <-h.values:
		endWait(h.from, &h.sender, h.received.Add(1))
		return v, true
	default:
		return v, false
	}
}

// Len returns the number of values that are not received yet.
func (h *Handover[T]) Len() int {
	if h == nil {
		return 0
	}
	return len(h.values)
}

// String names both streams and the number of values. It may overlap with any call.
func (h *Handover[T]) String() string {
	if h == nil || h.values == nil {
		return "no handover"
	}
	return fmt.Sprintf("handover of %s from %v to %v", units.Count(len(h.values), "value"), h.from, h.to)
}

// callable returns the error of a call that cannot be made.
func (h *Handover[T]) callable(ctx context.Context) error {
	switch {
	case h == nil || h.values == nil:
		return ErrNotOpen
	case ctx == nil:
		return futures.ErrNilContext
	}
	return nil
}

// beforeSuspending is a place where a host may hold up one side of a Handover.
const beforeSuspending = "a side of a handover waits, and does not say so yet"

// waitFor begins a wait of one side until the other has sent or received need values. It stores the
// suspension before it checks the count, so that either the other side ends it, or the check sees
// the count.
func waitFor(waits, by *Stream, at *atomic.Pointer[suspension], done *atomic.Uint64, need uint64) (over func()) {
	if waits == nil || by == nil || waits.pool != by.pool || !waits.suspensions.exclusive.Load() {
		return func() {}
	}
	x := &suspension{by: []poolcore.Client{by.id}, need: need}
	if waits.host != nil {
		waits.host.Reach(beforeSuspending)
	}
	at.Store(x)
	if done.Load() >= need {
		return func() {}
	}
	waits.suspensions.suspend(x)
	return func() { waits.suspensions.resume(x) }
}

// endWait ends the other side's wait for up to done values, and no later wait for more.
func endWait(waits *Stream, at *atomic.Pointer[suspension], done uint64) {
	if x := at.Load(); x != nil && x.need <= done {
		waits.suspensions.resume(x)
	}
}
