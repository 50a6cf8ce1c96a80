package share

import (
	"context"
	"errors"

	"github.com/go-vram/vram/cuda"
	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/streams"
)

// Way is how the order of a fence comes about.
type Way uint8

// The ways.
const (
	NoWay   Way = iota // the memory is not linked
	ByEvent            // the device waits for an event of the other process
	ByHost             // Publish waits until the work has finished
)

// String returns a word for the way.
func (w Way) String() string {
	switch w {
	case ByEvent:
		return "event"
	case ByHost:
		return "host"
	case NoWay:
	}
	return "none"
}

// MarshalText implements encoding.TextMarshaler: the text of String.
func (w Way) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// Ways returns the ways that Publish and Await of this process take. They are agreed upon by Export and Import, and do not
// change.
func (m *Memory) Ways() (publish, await Way) {
	if m == nil {
		return NoWay, NoWay
	}
	l := m.link.Load()
	if l == nil {
		return NoWay, NoWay
	}
	way := func(events bool) Way {
		if events {
			return ByEvent
		}
		return ByHost
	}
	return way(l.publishesEvents), way(l.awaitsEvents)
}

// Publish makes a fence after the work submitted to the context so far, and notifies the peer. With ByHost it waits for the
// work first. After an error the peer was not notified. After an error of a capture that was not announced, the next Publish of
// another context than the last fence's waits for the work of that one. Errors: ErrNotLinked, ErrClosed, *PeerError,
// cuda.ErrNotOpen, cuda.ErrForeign, cuda.ErrCapturing, vram.ErrClosed, and the driver's.
func (m *Memory) Publish(c *cuda.Context) error {
	l, err := m.linkTo()
	if err != nil {
		return err
	}
	l.publishing.Lock()
	defer l.publishing.Unlock()
	if err := m.fence(c, l); err != nil {
		return err
	}
	if err := l.write(note{kindFence, l.sent + 1}); err != nil {
		return m.over("publish", err)
	}
	l.sent++
	m.stats.published.Add(1)
	return nil
}

// over returns the error of a fence whose link has ended, by this process or by the peer.
func (m *Memory) over(op string, why error) error {
	select {
	case <-m.quit:
		return ErrClosed
	default:
		return &PeerError{op, why}
	}
}

// fence records this side's event after the work of a context and after the last fence, or waits for the work. Where the event's
// last record is in a capture, nothing can wait for the event: the last fence has to have passed.
func (m *Memory) fence(c *cuda.Context, l *link) error {
	stream, err := m.enter(c)
	if err != nil {
		return err
	}
	why := l.over()
	if why == nil {
		m.uses(stream)
	}
	if why != nil || !l.publishesEvents {
		m.use.RUnlock() // a goodbye does not wait for the work
		if why != nil {
			return &PeerError{"publish", why}
		}
		if err := c.Synchronize(context.Background()); err != nil {
			return err
		}
		m.stats.synchronized.Add(1)
		return nil
	}
	defer m.use.RUnlock()
	if l.captured && l.last != nil && l.last != stream {
		if err := settle(l.last.Stream()); err != nil {
			return err
		}
		l.last = nil
	}
	return c.Submit(func(device cudadrv.Device, on cudadrv.Stream) error {
		if l.last != nil && l.last != stream { // the record takes the last one's place, and the peer may not have waited for that
			if err := device.StreamWaitEvent(on, l.own); err != nil {
				return err
			}
		}
		if err := device.EventRecord(l.own, on); err != nil {
			return err
		}
		if err := uncaptured(c); err != nil {
			l.captured = true
			return err
		}
		l.last, l.captured = stream, false
		return nil
	})
}

// uncaptured returns the error of a record that an unannounced capture may have: no call waits for it or queries it.
func uncaptured(c *cuda.Context) error {
	work, err := streams.NewSubmitter(c.Stream())
	if err != nil {
		return err
	}
	return work.Uncaptured("cuEventRecord")
}

// Await takes the peer's next fence: it waits on the host until the peer has published it, or ctx ends, and makes later
// work of the context wait for it on the device. With an error no fence was taken. Errors: ErrNotLinked, ErrClosed,
// *PeerError, ctx's, cuda.ErrNilContext, cuda.ErrNotOpen, cuda.ErrForeign, cuda.ErrCapturing, vram.ErrClosed, and the driver's.
func (m *Memory) Await(ctx context.Context, c *cuda.Context) error {
	l, err := m.linkTo()
	if err != nil {
		return err
	}
	if ctx == nil {
		return cuda.ErrNilContext
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return ctx.Err()
	case <-m.quit:
		return ErrClosed
	}
	if err := m.arrival(ctx, l); err != nil {
		return err
	}
	if err := m.follow(c, l); err != nil {
		return err
	}
	l.awaited++
	m.stats.awaited.Add(1)
	return nil
}

// arrival waits for a note of the next fence.
func (m *Memory) arrival(ctx context.Context, l *link) error {
	for l.received.Load() == l.awaited {
		select {
		case <-l.arrived:
		case <-l.ended:
			if l.received.Load() == l.awaited { // notes received before the end count
				return m.over("await", l.why)
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-m.quit:
			return ErrClosed
		}
	}
	return nil
}

// follow makes a context wait for the peer's event. A peer that has closed had finished its work; a dead peer has finished only
// the work that its host had waited for.
func (m *Memory) follow(c *cuda.Context, l *link) error {
	stream, err := m.enter(c)
	if err != nil {
		return err
	}
	defer m.use.RUnlock()
	m.uses(stream)
	why := l.over()
	switch {
	case errors.Is(why, ErrPeerClosed), !l.awaitsEvents:
		return c.Submit(func(cudadrv.Device, cudadrv.Stream) error { return nil })
	case why != nil:
		return &PeerError{"await", why}
	}
	return m.wait(c, l)
}

// linkTo returns the link for a fence.
func (m *Memory) linkTo() (*link, error) {
	if m == nil {
		return nil, cuda.ErrNotOpen
	}
	select {
	case <-m.quit:
		return nil, ErrClosed
	default:
	}
	l := m.link.Load()
	if l == nil {
		return nil, ErrNotLinked
	}
	return l, nil
}
