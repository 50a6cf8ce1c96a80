package sim

import (
	"time"

	"github.com/go-vram/vram/cudadrv"
	"github.com/go-vram/vram/cudadrv/internal/call"
)

// stream is a queue of work, as the one figure that decides everything: when it will be empty.
type stream struct {
	drained  time.Duration
	blocking bool // it synchronises with the legacy default stream
	place         // in the graph that it is captured into
}

// streamNamed finds a stream; 0 and 1 are the legacy default stream, which is always there.
func (g *gpu) streamNamed(c call.Call, s cudadrv.Stream) (*stream, error) {
	st, ok := g.streams[named(s)]
	if !ok {
		return nil, fail(c, cudadrv.InvalidHandle, "no stream %#x", s)
	}
	return st, nil
}

// enqueue appends work to the stream.
func (g *gpu) enqueue(st *stream, d time.Duration) {
	g.synchronise(st)
	st.drained = later(max(st.drained, g.time()), d)
	g.drained = max(g.drained, st.drained)
}

// StreamCreate makes a non-blocking stream.
func (d *Device) StreamCreate() (cudadrv.Stream, error) {
	const c = call.StreamCreate
	return value(d, c, everyDevice, func(g *gpu) (cudadrv.Stream, error) {
		var id cudadrv.Stream
		if last := len(g.freeStream) - 1; last >= 0 {
			id, g.freeStream = g.freeStream[last], g.freeStream[:last]
		} else {
			id = cudadrv.Stream(g.driver.id(firstStream, &g.driver.streams))
		}
		g.streams[id] = &stream{}
		g.charge(c)
		return id, nil
	})
}

// StreamDestroy ends the name s and waits for nothing: work that the stream has still runs.
func (d *Device) StreamDestroy(s cudadrv.Stream) error {
	const c = call.StreamDestroy
	return d.do(c, everyDevice, func(g *gpu) error {
		if named(s) == 0 {
			return fail(c, cudadrv.InvalidHandle, "the default stream cannot be destroyed")
		}
		st, err := g.streamNamed(c, s)
		if err != nil {
			return err
		}
		st.uncapture()
		g.forgetBlocking(st)
		delete(g.streams, s)
		if g.driver.config.ReuseStreamIDs {
			g.freeStream = append(g.freeStream, s)
		}
		g.charge(c)
		return nil
	})
}

// StreamQuery reports whether the stream is empty.
func (d *Device) StreamQuery(s cudadrv.Stream) (bool, error) {
	const c = call.StreamQuery
	return value(d, c, everyDevice, func(g *gpu) (bool, error) {
		st, err := g.streamNamed(c, s)
		if err != nil {
			return false, err
		}
		if err := g.unwaitable(c, st); err != nil {
			return false, err
		}
		g.charge(c)
		return st.drained <= g.time(), g.failed(c)
	})
}

// StreamSynchronize waits for the work that the stream has now.
func (d *Device) StreamSynchronize(s cudadrv.Stream) error {
	const c = call.StreamSynchronize
	return d.do(c, everyDevice, func(g *gpu) error {
		st, err := g.streamNamed(c, s)
		if err != nil {
			return err
		}
		if err := g.unwaitable(c, st); err != nil {
			return err
		}
		g.charge(c)
		return g.wait(c, st.drained)
	})
}

// StreamWaitEvent makes later work of s start no earlier than the work of the last record of e, an event of any GPU of the
// Driver, has finished.
func (d *Device) StreamWaitEvent(s cudadrv.Stream, e cudadrv.Event) error {
	const c = call.StreamWaitEvent
	return d.do(c, everyDevice, func(g *gpu) error {
		st, err := g.streamNamed(c, s)
		if err != nil {
			return err
		}
		ev, on, err := g.driver.eventNamed(c, e)
		if err != nil {
			return err
		}
		if err := g.implicit(c.String(), st); err != nil {
			return err
		}
		if on != g && ev.capture != nil {
			return fail(c, cudadrv.CaptureIsolation, "the event was recorded in a capture of another device")
		}
		if st.capture != nil || ev.capture != nil {
			return st.follow(c, ev, st == g.streams[0])
		}
		g.synchronise(st)
		st.drained = max(st.drained, ev.passes)
		g.drained = max(g.drained, st.drained)
		g.charge(c)
		return nil
	})
}

// CtxSynchronize waits for all work queued on the device so far, destroyed streams included.
func (d *Device) CtxSynchronize() error {
	const c = call.CtxSynchronize
	return d.do(c, everyDevice, func(g *gpu) error {
		if err := g.unsynchronised(c); err != nil {
			return err
		}
		g.charge(c)
		return g.wait(c, g.drained)
	})
}
